import { chmod, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, onTestFinished, test } from 'vitest';
import { checkLogin } from '../../src/cli/doctor/check-claude-code.ts';
import { checkClients, type DoctorContext, runDoctor } from '../../src/cli/doctor/run-doctor.ts';
import { checkGitBash, checkSandbox, type Finding } from '../../src/cli/doctor/check-setup.ts';
import { CLIENTS, type ClientName } from '../../src/cli/install/clients.ts';
import { bundledClaudeCode } from '../../src/driver/claude-code-program.ts';
import { httpError, text } from '../../src/scripted-model/reply.ts';
import { startScriptedModel } from '../../src/scripted-model/scripted-model.ts';
import { builtServer } from '../harness/built-server.ts';
import { createHome, type IsolatedHome } from '../harness/isolated-home.ts';
import { captureTerminal } from './captured-terminal.ts';
import { runCommand } from './run-command.ts';

const KEY = { ANTHROPIC_API_KEY: 'not-a-real-key' };
const WITHIN_MS = 60_000;

let place: IsolatedHome;

beforeEach(async () => {
  const buildFailure = inject('buildFailure');
  if (buildFailure !== undefined) throw new Error(`No build: ${buildFailure}`);
  place = await createHome();
});
afterEach(() => place.remove());

interface Examination {
  readonly code: number;
  readonly problems: readonly Finding[];
  readonly text: string;
  find(check: string): Finding;
}

async function examine(change: Partial<DoctorContext> = {}): Promise<Examination> {
  const terminal = captureTerminal();
  const code = await runDoctor(['--json', '--offline'], {
    argv: [],
    env: { ...place.env(), ...KEY },
    cwd: place.project,
    homedir: place.home,
    platform: process.platform,
    program: builtServer(),
    version: '0.0.0',
    nodeVersion: process.versions.node,
    configDir: place.configDir,
    temporaryDir: place.env()['TMPDIR']!,
    terminal,
    signal: new AbortController().signal,
    ...change,
  });
  const { findings, ok } = JSON.parse(terminal.text) as { findings: Finding[]; ok: boolean };
  expect(ok).toBe(code === 0);
  return {
    code,
    text: terminal.text,
    problems: findings.filter(({ status }) => status === 'problem'),
    find: (check) => findings.find((finding) => finding.check === check)!,
  };
}

/** Stands in for Claude Code: prints its version and exits. */
async function fakeClaude(says: string): Promise<string> {
  const file = path.join(place.home, 'claude');
  await writeFile(file, `#!/bin/sh\necho '${says}'\n`);
  await chmod(file, 0o755);
  return file;
}

test(
  'reports success and exits with 0 when everything is in order',
  async () => {
    const model = await startScriptedModel();
    onTestFinished(() => model.close());
    model.on('Reply with the word ready.').reply(text('ready'));
    const { code, stdout, stderr } = await runCommand(['doctor'], {
      env: { ...place.env(), ...KEY, ...model.env() },
      cwd: place.project,
    });
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^✓ Claude Code {11}\d+\.\d+\.\d+, bundled$/m);
    expect(stdout).toMatch(/^✓ Login {17}API key from ANTHROPIC_API_KEY; verified with one request$/m);
    expect(stdout).toMatch(
      /^✓ Trial run {13}Claude Code answered through the server in \d+\.\d s, with a scripted model/m,
    );
    expect(stdout).toMatch(/^✓ git {19}\d+\.\d+/m);
    expect(stdout).toContain('Everything looks good.');
    expect(stdout).not.toContain('\u001b');
    expect(code).toBe(0);
  },
  WITHIN_MS,
);

test('says of a login that it is refused, or that it was not verified', async () => {
  const model = await startScriptedModel();
  onTestFinished(() => model.close());
  model.on('Reply with the word ready.').reply(httpError(401));
  const bundled = bundledClaudeCode(process.platform, process.arch);
  const env = { ...place.env(), ...KEY, ...model.env() };
  const source = { executable: undefined, bundled, env, homedir: place.home, limited: false };
  expect(await checkLogin(source, false)).toMatchObject({
    status: 'problem',
    remedy: expect.stringMatching(/auth login/),
  });
  const requests = model.requests.length;
  expect(await checkLogin(source, true)).toMatchObject({
    status: 'skipped',
    found: expect.stringMatching(/not verified/),
  });
  expect(model.requests).toHaveLength(requests);
});

test(
  'reports a missing login and its remedy as JSON, and exits with 1',
  async () => {
    const { code, stdout } = await runCommand(['doctor', '--json'], { env: place.env(), cwd: place.project });
    const report = JSON.parse(stdout) as { ok: boolean; findings: Finding[] };
    expect(report.ok).toBe(false);
    expect(report.findings.filter(({ status }) => status === 'problem')).toEqual([
      {
        check: 'Login',
        status: 'problem',
        found: 'not logged in, and no API key is set',
        remedy: expect.stringMatching(/^Run ".+[\\/]claude(\.exe)?" auth login, or set ANTHROPIC_API_KEY/),
      },
    ]);
    expect(report.findings.find(({ check }) => check === 'Trial run')?.status).toBe('ok');
    expect(code).toBe(1);
  },
  WITHIN_MS,
);

describe('the entries of clients', () => {
  const NODE = '/opt/node-20/bin/node';
  const PROGRAM = '/opt/node-20/lib/node_modules/claude-code-mcp/dist/main.mjs';

  async function found(client: ClientName, name: string, command: string, program: string): Promise<Finding[]> {
    const host = { env: place.env(), cwd: place.project, homedir: place.home, platform: process.platform };
    const { file, format } = CLIENTS[client];
    await mkdir(path.dirname(file(host)), { recursive: true });
    const entry = { command, program, flags: ['--allowed-dirs=/nowhere'] };
    await writeFile(file(host), format.add('', name, entry));
    const findings: Finding[] = [];
    for await (const finding of checkClients(host)) findings.push(finding);
    return findings;
  }

  test.each(Object.keys(CLIENTS) as ClientName[])(
    'of %s that name a Node that is gone are reported, with the command that corrects them',
    async (client) => {
      expect(await found(client, 'claude-code', NODE, builtServer())).toEqual([
        {
          check: 'Clients',
          status: 'problem',
          found: expect.stringContaining(`${CLIENTS[client].title} starts ${NODE}, which does not exist`),
          remedy: `Correct the entry: claude-code-mcp install ${client}`,
        },
      ]);
    },
  );

  test('that name a program that is gone are reported under their own name', async () => {
    expect(await found('codex', 'second', process.execPath, PROGRAM)).toMatchObject([
      { status: 'problem', found: expect.stringContaining(PROGRAM), remedy: expect.stringMatching(/--name second$/) },
    ]);
  });

  test('that work are listed, and other programs are left alone', async () => {
    expect(await found('cursor', 'claude-code', process.execPath, builtServer())).toEqual([
      { check: 'Clients', status: 'ok', found: 'Cursor' },
    ]);
    expect(await found('cursor', 'other', NODE, '/opt/other/dist/main.mjs')).toMatchObject([{ status: 'skipped' }]);
  });
});

describe('reports that Claude Code is not found', () => {
  test('at the path the operator gave', async () => {
    const { code, problems, find } = await examine({ argv: ['doctor', '--executable', '/nowhere/claude'] });
    expect(problems).toEqual([
      expect.objectContaining({ check: 'Claude Code', found: '/nowhere/claude does not exist' }),
    ]);
    expect(find('Login').status).toBe('skipped');
    expect(find('Trial run').status).toBe('skipped');
    expect(code).toBe(1);
  });

  test('by the name the operator gave', async () => {
    const { problems } = await examine({
      argv: ['doctor', '--executable', 'claude-that-is-not-installed'],
      bundled: { version: '2.1.325', executable: undefined },
    });
    expect(problems).toEqual([
      expect.objectContaining({
        found: 'there is no program called claude-that-is-not-installed on the PATH',
        remedy: expect.stringContaining('Install Claude Code'),
      }),
    ]);
  });

  test('because the optional package was not installed', async () => {
    const { problems } = await examine({ bundled: { version: '2.1.325', executable: undefined } });
    expect(problems).toEqual([
      expect.objectContaining({ check: 'Claude Code', remedy: expect.stringContaining('--include=optional') }),
    ]);
  });
});

// Windows cannot execute a shell script.
describe.skipIf(process.platform === 'win32')('reports a Claude Code', () => {
  test('that is too old', async () => {
    const env = { ...place.env(), ...KEY, CLAUDE_CODE_MCP_EXECUTABLE: await fakeClaude('1.0.44 (Claude Code)') };
    const { code, problems } = await examine({ env });
    expect(problems).toEqual([
      expect.objectContaining({
        check: 'Claude Code',
        found: expect.stringMatching(/^1\.0\.44 .* older/),
        remedy: expect.stringContaining('claude update'),
      }),
    ]);
    expect(code).toBe(1);
  });

  test('that cannot take prompts as plain text, as the rules require', async () => {
    const CLAUDE_CODE_MCP_EXECUTABLE = await fakeClaude('2.1.247 (Claude Code)');
    const env = { ...place.env(), ...KEY, CLAUDE_CODE_MCP_EXECUTABLE, CLAUDE_CODE_MCP_APPROVALS: 'human' };
    expect((await examine({ env })).problems).toEqual([
      expect.objectContaining({ check: 'Claude Code', found: expect.stringContaining('plain text') }),
    ]);
  });

  test('runs although the home directory does not exist', async () => {
    const { find } = await examine({ homedir: path.join(place.home, 'nowhere') });
    expect(find('Claude Code').status).toBe('ok');
  });

  test('that is another program', async () => {
    const env = { ...place.env(), ...KEY, CLAUDE_CODE_PATH: await fakeClaude('hello') };
    const { problems } = await examine({ env });
    expect(problems).toEqual([
      expect.objectContaining({ found: expect.stringMatching(/did not report its version: hello$/) }),
    ]);
  });

  test(
    'that reports a good version but does not start',
    async () => {
      const env = { ...place.env(), ...KEY, CLAUDE_CODE_PATH: await fakeClaude('999.0.0 (Claude Code)') };
      const { problems, find } = await examine({ env });
      expect(find('Login').status).toBe('skipped');
      expect(problems.map(({ check }) => check)).toEqual(['Trial run']);
    },
    WITHIN_MS,
  );
});

/** Without Claude Code the doctor is fast, and the other findings are the same. */
const QUICK = { bundled: { version: '2.1.325', executable: undefined } } as const;

describe('directories', () => {
  test('reports a working directory that does not exist', async () => {
    const { find } = await examine({ ...QUICK, cwd: path.join(place.home, 'gone') });
    expect(find('Working directory')).toMatchObject({ status: 'problem', found: expect.stringContaining('ENOENT') });
  });

  test('reports a working directory outside the allowed ones', async () => {
    const { find } = await examine({ ...QUICK, argv: ['doctor', '--allowed-dirs', place.home] });
    expect(find('Working directory')).toMatchObject({
      status: 'problem',
      remedy: expect.stringContaining('CLAUDE_CODE_MCP_ALLOWED_DIRS'),
    });
  });

  test('reports a state directory that is below a file', async () => {
    const file = path.join(place.home, 'file');
    await writeFile(file, '');
    const { find } = await examine({ ...QUICK, argv: ['doctor', '--state-dir', path.join(file, 'state')] });
    expect(find('State directory')).toMatchObject({
      status: 'problem',
      found: expect.stringContaining('a file is where a directory should be'),
      remedy: expect.stringMatching(/^Move it away.*CLAUDE_CODE_MCP_STATE_DIR/),
    });
  });

  // Root can write anywhere.
  test.skipIf(process.platform === 'win32' || process.getuid?.() === 0)('reports missing write access', async () => {
    const locked = path.join(place.home, 'locked');
    await mkdir(locked, { mode: 0o500 });
    const { find } = await examine({ ...QUICK, configDir: locked, argv: ['doctor', '--state-dir', locked] });
    expect(find('State directory').found).toContain('EACCES');
    expect(find('Claude Code directory').found).toContain('EACCES');
  });

  test('reports a configuration directory that is a file', async () => {
    const file = path.join(place.home, 'file');
    await writeFile(file, '');
    const { find } = await examine({ ...QUICK, configDir: file });
    expect(find('Claude Code directory')).toMatchObject({
      status: 'problem',
      found: expect.stringContaining('not a directory'),
    });
  });

  test('accepts a configuration directory that does not exist yet', async () => {
    const configDir = path.join(place.home, 'later', '.claude');
    const { find } = await examine({ ...QUICK, configDir });
    expect(find('Claude Code directory')).toMatchObject({
      status: 'ok',
      found: `${configDir}, created at the first start`,
    });
  });
});

describe('settings', () => {
  test('a bad value is reported, and the other checks still run', async () => {
    const { find } = await examine({ ...QUICK, env: { ...place.env(), MAX_SESSIONS: 'many' } });
    expect(find('Settings')).toMatchObject({
      status: 'problem',
      found: expect.stringContaining('MAX_SESSIONS is "many"'),
    });
    expect(find('State directory').status).toBe('ok');
  });

  test('an unknown option in DENY_OPTIONS is reported', async () => {
    const { find } = await examine({ ...QUICK, env: { ...place.env(), CLAUDE_CODE_MCP_DENY_OPTIONS: 'plugin' } });
    expect(find('Settings')).toMatchObject({ status: 'problem', found: expect.stringContaining('plugins') });
  });

  test('a misspelt variable is reported, with the one that was meant', async () => {
    const { find } = await examine({ ...QUICK, env: { ...place.env(), CLAUDE_CODE_MCP_ALLOWED_DIR: '/srv' } });
    expect(find('Settings')).toMatchObject({ status: 'problem', remedy: 'Did you mean CLAUDE_CODE_MCP_ALLOWED_DIRS?' });
  });

  test.each([
    { depth: '2', status: 'problem' },
    { depth: '1', status: 'ok' },
  ])('a server nested $depth deep: $status', async ({ depth, status }) => {
    const { find } = await examine({ ...QUICK, env: { ...place.env(), CLAUDE_CODE_MCP_DEPTH: depth } });
    expect(find('Nesting').status).toBe(status);
  });
});

test('an old Node is reported', async () => {
  const { find } = await examine({ ...QUICK, nodeVersion: '18.20.4' });
  expect(find('Node')).toMatchObject({ status: 'problem', remedy: expect.stringContaining('nodejs.org') });
});

describe('Git Bash', () => {
  const onPath = { PATH: 'C:\\Windows;D:\\tools\\git\\cmd' };
  const no = (): boolean => false;
  const only = (file: string) => (asked: string) => asked === file;

  test.each([
    { what: 'is not needed on Linux', platform: 'linux', configured: undefined, exists: no, status: undefined },
    { what: 'is missing', platform: 'win32', configured: undefined, exists: no, status: 'problem' },
    {
      what: 'is not at the configured path',
      platform: 'win32',
      configured: 'D:\\bash.exe',
      exists: no,
      status: 'problem',
    },
    {
      what: 'is where the installer puts it',
      platform: 'win32',
      configured: undefined,
      exists: only('C:\\Program Files\\Git\\bin\\bash.exe'),
      status: 'ok',
    },
    {
      what: 'is next to the git on the PATH',
      platform: 'win32',
      configured: undefined,
      exists: only('D:\\tools\\git\\bin\\bash.exe'),
      status: 'ok',
    },
  ] as const)('$what', ({ platform, configured, exists, status }) => {
    expect(checkGitBash({ platform, env: onPath }, configured, exists)?.status).toBe(status);
  });
});

test.each([
  { what: 'on, without its programs', PATH: '/nowhere', isOn: true, status: 'problem' },
  { what: 'off, without its programs', PATH: '/nowhere', isOn: false, status: 'skipped' },
] as const)('the sandbox is $what', ({ PATH, isOn, status }) => {
  const finding = checkSandbox({ platform: 'linux', env: { PATH } }, isOn);
  expect(finding).toMatchObject({ status, found: expect.stringContaining('bubblewrap and socat') });
});
