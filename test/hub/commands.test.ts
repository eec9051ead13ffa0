/** The hub commands, as a user types them. */

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { encode } from 'uqr';
import { expect, it, onTestFinished, vi } from 'vitest';
import { run } from '../../src/cli/run.ts';
import { readHubRecord } from '../../src/config/hub-record.ts';
import { askHub } from '../../src/transports/attach/connect-hub.ts';
import { thisHost } from '../../src/config/host.ts';
import { builtServer } from '../harness/built-server.ts';
import { sharedPostgres, withPostgres } from '../store/stores.ts';
import { createHome, type IsolatedHome } from '../harness/isolated-home.ts';

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface World {
  readonly home: Awaited<ReturnType<typeof createHome>>;
  readonly state: string;
  hub(...args: string[]): Promise<Outcome>;
}

async function openWorld(env: Record<string, string> = {}): Promise<World> {
  const home = await createHome();
  const hub = async (...args: string[]): Promise<Outcome> => {
    const options = { env: { ...home.env(), ...env }, cwd: home.project, timeout: 40_000 };
    const command = promisify(execFile)(process.execPath, [builtServer(), 'hub', ...args], options);
    return command.then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      (error: unknown) => {
        const { code, stdout, stderr } = error as Outcome;
        return { code, stdout, stderr };
      },
    );
  };
  const state = join(home.stateDir, 'claude-code-mcp');
  onTestFinished(async () => {
    if (readHubRecord(state)) await hub('stop');
    await home.remove();
  });
  return { home, state, hub };
}

/** A directory with an xdg-open that records its arguments and reads the file as a browser would. */
async function fakeOpener(): Promise<{
  directory: string;
  opened(): { args: string[]; page: string; mode: string };
}> {
  const directory = await mkdtemp(join(tmpdir(), 'claude-code-mcp-opener-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const script = `#!/bin/sh\ncd '${directory}'\nprintf '%s\\n' "$@" >args\nstat -c %a "$1" >mode\ncat "$1" >page\n`;
  writeFileSync(join(directory, 'xdg-open'), script, { mode: 0o755 });
  const read = (name: string): string => readFileSync(join(directory, name), 'utf8').trim();
  return { directory, opened: () => ({ args: read('args').split('\n'), page: read('page'), mode: read('mode') }) };
}

it('starts, reports, opens, restarts and stops the hub', async () => {
  const opener = await fakeOpener();
  const { hub, state } = await openWorld({ PATH: `${opener.directory}:${process.env['PATH'] ?? ''}` });
  expect(await hub('status')).toMatchObject({ code: 3, stdout: expect.stringContaining('No hub is running') });
  expect(await hub('open', '--print')).toMatchObject({ code: 1, stdout: '' });

  const started = await hub('start', '--listen', '127.0.0.1:0', '--max-sessions', '4');
  expect(started).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^The hub is running: http:\/\/127\.0\.0\.1:\d+ /),
  });
  const record = JSON.parse(readFileSync(join(state, 'hub.json'), 'utf8'));
  expect(await hub('start')).toMatchObject({
    code: 0,
    stdout: `The hub is already running: ${record.url} (pid ${record.pid})\n`,
  });
  expect(await hub()).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`pid ${record.pid}) at ${record.url}`),
  });
  const { pid, url: at, version } = record;
  expect(JSON.parse((await hub('status', '--json')).stdout)).toMatchObject({ running: true, pid, url: at, version });
  expect((await hub('status')).stdout).toMatch(/, since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d\n/);

  const { stdout: link } = await hub('open', '--print');
  const [, url, code] = /^(http:\/\/127\.0\.0\.1:\d+)\/#code=([\w-]+)\n$/.exec(link)!;
  expect(url).toBe(record.url);
  const signIn = (code: string): Promise<Response> =>
    fetch(`${url}/api/v1/sign-in`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code }),
    });
  expect(await (await signIn(code!)).json()).toMatchObject({ principal: { role: 'admin' } });
  expect((await signIn(code!)).status).toBe(401);

  const { stdout: scanned } = await hub('open', '--qr');
  const [, picture = '', shown = '', hint = ''] = /^([^h]+)\n(http\S+)\n(.*)$/s.exec(scanned)!;
  expect((await signIn(/#code=([\w-]+)$/.exec(shown)![1]!)).status).toBe(200);
  expect(modulesIn(picture)).toEqual(encode(shown, { border: 2 }).data.flat());
  expect(hint).toContain('A phone cannot reach this address');

  if (process.platform === 'linux') {
    const { code: status, stdout } = await hub('open');
    expect([status, stdout]).toEqual([0, expect.stringContaining(`Opened ${record.url}`)]);
    const { args, page, mode } = opener.opened();
    const [, secret] = new RegExp(`url=${url!}/#code=([\\w-]+)"`).exec(page)!;
    expect(await (await signIn(secret!)).json()).toMatchObject({ principal: { role: 'admin' } });
    // Process arguments are visible to every user on the machine.
    expect(args).toEqual([expect.stringContaining(state)]);
    expect(args.join() + stdout).not.toContain(secret);
    expect(mode).toBe('600');
    await expect.poll(() => existsSync(args[0]!)).toBe(false);
  }

  expect(await hub('restart')).toMatchObject({ code: 0 });
  const again = JSON.parse(readFileSync(join(state, 'hub.json'), 'utf8'));
  expect(again.pid).not.toBe(record.pid);
  const { stdout: log } = await hub('logs');
  expect(log).toContain(`(pid ${record.pid})`);
  expect(log).toContain(`(pid ${again.pid})`);
  expect(log).not.toContain(code);
  if (process.platform !== 'win32') expect(statSync(join(state, 'hub.log')).mode & 0o777).toBe(0o600);

  expect(await hub('stop')).toEqual({ code: 0, stdout: 'The hub has stopped.\n', stderr: '' });
  expect(existsSync(join(state, 'hub.json'))).toBe(false);
});

it('token create reaches the store of the running hub', { timeout: 90_000 }, async () => {
  const server = await sharedPostgres();
  const name = `tokens_${randomUUID().replaceAll('-', '')}`;
  await withPostgres(server, (client) => client.query(`CREATE DATABASE ${name}`));
  onTestFinished(async () => {
    await withPostgres(server, (client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`));
  });
  const store = new URL(server);
  store.pathname = `/${name}`;
  const { hub, home, state } = await openWorld();
  expect(await hub('start', '--listen', '127.0.0.1:0', '--store', store.href)).toMatchObject({ code: 0 });
  const created = await promisify(execFile)(
    process.execPath,
    [builtServer(), 'token', 'create', 'ci', '--role', 'viewer', '--json'],
    { env: home.env() },
  );
  const { token } = JSON.parse(created.stdout);
  const { url } = readHubRecord(state)!;
  const answer = await fetch(`${url}/api/v1/me`, { headers: { authorization: `Bearer ${token}` } });
  expect(answer.status).toBe(200);
  expect(existsSync(join(state, 'hub.db'))).toBe(false);
});

it('says why the hub did not start', async () => {
  const { hub } = await openWorld();
  const { code, stderr } = await hub('start', '--listen', '0.0.0.0:0');
  expect(code).toBe(1);
  expect(stderr).toMatch(/The hub did not start. Its log says:\n.*--tls-cert/s);
  const half = await hub('start', '--listen', '127.0.0.1:0', '--oauth-issuer', 'https://id.example.org');
  expect(half.stderr).toContain('--oauth-audience');
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  onTestFinished(() => void other.close());
  const { port } = other.address() as AddressInfo;
  const taken = await hub('start', '--listen', `127.0.0.1:${port}`);
  expect(taken.stderr).toContain(`--listen 127.0.0.1:${port}: another program uses this port.`);
});

/** Runs a hub command in this process. */
async function runHere(
  place: IsolatedHome,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Outcome> {
  const written = { stdout: '', stderr: '' };
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      written[name] += String(text);
      return true;
    }),
  );
  try {
    const host = { ...thisHost(), homedir: place.home, cwd: place.project, env: { ...place.env(), ...env } };
    const code = await run({ ...host, argv: ['hub', ...args], program: builtServer() });
    return { code, ...written };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

it('refuses commands inside a session that would give an agent more rights', async () => {
  const depth = { CLAUDE_CODE_MCP_DEPTH: '1/2' };
  const { hub, home } = await openWorld(depth);
  const refused = { code: 1, stdout: '', stderr: expect.stringContaining('inside a session') };
  expect(await hub('stop')).toEqual(refused);
  for (const command of [[], ['open'], ['stop'], ['start'], ['restart'], ['install'], ['uninstall']])
    expect(await runHere(home, command, depth)).toEqual(refused);
  expect(await runHere(home, ['status'], depth)).toMatchObject({ code: 3 });
});

it('names unknown commands and options', async () => {
  const { home } = await openWorld();
  expect(await runHere(home, ['stpo'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('did you mean stop?'),
  });
  const verbose = await runHere(home, ['status', '--verbose']);
  expect(verbose).toMatchObject({ code: 2, stderr: expect.stringContaining('--verbose') });
});

it.runIf(process.platform === 'linux')(
  'installs a user service with the arguments and variables it needs',
  async () => {
    const { hub, home } = await openWorld({ CLAUDE_CODE_MCP_RESUME_SECRET: 'pa"ss $word %h' });
    const { stdout } = await hub('install', '--print', '--listen', '127.0.0.1:0');
    expect(stdout).toMatch(/^ExecStart=".*" "--optimize-for-size" ".*main\.mjs" "hub" "--listen" "127\.0\.0\.1:0"$/m);
    const secrets = join(home.stateDir, 'claude-code-mcp', 'service-secrets.json');
    expect(stdout).not.toContain('ss $word');
    expect(stdout).toContain(`Environment="CLAUDE_CODE_MCP_SECRETS_FROM=${secrets}"`);
    // There is no service manager for this home: the command says which step is left to the user.
    const installed = await hub('install');
    const unit = join(home.home, '.config', 'systemd', 'user', 'claude-code-mcp-hub.service');
    expect(statSync(unit).mode & 0o777).toBe(0o600);
    expect(installed.stdout).toContain(`Wrote ${unit}`);
    expect(statSync(secrets).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(secrets, 'utf8'))).toEqual({ CLAUDE_CODE_MCP_RESUME_SECRET: 'pa"ss $word %h' });
    if (installed.code !== 0) expect(installed.stderr).toContain('Run it yourself');
    await hub('uninstall');
    expect(existsSync(unit)).toBe(false);
    expect(existsSync(secrets)).toBe(false);
    const again = await hub('uninstall');
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('not installed as a service'), stderr: '' });

    const runtime = join(home.home, 'run');
    mkdirSync(runtime, { mode: 0o700 });
    const file = join(home.home, 'claude-code-mcp-hub.service');
    writeFileSync(file, stdout);
    const verify = promisify(execFile)('systemd-analyze', ['--user', 'verify', file], {
      env: { ...home.env(), XDG_RUNTIME_DIR: runtime },
    });
    const found = await verify.catch((error: unknown) => error as NodeJS.ErrnoException);
    if ('code' in found && found.code === 'ENOENT') return;
    expect(found).toMatchObject({ stdout: '', stderr: '' });
  },
);

it.runIf(process.platform === 'linux')(
  'no secret is in the environment or the arguments of the running hub, however it was started; a restart keeps them',
  { timeout: 90_000 },
  async () => {
    const given = {
      CLAUDE_CODE_MCP_RESUME_SECRET: 'secret-of-the-resume-tokens',
      CLAUDE_CODE_MCP_NOTIFY_SECRET: 'secret-of-the-notifications',
    };
    const { CLAUDE_CODE_MCP_RESUME_SECRET: variable, CLAUDE_CODE_MCP_NOTIFY_SECRET: flag } = given;
    const { home, state, hub } = await openWorld();
    const runWith = (env: Record<string, string>, ...args: string[]): Promise<unknown> =>
      promisify(execFile)(process.execPath, [builtServer(), 'hub', ...args], { env: { ...home.env(), ...env } });
    const flags = ['--listen', '127.0.0.1:0', '--notify-secret', flag];
    /** Waits for a hub, and reads what every process of the user can read about it. */
    const shown = async (): Promise<string> => {
      await expect.poll(() => readHubRecord(state), { timeout: 20_000 }).toBeDefined();
      const { pid } = readHubRecord(state)!;
      return readFileSync(`/proc/${pid}/environ`, 'latin1') + readFileSync(`/proc/${pid}/cmdline`, 'latin1');
    };
    const stopped = async (): Promise<unknown> => {
      const { secrets } = await askHub<{ secrets: unknown }>(readHubRecord(state)!, state, 'stop');
      await expect.poll(() => readHubRecord(state), { timeout: 20_000 }).toBeUndefined();
      return secrets;
    };
    const ways: Record<string, () => Promise<unknown>> = {
      'in the foreground': async () => {
        runWith({ CLAUDE_CODE_MCP_RESUME_SECRET: variable }, ...flags).catch(() => undefined);
      },
      'in the background': () => runWith({ CLAUDE_CODE_MCP_RESUME_SECRET: variable }, 'start', ...flags),
      again: async () => {
        await runWith({ CLAUDE_CODE_MCP_RESUME_SECRET: variable }, 'start', ...flags);
        await hub('restart');
      },
      'by a service': async () => {
        const secrets = join(home.home, 'secrets.json');
        writeFileSync(secrets, JSON.stringify(given), { mode: 0o600 });
        runWith({ CLAUDE_CODE_MCP_SECRETS_FROM: secrets }, '--listen', '127.0.0.1:0').catch(() => undefined);
      },
    };
    for (const [how, start] of Object.entries(ways)) {
      await start();
      const seen = await shown();
      expect(seen, how).toContain('127.0.0.1:0');
      for (const secret of [variable, flag]) expect(seen, how).not.toContain(secret);
      expect(await stopped(), how).toEqual(given);
    }
  },
);

it('warns at the start if callers over HTTP may work in any directory', { timeout: 60_000 }, async () => {
  const { home, state, hub } = await openWorld();
  const create = (role: string): Promise<unknown> =>
    promisify(execFile)(process.execPath, [builtServer(), 'token', 'create', role, '--role', role], {
      env: home.env(),
    });
  const warnings = async (...flags: string[]): Promise<number> => {
    await hub('start', '--listen', '127.0.0.1:0', ...flags);
    await hub('stop');
    const log = readFileSync(join(state, 'hub.log'), 'utf8');
    return log.split('\n').filter((line) => line.includes('CLAUDE_CODE_MCP_ALLOWED_DIRS')).length;
  };
  await create('viewer');
  expect(await warnings()).toBe(0);
  await create('caller');
  expect(await warnings()).toBe(1);
  expect(await warnings('--allowed-dirs', home.project)).toBe(1);
});

/** The modules of a QR code in a terminal, dark ones as true: each character stands for one above another. */
function modulesIn(picture: string): boolean[] {
  const rows = picture.trimEnd().split('\n');
  const width = rows[0]?.length ?? 0;
  return rows
    .flatMap((row) => [
      Array.from(row, (character) => character === ' ' || character === '▄'),
      Array.from(row, (character) => character === ' ' || character === '▀'),
    ])
    .slice(0, width)
    .flat();
}
