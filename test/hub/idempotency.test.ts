import { expect, test } from 'vitest';
import { put, session } from '../store/rows.ts';
import { STORES } from '../store/stores.ts';
import { ADMIN, CALLER, openApi, OTHER, type ApiWorld, type WorldOptions } from './api-world.ts';

/** Each start that reaches the engine creates a session with the next number. */
async function openCounting(options: WorldOptions = {}): Promise<ApiWorld & { started: () => number }> {
  const world = await openApi(options);
  let count = 0;
  world.engine['start'] = async (principal) => {
    const id = `n${++count}`;
    await world.write(put(session(id, world.hub, { principal: principal.id })));
    return { sessionId: id, warnings: [] };
  };
  return Object.assign(world, { started: () => count });
}

const start = (world: ApiWorld, key: string, { prompt = 'go', by = CALLER } = {}) =>
  world.call(by, 'POST', '/api/v1/sessions', { key, body: { prompt, cwd: '/work' } });

test('a repeated call gets the stored answer, and nothing is done twice', async () => {
  const world = await openCounting();
  const first = await start(world, 'k1');
  expect(first).toMatchObject({ status: 201, json: { session: { sessionId: 'n1' } } });
  expect(await start(world, 'k1')).toEqual(first);
  expect(await start(world, 'k2')).toMatchObject({ json: { session: { sessionId: 'n2' } } });
  expect(world.started()).toBe(2);
});

test('a call repeated while the first is in progress waits for it', async () => {
  const world = await openCounting();
  const answers = await Promise.all([start(world, 'k1'), start(world, 'k1'), start(world, 'k1')]);
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  expect(world.started()).toBe(1);
});

test('keys are separate for each principal', async () => {
  const world = await openCounting();
  await start(world, 'k1');
  expect(await start(world, 'k1', { by: OTHER })).toMatchObject({ json: { session: { sessionId: 'n2' } } });
});

test('reusing a key for a different call is an error, and does nothing', async () => {
  const world = await openCounting();
  await start(world, 'k1');
  const other = await start(world, 'k1', { prompt: 'something else' });
  expect(other).toMatchObject({ status: 400, json: { error: { code: 'INVALID_ARGUMENT' } } });
  const elsewhere = await world.call(CALLER, 'POST', '/api/v1/sessions/n1/cancel', { key: 'k1', body: {} });
  expect(elsewhere.status).toBe(400);
  expect(world.started()).toBe(1);
});

test('an error is stored as the answer; an invalid call does not use up its key', async () => {
  const world = await openCounting();
  const wrong = await world.call(CALLER, 'POST', '/api/v1/sessions', { key: 'k1', body: { promt: 'go' } });
  expect(wrong.status).toBe(400);
  expect((await start(world, 'k1')).status).toBe(201);
  const missing = () => world.call(CALLER, 'POST', '/api/v1/sessions/s9/cancel', { key: 'k2', body: {} });
  const first = await missing();
  expect(first.status).toBe(404);
  expect(await missing()).toEqual(first);
});

test('a call that an earlier incarnation started but did not finish is not run again', async () => {
  const store = await STORES.sqlite();
  const before = await openApi({ store });
  // The hub dies while starting the session.
  before.engine['start'] = () => new Promise(() => {});
  void start(before, 'k1');
  await expect.poll(() => store.commandByKey('carl', 'k1')).toBeDefined();
  const world = await openCounting({ store });
  for (let time = 0; time < 2; time++) {
    const again = await start(world, 'k1');
    expect(again).toMatchObject({ status: 503, json: { error: { code: 'UNAVAILABLE' } } });
    expect(JSON.stringify(again)).toContain('outcome is unknown');
  }
  expect(world.started()).toBe(0);
});

test('a call started by another hub is waited for while that hub is alive; after that its outcome is unknown', async () => {
  let now = Date.now();
  const store = await STORES.sqlite({ now: () => now });
  const other = await openApi({ store, hubName: 'hub-2' });
  let end = (): void => undefined;
  other.engine['start'] = async (principal) => {
    await new Promise<void>((resolve) => (end = resolve));
    await other.write(put(session('n1', other.hub, { principal: principal.id })));
    return { id: 'n1', warnings: [] };
  };
  const world = await openCounting({ store });
  const first = start(other, 'k1');
  await expect.poll(() => store.commandByKey('carl', 'k1')).toBeDefined();
  const repeat = start(world, 'k1');
  end();
  expect(await repeat).toEqual(await first);
  const late = start(other, 'k2');
  await expect.poll(() => store.commandByKey('carl', 'k2')).toBeDefined();
  now += 120_000;
  await store.renewLease(world.hub, 60_000, {});
  const unknown = await start(world, 'k2');
  expect(unknown).toMatchObject({ status: 503, json: { error: { code: 'UNAVAILABLE' } } });
  expect(world.started()).toBe(0);
  // The other hub was only late: its own caller gets the same answer.
  await store.renewLease(other.hub, 60_000, {});
  end();
  expect(await late).toEqual(unknown);
});

test('a call’s secrets are not stored with its key', async () => {
  const world = await openCounting();
  const body = { prompt: 'the prompt', cwd: '/work', env: { TOKEN: 'hunter2' } };
  await world.call(CALLER, 'POST', '/api/v1/sessions', { key: 'k1', body });
  expect(JSON.stringify(await world.store.commandByKey('carl', 'k1'))).not.toMatch(/hunter2|the prompt/);
  const token = () => world.call(ADMIN, 'POST', '/api/v1/tokens', { key: 't1', body: { name: 'ci', role: 'caller' } });
  const made = await token();
  expect(made.status).toBe(201);
  const stored = JSON.stringify(await world.store.commandByKey('anna', 't1'));
  expect(stored).not.toContain((made.json as { token: string }).token);
  expect(await token()).toMatchObject({
    status: 400,
    json: { error: { message: expect.stringContaining('shown only once') as string } },
  });
  expect(await world.store.tokens()).toHaveLength(1);
});

test.each(['', 'two words', 'ü', 'x'.repeat(201)])('the key %j is refused', async (key) => {
  const world = await openCounting();
  expect((await start(world, key)).status).toBe(400);
});
