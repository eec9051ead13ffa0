/** `install --http`: an entry for the hub with a token of its own, which is revoked along with the entry. */

import { execFile } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CLIENTS, type ClientName } from '../../src/cli/install/clients.ts';
import { readMember } from '../../src/cli/install/edit-json.ts';
import { HubAccess } from '../../src/cli/install/hub-access.ts';
import { runInstall, type Direction } from '../../src/cli/install/run-install.ts';
import { hubRecordFile } from '../../src/config/hub-record.ts';
import type { SettingKey } from '../../src/config/settings-table.ts';
import { bundledClaudeCode } from '../../src/driver/claude-code-program.ts';
import { createHome, type IsolatedHome } from '../harness/isolated-home.ts';
import type { Json } from '../harness/json.ts';
import { openApi } from '../hub/api-world.ts';
import { openHttpHub, type HttpHub } from '../hub/http-hub.ts';
import { STORES } from '../store/stores.ts';
import { captureTerminal } from './captured-terminal.ts';
import { CLIENT_FILES } from './client-files.ts';
import { runCommand } from './run-command.ts';

let place: IsolatedHome;
beforeEach(async () => {
  place = await createHome();
});
afterEach(() => place.remove());

interface World {
  readonly hub: HttpHub;
  readonly records: string[];
  run(
    direction: Direction,
    args: readonly string[],
    change?: { answers?: string[]; flags?: [SettingKey, string][]; refusal?: string; foreignStore?: boolean },
  ): Promise<{ code: number; text: string }>;
}

/** A running hub, announced in `hub.json` by default. */
async function openWorld({ announced = true } = {}): Promise<World> {
  const { routes, store } = await openApi();
  const hub = await openHttpHub({ store, routes });
  const records: string[] = [];
  const { url } = hub;
  if (announced)
    await writeFile(hubRecordFile(place.stateDir), JSON.stringify({ pid: 1, url, socket: '', version: '0' }));
  return {
    hub,
    records,
    async run(direction, args, { answers = [], flags = [], refusal, foreignStore = false } = {}) {
      const terminal = captureTerminal(answers);
      const opened = Object.create(foreignStore ? await STORES.sqlite() : store) as typeof store;
      opened.close = () => Promise.resolve();
      const access = new HubAccess({
        stateDir: place.stateDir,
        openStore: async () => opened,
        refusal,
        record: (what, details) => records.push(JSON.stringify([what, details])),
        now: Date.now,
      });
      const code = await runInstall(direction, args, {
        env: {},
        cwd: place.project,
        homedir: place.home,
        platform: 'linux',
        command: '/opt/node/bin/node',
        program: '/opt/claude-code-mcp/dist/main.mjs',
        flags: new Map(flags),
        terminal,
        now: new Date(),
        withHub: (work) => work(access),
      });
      expect(terminal.text).not.toMatch(/ccmcp_[\w-]{43}/);
      return { code, text: terminal.text };
    },
  };
}

async function writeOriginal(name: ClientName, text = CLIENT_FILES[name].text): Promise<string> {
  const file = path.join(place.home, CLIENT_FILES[name].path);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
  await chmod(file, 0o644);
  return file;
}

const tokenIn = (file: string): string => /ccmcp_[\w-]{43}/.exec(readFileSync(file, 'utf8'))?.[0] ?? '';
const modeOf = (file: string): number => (process.platform === 'win32' ? 0o600 : statSync(file).mode & 0o777);
const jsonOf = (file: string): Json => readMember(readFileSync(file, 'utf8'), []) as Json;

/** The entry as the client reads it. */
const ENTRIES: Readonly<Partial<Record<ClientName, (url: string, bearer: string) => unknown>>> = {
  'claude-code': (url, Authorization) => ({ type: 'http', url, headers: { Authorization } }),
  cursor: (url, Authorization) => ({ url, headers: { Authorization } }),
  vscode: (url, Authorization) => ({ type: 'http', url, headers: { Authorization } }),
  codex: (url, bearer) => `[mcp_servers.claude-code]\nurl = "${url}"\nhttp_headers = { Authorization = "${bearer}" }\n`,
  gemini: (httpUrl, Authorization) => ({ httpUrl, headers: { Authorization } }),
  copilot: (url, Authorization) => ({ type: 'http', tools: ['*'], url, headers: { Authorization } }),
  opencode: (url, Authorization) => ({ type: 'remote', enabled: true, oauth: false, url, headers: { Authorization } }),
};

function entryIn(name: ClientName, file: string): unknown {
  if (name === 'codex') return /\[mcp_servers\.claude-code\]\nurl[^[]*$/.exec(readFileSync(file, 'utf8'))?.[0];
  const json = jsonOf(file);
  return (json.servers ?? json.mcp ?? json.mcpServers)['claude-code'];
}

describe.each(Object.keys(ENTRIES) as ClientName[])('%s', (name) => {
  test('gets the address and a caller token in a private file; uninstall removes the entry and revokes the token', async () => {
    const { hub, run, records } = await openWorld();
    const file = await writeOriginal(name);
    const { code, text } = await run('install', [name, '--http', '--yes']);
    expect(code).toBe(0);
    const token = tokenIn(file);
    expect(entryIn(name, file)).toEqual(ENTRIES[name]!(`${hub.url}/mcp`, `Bearer ${token}`));
    expect(await hub.tokens.verify(token)).toMatchObject({ role: 'caller', name: `${name} (installed)` });
    expect(records.join()).not.toContain(token);
    for (const line of CLIENT_FILES[name].text.split('\n')) expect(readFileSync(file, 'utf8')).toContain(line);
    expect(modeOf(file)).toBe(0o600);
    if (process.platform !== 'win32') expect(text).toContain('other users can no longer read it');

    const again = await run('install', [name, '--http', '--yes']);
    expect(again).toMatchObject({ code: 0, text: expect.stringContaining('already has this server') });
    expect(await hub.tokens.list()).toHaveLength(1);

    const removed = await run('uninstall', [name, '--yes']);
    expect(removed).toMatchObject({ code: 0, text: expect.stringContaining('Its token was revoked.') });
    expect(readFileSync(file, 'utf8')).toBe(CLIENT_FILES[name].text);
    expect(await hub.tokens.verify(token)).toBeUndefined();
    const kept = (await readdir(path.dirname(file))).filter((other) => other.includes('backup'));
    for (const backup of kept) expect(modeOf(path.join(path.dirname(file), backup))).toBe(0o600);
  });

  test('switches from a command to HTTP and back', async () => {
    const { hub, run } = await openWorld();
    const file = await writeOriginal(name);
    await run('install', [name, '--yes']);
    await run('install', [name, '--http', '--yes']);
    const token = tokenIn(file);
    expect(entryIn(name, file)).toEqual(ENTRIES[name]!(`${hub.url}/mcp`, `Bearer ${token}`));
    expect(await run('install', [name, '--yes'])).toMatchObject({ code: 0 });
    expect(readFileSync(file, 'utf8')).not.toContain(hub.url);
    expect(await hub.tokens.verify(token)).toBeUndefined();
    await run('uninstall', [name, '--yes']);
    expect(readFileSync(file, 'utf8')).toBe(CLIENT_FILES[name].text);
  });

  test('keeps its token and the user’s additions when the hub moves, and replaces a revoked token', async () => {
    const { hub, run } = await openWorld();
    const file = await writeOriginal(name);
    await run('install', [name, '--http', '--yes']);
    const token = tokenIn(file);
    const moved = readFileSync(file, 'utf8').replace(hub.url, 'http://127.0.0.1:1');
    await writeFile(
      file,
      moved.replace(
        /("?)Authorization\1/,
        (found) => `${name === 'codex' ? 'X-Mine = "1"' : '"X-Mine": "1"'}, ${found}`,
      ),
    );
    expect(await run('install', [name, '--http', '--yes'])).toMatchObject({ code: 0 });
    expect(tokenIn(file)).toBe(token);
    expect(readFileSync(file, 'utf8')).toContain(`${hub.url}/mcp`);
    expect(readFileSync(file, 'utf8')).toContain('X-Mine');

    const [row] = await hub.tokens.list();
    await hub.tokens.revoke(row!.id);
    await run('install', [name, '--http', '--yes']);
    expect(tokenIn(file)).not.toBe(token);
    expect(await hub.tokens.verify(tokenIn(file))).toBeDefined();
    expect(readFileSync(file, 'utf8')).toContain('X-Mine');
  });
});

describe('leaves no valid token', () => {
  const unchanged = async (world: World, file: string): Promise<void> => {
    expect(await readFile(file, 'utf8')).toBe(CLIENT_FILES.cursor.text);
    expect(modeOf(file) & 0o077).toBe(process.platform === 'win32' ? 0 : 0o044);
    expect((await world.hub.tokens.list()).filter(({ revokedAt }) => revokedAt === undefined)).toEqual([]);
  };

  test.each([
    ['if no hub is running', { announced: false }, {}, [], 'hub start'],
    ['if nothing answers at the URL', {}, {}, ['--url', 'http://127.0.0.1:1'], 'cannot be reached'],
    ['inside a session', {}, { refusal: 'not here' }, [], 'not here'],
    ['for a hub with another store', {}, { foreignStore: true }, [], '--store'],
    ['if the user declines', {}, { answers: ['n'] }, [], 'Nothing was changed'],
    ['for --print', {}, {}, ['--print'], 'ccmcp_…'],
    [
      'if a flag is a setting of the hub',
      {},
      { flags: [['approvals', 'human']] },
      [],
      '--approvals is a setting of the hub',
    ],
  ] as const)('%s', async (_, setup, change, args, says) => {
    const world = await openWorld(setup);
    const file = await writeOriginal('cursor');
    const yes = 'answers' in change ? [] : ['--yes'];
    const { code, text } = await world.run(
      'install',
      ['cursor', '--http', ...yes, ...args],
      structuredClone(change) as never,
    );
    expect(text).toContain(says);
    if (!args.some((one) => one === '--print')) expect(code).toBe(1);
    await unchanged(world, file);
  });

  test('if the file cannot be written', async () => {
    const world = await openWorld();
    const file = await writeOriginal('cursor');
    // The temporary file that would replace it already exists.
    const stamp = new Date(0).toISOString().replace(/[:.]/g, '-');
    await writeFile(`${file}.new-${stamp}`, '');
    const { hub } = world;
    const access = {
      stateDir: place.stateDir,
      openStore: async () => Object.assign(Object.create(hub.store), { close: async () => undefined }),
    };
    const terminal = captureTerminal();
    const code = await runInstall('install', ['cursor', '--http', '--yes'], {
      ...{ env: {}, cwd: place.project, homedir: place.home, platform: 'linux', command: 'node', program: 'x' },
      ...{ flags: new Map(), terminal, now: new Date(0) },
      withHub: (work) => work(new HubAccess({ ...access, refusal: undefined, record: () => undefined, now: Date.now })),
    });
    expect(code).toBe(1);
    expect(terminal.text).toContain('EEXIST');
    expect(await hub.tokens.list()).toMatchObject([{ revokedAt: expect.any(Number) }]);
  });

  test('for a client that only supports commands', async () => {
    const { run, hub } = await openWorld();
    const takes = (name: ClientName): boolean => 'addHttp' in CLIENTS[name].format;
    expect((Object.keys(CLIENTS) as ClientName[]).filter((name) => !takes(name))).toEqual(['claude-desktop']);
    const { code, text } = await run('install', ['claude-desktop', '--http', '--yes']);
    expect(code).toBe(1);
    expect(text).toContain('attaches to the hub automatically');
    expect(await hub.tokens.list()).toEqual([]);
  });
});

test('a token that the user created is not revoked with the entry', async () => {
  const { run, hub } = await openWorld();
  const token = await hub.token('caller', { name: 'laptop' });
  const file = await writeOriginal(
    'cursor',
    JSON.stringify({
      mcpServers: { 'claude-code': { url: `${hub.url}/mcp`, headers: { authorization: `Bearer ${token}` } } },
    }),
  );
  const { text } = await run('uninstall', ['cursor', '--yes']);
  expect(text).toMatch(/laptop.*still works: claude-code-mcp token revoke t_/);
  expect(await hub.tokens.verify(token)).toBeDefined();
  expect(existsSync(file)).toBe(false);
});

test('an entry with a token cannot be uninstalled from inside a session', async () => {
  const { run, hub } = await openWorld();
  const file = await writeOriginal('cursor');
  await run('install', ['cursor', '--http', '--yes']);
  expect(await run('uninstall', ['cursor', '--yes'], { refusal: 'not here' })).toMatchObject({ code: 1 });
  expect(await hub.tokens.verify(tokenIn(file))).toBeDefined();
});

test('the toolset becomes part of the address; --attended and --expires apply to the token', async () => {
  const { run, hub } = await openWorld();
  const file = await writeOriginal('cursor');
  const args = ['cursor', '--http', '--yes', '--attended', '--expires', '30d'];
  await run('install', args, { flags: [['toolset', 'explicit']] });
  expect(readFileSync(file, 'utf8')).toContain(`"${hub.url}/mcp?toolset=explicit"`);
  expect(await hub.tokens.verify(tokenIn(file))).toMatchObject({ attended: true, expiresAt: expect.any(Number) });
});

test(
  'the real Claude Code connects to the hub with the installed entry, and uninstall revokes its token',
  { timeout: 60_000 },
  async () => {
    const env = place.env();
    expect(await runCommand(['hub', 'start', '--listen', '127.0.0.1:0'], { env })).toMatchObject({ code: 0 });
    try {
      expect(await runCommand(['install', 'claude-code', '--http', '--yes'], { env })).toMatchObject({ code: 0 });
      const claude = bundledClaudeCode(process.platform, process.arch)!.executable!;
      const get = promisify(execFile)(claude, ['mcp', 'get', 'claude-code'], { env, cwd: place.project });
      expect((await get).stdout).toMatch(/Connected[^]*Type: http/);
      expect((await runCommand(['uninstall', 'claude-code', '--yes'], { env })).stdout).toContain('revoked');
      expect((await runCommand(['token', 'list'], { env })).stdout).toMatch(/claude-code \(installed\).*revoked/);
    } finally {
      // Once its home is removed, the hub cannot be found any more.
      expect(await runCommand(['hub', 'stop'], { env })).toMatchObject({ code: 0 });
    }
  },
);
