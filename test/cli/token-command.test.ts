import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runToken } from '../../src/cli/token/run-token.ts';
import { openStore } from '../../src/store/open-store.ts';
import { Tokens } from '../../src/hub/auth/tokens.ts';

let stateDir: string;
beforeEach(async () => {
  stateDir = await mkdtemp(path.join(os.tmpdir(), 'claude-code-mcp-token-'));
});
afterEach(() => rm(stateDir, { recursive: true, force: true }));

const store = (): ReturnType<typeof openStore> => openStore({ url: undefined, stateDir, warn: () => undefined });

async function run(
  args: string[],
  { refusal }: { refusal?: string } = {},
): Promise<{ code: number; out: string; err: string; records: string[] }> {
  let [out, err] = ['', ''];
  const records: string[] = [];
  const code = await runToken(args, {
    openStore: store,
    refusal,
    write: (text) => (out += text),
    writeError: (text) => (err += text),
    now: Date.now,
    record: (what, details) => records.push(JSON.stringify([what, details])),
  });
  return { code, out, err, records };
}

test('a token is printed once, and is neither in the store nor in the audit record', async () => {
  const created = await run(['create', 'ci', '--role', 'caller', '--expires', '30d', '--json']);
  expect(created.code).toBe(0);
  const { id, token, ...rest } = JSON.parse(created.out) as Record<string, string>;
  expect(token).toMatch(/^ccmcp_[\w-]{43}$/);
  expect(rest).toEqual({ name: 'ci', role: 'caller', expiresAt: expect.any(String) });
  expect(Date.parse(rest['expiresAt']!) - Date.now()).toBeGreaterThan(29.9 * 86_400_000);
  expect(created.records.join()).not.toContain(token);
  expect(created.records.join()).toContain(`token created: ${id}`);
  for (const file of ['hub.db', 'hub.db-wal'])
    expect(await readFile(path.join(stateDir, file), 'latin1').catch(() => '')).not.toContain(token!.slice(6));
  expect((await stat(path.join(stateDir, 'hub.db'))).mode & 0o077).toBe(0);

  const listed = await run(['list']);
  expect(listed.out).toMatch(/^id +name +role +for +created +state\n/);
  expect(listed.out).toMatch(new RegExp(`^${id} +ci +caller +program .* [+-]\\d\\d:\\d\\d +expires `, 'm'));
  expect(listed.out).not.toContain(token);
});

test('a token is revoked by its id, or by its name if that is unique, while a hub has the store open', async () => {
  const hub = await store();
  const tokens = new Tokens(hub);
  const make = async (name: string): Promise<Record<string, string>> =>
    JSON.parse((await run(['create', name, '--role', 'viewer', '--json'])).out) as Record<string, string>;
  const [first, second, third] = [await make('one'), await make('two'), await make('two')];
  expect(await tokens.verify(first['token']!)).toMatchObject({ name: 'one' });
  expect((await run(['revoke', 'two'])).err).toContain('2 tokens have this name');
  expect((await run(['revoke', second['id']!])).code).toBe(0);
  expect((await run(['revoke', 'two'])).code).toBe(0);
  expect((await run(['revoke', 'one'])).out).toContain('revoked');
  for (const { token } of [first, second, third]) expect(await tokens.verify(token!)).toBeUndefined();
  expect((await run(['revoke', 'nobody'])).err).toContain('no such token');
  await hub.close();
});

test('names of tokens are printed with control and direction characters escaped', async () => {
  const hub = await store();
  const name = 'ci\u202e\u2066x';
  await new Tokens(hub).create({ name, role: 'viewer', attended: false });
  await hub.close();
  const { out } = await run(['list']);
  expect(out).toMatch(/ci\\u202e\\u2066x +viewer/);
  expect(out + (await run(['revoke', name])).out).not.toMatch(/(?!\n)\p{Cc}|\p{Cf}/u);
});

test('no token is created inside a session', async () => {
  const refused = await run(['create', 'mine', '--role', 'admin', '--json'], { refusal: 'not here' });
  expect(refused).toMatchObject({ code: 1, out: '', err: 'claude-code-mcp: not here\n' });
});

test.each([
  [['create'], 'needs a name'],
  [['create', 'a'], 'needs --role: viewer, caller, approver, admin'],
  [['create', 'a', '--role', 'root'], 'no role "root"; it takes viewer'],
  [['create', 'a', '--role', 'caller', '--expires', 'soon'], '--expires takes'],
  [['create', 'a', '--role', 'caller', '--expires', '0d'], '--expires takes'],
  [['create', 'a', 'b', '--role', 'caller'], 'does not take "b"'],
  [['list', '--role', 'caller'], 'token list has no flag "--role"'],
  [['revoke'], 'needs an id'],
  [['rotate'], 'create, list or revoke'],
  [['revok', 'ci'], 'did you mean revoke?'],
  [['create', 'a', '--rol', 'caller'], 'did you mean --role?'],
  [['list', '--yaml'], 'yaml'],
])('%j is refused', async (args, mistake) => {
  await expect(run(args)).rejects.toThrow(mistake);
});

test('a token expires after 90 days unless told otherwise', async () => {
  const expiry = async (...more: string[]): Promise<string | undefined> =>
    (JSON.parse((await run(['create', 'ci', '--role', 'viewer', '--json', ...more])).out) as { expiresAt?: string })
      .expiresAt;
  const days = (Date.parse((await expiry())!) - Date.now()) / 86_400_000;
  expect(days).toBeGreaterThan(89.9);
  expect(days).toBeLessThanOrEqual(90);
  expect(await expiry('--expires', 'never')).toBeUndefined();
});
