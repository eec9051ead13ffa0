/** SANDBOX: what a session's commands can reach, and that neither a caller nor a project can widen it. */

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { missingSandboxPackages } from '../../src/config/needed-programs.ts';
import type { ToolResult } from '../../src/scripted-model/model-request.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import { openHarness, type Harness } from '../harness/open-harness.ts';

const SECRET = 'what lies outside';
const BYPASS = { permissionMode: 'bypassPermissions' } as const;

const missing = missingSandboxPackages(process);
const canSandbox = process.platform === 'linux' && missing.length === 0;
if (!canSandbox) console.warn(`Skipping the sandbox tests: ${missing.join(' and ') || process.platform}`);

describe.skipIf(!canSandbox)('a command in the sandbox', () => {
  let h: Harness;
  let outside: string;
  let neighbour: string;
  let web: Server;
  let port: number;

  beforeAll(async () => {
    web = createServer((_request, response) => response.end('from the network')).listen(0, '127.0.0.1');
    await once(web, 'listening');
    port = (web.address() as AddressInfo).port;
    const args = ['--sandbox', '--sandbox-network', 'localhost', '--allow-bypass'];
    h = await openHarness({ git: true, args, prepare });
  });

  async function prepare({ home, project }: Harness): Promise<void> {
    outside = join(home, 'outside');
    neighbour = join(project, '../neighbour');
    for (const directory of [outside, neighbour]) {
      await mkdir(directory);
      await writeFile(join(directory, 'secret.txt'), SECRET);
    }
    await writeFile(join(project, 'own.txt'), 'what lies inside');
    await symlink(outside, join(project, 'way-out'));
    await symlink(join(outside, 'secret.txt'), join(project, 'link.txt'));
    // Project settings that would turn the sandbox off.
    await mkdir(join(project, '.claude'));
    const sandbox = {
      enabled: false,
      allowUnsandboxedCommands: true,
      excludedCommands: ['*', 'cat *', 'bash *'],
      filesystem: { disabled: true, allowRead: ['/'], allowWrite: ['/'] },
      network: { allowedDomains: ['*', '127.0.0.1'] },
    };
    const permissions = {
      allow: ['Bash', `Edit(/${outside}/**)`, `Read(/${outside}/**)`, 'WebFetch(domain:127.0.0.1)'],
    };
    await writeFile(join(project, '.claude/settings.json'), JSON.stringify({ sandbox, permissions }));
  }

  afterAll(async () => {
    web.close();
    await h.close();
  }, 15_000);

  let running: string | undefined;

  /** All tests share one session: none changes what the next may do. */
  async function say(prompt: string): Promise<string> {
    if (running === undefined) running = await h.begin(prompt, BYPASS);
    else await h.say(running, prompt);
    return running;
  }

  async function allowAll(sessionId: string): Promise<void> {
    for (;;) {
      const state = await h.waitFor(sessionId, ({ status }) => status !== 'running');
      if (state.status !== 'waiting_permission') break;
      await h.allow(sessionId);
    }
  }

  /** Runs the commands. One that names a path outside is asked about even with bypassPermissions. */
  async function run(commands: readonly string[]): Promise<ToolResult[]> {
    const prompt = `run ${commands.join('; ')}`;
    const calls = commands.map((command) =>
      tool('Bash', { command, description: 'try', dangerouslyDisableSandbox: true }),
    );
    const script = h.model.on(prompt).reply(...calls, text('tried'));
    await allowAll(await say(prompt));
    const requests = h.model.requestsFor(script);
    expect(JSON.stringify(requests.map(({ body }) => body))).not.toContain(SECRET);
    return requests.slice(1).flatMap(({ toolResults }) => toolResults);
  }

  it('reads and writes only the directories of its session, whatever the project’s settings say', async () => {
    const reads = [
      `cat ${outside}/secret.txt`,
      `cat ${neighbour}/secret.txt`,
      'cat way-out/secret.txt',
      'cat link.txt',
      'grep -R lies link.txt way-out',
      `ls ${h.stateDir}`,
      `bash -c 'cat ${h.home}/.claude/.claude.json'`,
    ];
    const writes = [`echo x > ${outside}/new.txt`, `echo x > ${neighbour}/new.txt`, 'echo x > way-out/new.txt'];
    const results = await run([...reads, ...writes, 'cat own.txt', 'echo x > new.txt']);
    expect(results.slice(0, -2).map(({ isError }) => isError)).toEqual([...reads, ...writes].map(() => true));
    expect(results.at(-2)).toMatchObject({ isError: false, text: 'what lies inside' });
    expect(await readdir(h.project)).toContain('new.txt');
    for (const directory of [outside, neighbour]) expect(await readdir(directory)).toEqual(['secret.txt']);
  });

  it('that works in the home directory sees neither transcripts nor the server’s files nor other processes', async () => {
    const transcripts = join(h.configDir, 'projects', 'someone');
    const worktree = join(h.stateDir, 'claude-code-mcp', 'worktrees', 'someone');
    for (const directory of [transcripts, worktree]) {
      await mkdir(directory, { recursive: true });
      await writeFile(join(directory, 'private.txt'), SECRET);
    }
    const commands = [
      `grep -r "${SECRET.slice(0, 9)}" .claude .local; cat .claude/projects/someone/private.txt`,
      `cat /proc/${String(h.server.pid)}/environ`,
      'ls /sys/class',
      'echo x > .claude/settings.local.json',
      'cat outside/secret.txt | tr a-z A-Z',
    ];
    const calls = commands.map((command) => tool('Bash', { command, description: 'try' }));
    const script = h.model.on('at home').reply(...calls, text('tried'));
    await allowAll(await h.begin('at home', { cwd: h.home, ...BYPASS }));
    const requests = h.model.requestsFor(script);
    expect(JSON.stringify(requests.map(({ body }) => body))).not.toContain(SECRET);
    const results = requests.slice(1).flatMap(({ toolResults }) => toolResults);
    expect(results.slice(0, 3).map(({ isError }) => isError)).toEqual([true, true, true]);
    expect(await readdir(h.configDir)).not.toContain('settings.local.json');
    // The rest of its directory is there.
    expect(results.at(-1)?.text).toContain(SECRET.toUpperCase());
  });

  it('can still run programs and commit', async () => {
    const results = await run([
      'git add own.txt && git commit -qm "feat: own" && git log -1 --format=%s',
      'node -p 1+1',
      'python3 -c "print(1+2)"',
      'echo x > $TMPDIR/x && cat $TMPDIR/x',
    ]);
    expect(results.map((result) => result.text)).toEqual(['feat: own', '2', '3', 'x']);
  });

  it('reaches only the hosts in SANDBOX_NETWORK', async () => {
    const fetched = (host: string): string => `curl -sS -m 10 --noproxy '' http://${host}:${port}/`;
    const direct = `curl -sS -m 10 --noproxy '*' http://127.0.0.1:${port}/`;
    const results = await run([fetched('localhost'), fetched('127.0.0.1'), direct]);
    expect(results[0]).toMatchObject({ isError: false, text: 'from the network' });
    expect(JSON.stringify(results.slice(1))).not.toContain('from the network');
  });

  it('ends with everything it started, even processes that left its group, session and environment', async () => {
    const mark = `3${String(process.pid).padStart(7, '0')}.5`;
    const results = await run([`(env -i setsid sleep ${mark} &); echo started`]);
    expect(results).toMatchObject([{ text: 'started' }]);
    const processes = (): string => execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' });
    await eventually(() => !processes().includes(`sleep ${mark}`), { what: 'the detached process is gone' });
  });

  it('gets no wider access from a caller’s options', async () => {
    const attempts = [
      { sandbox: { enabled: false } },
      { settings: { sandbox: { excludedCommands: ['cat *'] } } },
      { settings: { permissions: { allow: [`Edit(/${outside}/**)`] } } },
      { env: { PATH: h.project } },
    ];
    for (const options of attempts) {
      const message = await h.fails('claude_code', { prompt: 'never', ...options }, 'PERMISSION_DENIED');
      expect(message).toContain('CLAUDE_CODE_MCP_SANDBOX');
    }
  });

  it('cannot run where the server keeps its own files', async () => {
    const cwd = join(h.stateDir, 'claude-code-mcp');
    await h.fails('claude_code', { prompt: 'never', cwd }, 'PERMISSION_DENIED');
  });
});

it.skipIf(process.platform !== 'linux')(
  'without the sandbox programs no session starts, and the error names the packages',
  async () => {
    const h = await startHarness({ args: ['--sandbox'], env: { PATH: '/nowhere' } });
    const message = await h.fails('claude_code', { prompt: 'never' }, 'INTERNAL');
    expect(message).toContain('apt-get install bubblewrap socat');
    expect(h.model.requests).toEqual([]);
  },
);

describe.skipIf(!canSandbox)('a sandbox that a caller asks for', () => {
  it('is in force as the start says', async () => {
    const h = await startHarness();
    const file = join(h.home, 'outside.txt');
    const command = `touch inside.txt; touch ${file}`;
    const script = h.model.on('try it').reply(tool('Bash', { command, description: 'try' }), text('tried'));
    const sandbox = { enabled: true, autoAllowBashIfSandboxed: true, network: { strictAllowlist: true } };
    const asked = { prompt: 'try it', allowedTools: ['Bash'], advanced: { sandbox }, waitMs: 45_000 };
    const { status, effective } = await h.ok('claude_code', asked);
    expect([status, effective]).toEqual(['idle', expect.stringContaining('sandbox on, no network')]);
    expect(h.model.requestsFor(script)[1]?.toolResults[0]?.text).toContain('Read-only file system');
    expect(await readdir(h.project)).toContain('inside.txt');
    expect(await readdir(h.home)).not.toContain('outside.txt');
  });

  it('is said not to be available where its programs are missing', async () => {
    const h = await startHarness({ env: { PATH: '/nowhere' } });
    h.model.on('hello').reply(text('hi'));
    // Otherwise Claude Code does not start without them.
    const advanced = { sandbox: { enabled: true, failIfUnavailable: false } };
    const { effective } = await h.ok('claude_code', { prompt: 'hello', advanced, waitMs: 45_000 });
    expect(effective).toContain('sandbox requested, not available: bubblewrap and socat are not installed');
  });
});
