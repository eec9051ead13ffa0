import { execFile } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { chmod, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { CLIENTS, type ClientName, type InstallClient } from '../../src/cli/install/clients.ts';
import { readMember } from '../../src/cli/install/edit-json.ts';
import { runInstall, type Direction, type InstallContext } from '../../src/cli/install/run-install.ts';
import type { SettingKey } from '../../src/config/settings-table.ts';
import { bundledClaudeCode } from '../../src/driver/claude-code-program.ts';
import { builtServer } from '../harness/built-server.ts';
import { createHome, type IsolatedHome } from '../harness/isolated-home.ts';
import type { Json } from '../harness/json.ts';
import { captureTerminal } from './captured-terminal.ts';
import { CLIENT_FILES } from './client-files.ts';
import { runCommand } from './run-command.ts';

const NODE = '/opt/node/bin/node';
const PROGRAM = '/opt/claude-code-mcp/dist/main.mjs';
const NAMES = Object.keys(CLIENTS) as ClientName[];

let place: IsolatedHome;
beforeEach(async () => {
  place = await createHome();
});
afterEach(() => place.remove());

interface Outcome {
  readonly code: number;
  readonly text: string;
  readonly asked: number;
}

async function run(
  direction: Direction,
  args: readonly string[],
  { answers = [], ...change }: { answers?: readonly string[] } & Partial<InstallContext> = {},
): Promise<Outcome> {
  const terminal = captureTerminal(answers);
  const code = await runInstall(direction, args, {
    env: {},
    cwd: place.project,
    homedir: place.home,
    platform: 'linux',
    command: NODE,
    program: PROGRAM,
    flags: new Map(),
    terminal,
    now: new Date('2026-01-02T03:04:05Z'),
    withHub: () => Promise.reject(new Error('A command needs no hub')),
    ...change,
  });
  return { code, text: terminal.text, asked: terminal.asked.length };
}

async function writeOriginal(name: ClientName, text = CLIENT_FILES[name].text): Promise<string> {
  const file = path.join(place.home, CLIENT_FILES[name].path);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
  return file;
}

const jsonOf = (file: string): Json => readMember(readFileSync(file, 'utf8'), []) as Json;

const CODEX_TABLE = `[mcp_servers.claude-code]\ncommand = "${NODE}"\nargs = ["${PROGRAM}"]\n`;

/** The entry as the client will read it. */
function entryIn(name: ClientName, file: string): unknown {
  switch (name) {
    case 'codex':
      return /(?<=^|\n\n)\[mcp_servers\.claude-code\]\n[^[]*\[[^[]*$/.exec(readFileSync(file, 'utf8'))?.[0];
    case 'vscode':
      return jsonOf(file).servers['claude-code'];
    case 'opencode':
      return jsonOf(file).mcp['claude-code'];
    default:
      return jsonOf(file).mcpServers['claude-code'];
  }
}

const ENTRIES: Readonly<Record<ClientName, unknown>> = {
  'claude-code': { type: 'stdio', command: NODE, args: [PROGRAM] },
  'claude-desktop': { command: NODE, args: [PROGRAM] },
  cursor: { type: 'stdio', command: NODE, args: [PROGRAM] },
  vscode: { type: 'stdio', command: NODE, args: [PROGRAM] },
  codex: CODEX_TABLE,
  gemini: { command: NODE, args: [PROGRAM] },
  copilot: { type: 'local', tools: ['*'], command: NODE, args: [PROGRAM] },
  opencode: { type: 'local', enabled: true, command: [NODE, PROGRAM] },
};

describe.each(NAMES)('%s', (name) => {
  const { text } = CLIENT_FILES[name];

  test('install adds the server and keeps every line; uninstall restores the file exactly', async () => {
    const file = await writeOriginal(name);
    const installed = await run('install', [name, '--yes']);
    expect(installed).toMatchObject({ code: 0, asked: 0 });
    expect(entryIn(name, file)).toEqual(ENTRIES[name]);
    const after = await readFile(file, 'utf8');
    for (const line of text.split('\n')) expect(after).toContain(line);

    expect(await run('uninstall', [name, '--yes'])).toMatchObject({ code: 0 });
    expect(await readFile(file, 'utf8')).toBe(text);
  });

  test('a second install changes nothing', async () => {
    const file = await writeOriginal(name);
    await run('install', [name, '--yes']);
    const after = await readFile(file, 'utf8');
    const again = await run('install', [name, '--yes']);
    expect(again.text).toContain('already has this server');
    expect(await readFile(file, 'utf8')).toBe(after);
  });

  test('a newer installation replaces the older one and keeps its flags', async () => {
    const file = await writeOriginal(name);
    const flags = new Map<SettingKey, string>([['toolset', 'explicit']]);
    await run('install', [name, '--yes'], { program: '/old/place/dist/main.mjs', flags });
    expect(await readFile(file, 'utf8')).toContain('--toolset=explicit');
    await run('install', [name, '--yes']);
    const after = await readFile(file, 'utf8');
    expect(after).toContain(PROGRAM);
    expect(after).toContain('--toolset=explicit');
    expect(after).not.toContain('/old/place');
  });

  test('install creates a missing file, without a backup', async () => {
    const { code, text: said } = await run('install', [name, '--yes']);
    expect(code).toBe(0);
    expect(said).toContain('(new)');
    const client: InstallClient = CLIENTS[name];
    const file = client.file({ env: {}, cwd: '/', homedir: place.home, platform: 'linux' });
    expect(entryIn(name, file)).toEqual(ENTRIES[name]);
    expect(readdirSync(path.dirname(file)).filter((other) => other.includes('backup'))).toEqual([]);
  });

  test('uninstall removes a file that install created', async () => {
    await run('install', [name, '--yes']);
    const client: InstallClient = CLIENTS[name];
    const file = client.file({ env: {}, cwd: '/', homedir: place.home, platform: 'linux' });
    const { code, text: said } = await run('uninstall', [name, '--yes']);
    expect(code).toBe(0);
    expect(said).toContain('(removed: nothing else in it)');
    expect(said).not.toContain('shows the server');
    expect(existsSync(file)).toBe(false);
    expect(await run('install', [name, '--yes'])).toMatchObject({ code: 0 });
  });

  test('keeps Windows line endings', async () => {
    const original = text.replaceAll('\n', '\r\n');
    const file = await writeOriginal(name, original);
    await run('install', [name, '--yes']);
    expect(await readFile(file, 'utf8')).not.toMatch(/[^\r]\n/);
    await run('uninstall', [name, '--yes']);
    expect(await readFile(file, 'utf8')).toBe(original);
  });
});

describe('uninstall', () => {
  test.each<[what: string, ClientName, string]>([
    ['an object without the section', 'cursor', '{}\n'],
    ['other members', 'gemini', '{\n  "theme": "dark"\n}\n'],
    ['an empty section', 'cursor', '{\n  "mcpServers": {}\n}\n'],
    ['an empty section among others', 'claude-code', '{\n  "mcpServers": {},\n  "theme": "dark"\n}\n'],
    ['an empty section one level deeper', 'opencode', '{\n  "mcp": {\n    "servers": {}\n  }\n}\n'],
    ['an empty file', 'codex', ''],
  ])('leaves %s as it was', async (_, name, text) => {
    const file = await writeOriginal(name, text);
    await run('install', [name, '--yes']);
    await run('install', [name, '--yes'], { program: '/new/dist/main.mjs', now: new Date('2026-01-03T00:00:00Z') });
    await run('uninstall', [name, '--yes'], { now: new Date('2026-01-04T00:00:00Z') });
    expect(await readFile(file, 'utf8')).toBe(text);
  });

  test('keeps servers that the user added in the meantime to the section that install created', async () => {
    const file = await writeOriginal('cursor', '{}\n');
    await run('install', ['cursor', '--yes']);
    const installed = await readFile(file, 'utf8');
    await writeFile(file, installed.replace('"claude-code":', '"other": { "command": "x" },\n    "claude-code":'));
    await run('uninstall', ['cursor', '--yes']);
    expect(jsonOf(file)).toEqual({ mcpServers: { other: { command: 'x' } } });
  });
});

describe('a hand-written entry', () => {
  test.each<[ClientName, string]>([
    [
      'claude-desktop',
      '{"mcpServers": {"claude-code": {"command": "claude-code-mcp", "args": ["--approvals", "human"]}}}',
    ],
    [
      'opencode',
      '{"mcp": {"claude-code": {"type": "local", "command": ["/usr/bin/claude-code-mcp", "--approvals", "human"]}}}',
    ],
    ['codex', '[mcp_servers.claude-code]\ncommand = "claude-code-mcp"\nargs = ["--approvals", "human"]\n'],
  ])('%s: is recognised, updated and removed', async (name, text) => {
    const file = await writeOriginal(name, text);
    expect(await run('install', [name, '--yes'])).toMatchObject({ code: 0 });
    const after = await readFile(file, 'utf8');
    expect(after).toContain(PROGRAM);
    expect(after).toMatch(/"--approvals",\s*"human"/);
    expect(await run('uninstall', [name, '--yes'])).toMatchObject({ code: 0 });
  });

  test('is left alone if it runs the unrelated npm package of the same name', async () => {
    const text = '{"mcpServers": {"claude-code": {"command": "npx", "args": ["-y", "claude-code-mcp"]}}}';
    const file = await writeOriginal('cursor', text);
    expect(await run('uninstall', ['cursor', '--yes'])).toMatchObject({ code: 1 });
    expect(await readFile(file, 'utf8')).toBe(text);
  });
});

describe('confirmation', () => {
  test('shows the change and writes it only after a yes', async () => {
    const file = await writeOriginal('cursor');
    const no = await run('install', ['cursor'], { answers: ['n'] });
    expect(no).toMatchObject({ code: 1, asked: 1 });
    expect(no.text).toContain(`+         "${PROGRAM}"`);
    expect(await readFile(file, 'utf8')).toBe(CLIENT_FILES.cursor.text);
    expect(await run('install', ['cursor'], { answers: ['y'] })).toMatchObject({ code: 0, asked: 1 });
    expect(await readFile(file, 'utf8')).toContain(PROGRAM);
  });

  test('--print only prints', async () => {
    const file = await writeOriginal('codex');
    const { code, text } = await run('install', ['codex', '--print'], { answers: ['y'] });
    expect(code).toBe(0);
    expect(text).toContain('  + [mcp_servers.claude-code]');
    expect(await readFile(file, 'utf8')).toBe(CLIENT_FILES.codex.text);
  });

  test('without a terminal nothing is changed unless --yes is given', async () => {
    const file = await writeOriginal('gemini');
    const { code, text } = await run('install', ['gemini']);
    expect(code).toBe(2);
    expect(text).toContain('--yes');
    expect(await readFile(file, 'utf8')).toBe(CLIENT_FILES.gemini.text);
  });
});

describe('existing files', () => {
  test('a file where a directory should be is named, with what to do', async () => {
    const file = await writeOriginal('cursor');
    await rm(path.dirname(file), { recursive: true });
    await writeFile(path.dirname(file), '');
    const { code, text } = await run('install', ['cursor', '--yes']);
    expect(code).toBe(1);
    expect(text).toContain('a file is where a directory should be. Move it away');
  });

  test('keeps a backup and the permissions of the file', async () => {
    const file = await writeOriginal('claude-code');
    await chmod(file, 0o600);
    const { text } = await run('install', ['claude-code', '--yes']);
    const backup = `${file}.backup-2026-01-02T03-04-05-000Z`;
    expect(text).toContain(backup);
    expect(await readFile(backup, 'utf8')).toBe(CLIENT_FILES['claude-code'].text);
    if (process.platform !== 'win32') expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test.skipIf(process.platform === 'win32')('a symlink stays a symlink', async () => {
    const file = await writeOriginal('cursor');
    const real = path.join(place.home, 'dotfiles.json');
    await promisify(execFile)('mv', [file, real]);
    await symlink(real, file);
    await run('install', ['cursor', '--yes']);
    expect(lstatSync(file).isSymbolicLink()).toBe(true);
    expect(await readFile(real, 'utf8')).toContain(PROGRAM);
  });

  test.each<[ClientName, string]>([
    ['cursor', '{ "mcpServers": { "claude-code": { "command": "npx", "args": ["something-else"] } } }'],
    ['codex', '[mcp_servers."claude-code"]\ncommand = "npx"\nargs = ["something-else"]\n'],
  ])('%s: an unrelated server of the same name is left alone', async (name, text) => {
    const file = await writeOriginal(name, text);
    const refused = await run('install', [name, '--yes']);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.text).toContain('--name');
    expect(await run('uninstall', [name, '--yes'])).toMatchObject({ code: 1 });
    expect(await readFile(file, 'utf8')).toBe(text);
    expect(await run('install', [name, '--yes', '--name', 'mine'])).toMatchObject({ code: 0 });
    expect(await readFile(file, 'utf8')).toContain('something-else');
  });

  test.each<[what: string, ClientName, string]>([
    ['broken JSON', 'cursor', '{ "mcpServers": { "a": } }'],
    ['JSON that is not an object', 'gemini', '[]'],
    ['servers that are not an object', 'copilot', '{ "mcpServers": [] }'],
    ['an inline table', 'codex', 'mcp_servers = { a = { command = "x" } }\n'],
    ['dotted keys', 'codex', 'mcp_servers.claude-code.command = "x"\n'],
    ['a server inside its parent table', 'codex', '[mcp_servers]\nclaude-code = { command = "x" }\n'],
  ])('%s is left alone', async (_, name, text) => {
    const file = await writeOriginal(name, text);
    const { code, text: said } = await run('install', [name, '--yes']);
    expect(code).toBe(1);
    expect(said).toContain('by hand');
    expect(await readFile(file, 'utf8')).toBe(text);
  });

  test('uninstall removes what the user added to a Codex entry, and nothing else', async () => {
    const file = await writeOriginal('codex');
    await run('install', ['codex', '--yes']);
    const installed = await readFile(file, 'utf8');
    const added = `${installed}tool_timeout_sec = 600\n\n[mcp_servers.claude-code.env]\nCLAUDE_CODE_MCP_APPROVALS = "human"\n\n# last words\n[tui]\ntheme = "x"\n`;
    await writeFile(file, added);
    await run('uninstall', ['codex', '--yes']);
    expect(await readFile(file, 'utf8')).toBe(`${CLIENT_FILES.codex.text}\n# last words\n[tui]\ntheme = "x"\n`);
  });

  test.each([
    ['an unquoted value', 'model = gpt\n', 1],
    ['a header that is not closed', 'model = "gpt"\n\n[mcp_servers\n', 3],
    ['a line without a value', '[tui]\ntheme\n', 2],
    ['a text that does not end', '[tui]\n# a comment that is fine\ntheme = "dark\n', 3],
    ['a list that does not end', '[tui]\nkeys = ["a", \n', 2],
  ])('a Codex file that Codex cannot read is left alone: %s', async (_, text, line) => {
    const file = await writeOriginal('codex', text);
    const outcome = await run('install', ['codex', '--yes']);
    expect(outcome.text).toContain(
      `cannot be changed safely: line ${String(line)} is not valid TOML. Please edit it by hand.`,
    );
    expect(outcome.code).toBe(1);
    expect(await readFile(file, 'utf8')).toBe(text);
  });

  test.each(['\n', '\r\n'])(
    'a Codex file in all the notations of TOML is changed, and restored exactly (%j)',
    async (eol) => {
      const text = `\ufeff# it's mine
"quoted key" = 'literal # text'
at = 1979-05-27T07:32:00Z
n = -1_000.5e3 # it's a number
big = +inf
deep."dotted [key]" = { a = [1, 2], b = "]" }

[ spaced . 'x.[y]' ]
list = [
  "a", # it's a comment
  'b',
]
[[many]]
raw = '''
[not a table
'''
said = """He said "yes""""
kept = """a \\""" b"""
`.replaceAll('\n', eol);
      const file = await writeOriginal('codex', text);
      expect((await run('install', ['codex', '--yes'])).code).toBe(0);
      expect(await readFile(file, 'utf8')).toBe(`${text}\n${CODEX_TABLE}`.replaceAll(/\r?\n/g, eol));
      await run('uninstall', ['codex', '--yes']);
      expect(await readFile(file, 'utf8')).toBe(text);
    },
  );

  test('a relative path is made absolute, since the client may start the server anywhere', async () => {
    const file = await writeOriginal('cursor');
    const flags = new Map<SettingKey, string>([['stateDir', './state']]);
    await run('install', ['cursor', '--yes'], { flags });
    expect(await readFile(file, 'utf8')).toContain(`"--state-dir=${place.project}/state"`);
  });

  test('a secret is never written to a client’s file', async () => {
    const file = await writeOriginal('cursor');
    const flags = new Map<SettingKey, string>([['resumeSecret', 'hush']]);
    const { code, text } = await run('install', ['cursor', '--yes'], { flags });
    expect(code).toBe(1);
    expect(text).not.toContain('hush');
    expect(await readFile(file, 'utf8')).toBe(CLIENT_FILES.cursor.text);
  });

  test('opencode 2 keeps its servers one level deeper', async () => {
    const file = await writeOriginal(
      'opencode',
      '{ "mcp": { "servers": { "a": { "type": "local", "command": ["x"] } } } }',
    );
    await run('install', ['opencode', '--yes']);
    expect(Object.keys(jsonOf(file).mcp.servers)).toEqual(['a', 'claude-code']);
  });
});

test('an option that only the hub accepts is refused', async () => {
  const flags = new Map<SettingKey, string>([['listen', '127.0.0.1:0']]);
  const { code, text } = await run('install', ['cursor', '--yes'], { flags });
  expect(code).toBe(1);
  expect(text).toContain('--listen is an option of the hub');
});

test.each([
  { args: [], says: 'install needs a client: ' },
  { args: ['curser'], says: 'did you mean cursor?' },
  { args: ['cursor', 'codex'], says: 'One client at a time' },
  { args: ['cursor', '--name', 'a b'], says: '--name takes' },
  { args: ['cursor', '--attended'], says: 'only valid with --http' },
  { args: ['cursor', '--http', '--expires', 'soon'], says: '--expires takes' },
  { args: ['cursor', '--http', '--url', 'hub'], says: '--url takes' },
  { args: ['cursor', '--force'], says: 'no flag "--force"' },
])('install $args is bad usage', async ({ args, says }) => {
  await expect(run('install', args)).rejects.toThrow(says);
});

test('the real Claude Code connects to the installed server', async () => {
  const buildFailure = inject('buildFailure');
  if (buildFailure !== undefined) throw new Error(`No build: ${buildFailure}`);
  const env = place.env();
  const { code, stdout } = await runCommand(['install', 'claude-code', '--yes', '--toolset', 'explicit'], { env });
  expect(stdout).toContain(builtServer());
  expect(code).toBe(0);
  const claude = bundledClaudeCode(process.platform, process.arch)!.executable!;
  const { stdout: said } = await promisify(execFile)(claude, ['mcp', 'get', 'claude-code'], {
    env,
    cwd: place.project,
  });
  expect(said).toContain('Connected');
  expect(said).toContain('--toolset=explicit');
});
