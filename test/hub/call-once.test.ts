import { expect, test } from 'vitest';
import { DomainError } from '../../src/errors/errors.ts';
import { IDEMPOTENCY_META_KEY } from '../../src/schema/enums.ts';
import { Once } from '../../src/hub/once.ts';
import type { Store } from '../../src/store/contract.ts';
import { STORES } from '../store/stores.ts';
import { textEvent } from '../harness/agent-messages.ts';
import { openAccessWorld } from './access-world.ts';

const keyed = (key: unknown) => ({ [IDEMPOTENCY_META_KEY]: key });

test('a tool call with an idempotency key in its _meta is carried out once', async () => {
  const world = await openAccessWorld();
  const client = await world.connect('owner', 'compact');
  const start = (key: unknown, prompt = 'go') =>
    client.callTool({ name: 'claude_code', arguments: { prompt, cwd: process.cwd() }, _meta: keyed(key) });
  const [first, second] = await Promise.all([start('k1'), start('k1')]);
  expect(second).toEqual(first);
  expect(await start('k1')).toEqual(first);
  expect(world.hub.agents).toHaveLength(1);
  for (const wrong of [await start('k1', 'something else'), await start(7), await start('two words')])
    expect(wrong).toMatchObject({
      isError: true,
      structuredContent: { error: expect.stringContaining('INVALID_ARGUMENT') as string },
    });
  expect(world.hub.agents).toHaveLength(1);
  expect(await start('k2')).not.toEqual(first);
  expect(world.hub.agents).toHaveLength(2);
});

test('a key on a call that changes nothing stores nothing, and a repeat sees the present state', async () => {
  const world = await openAccessWorld();
  const { sessionId } = await world.make('waiting');
  const client = await world.connect('owner', 'compact');
  const poll = (action: string) =>
    client.callTool({
      name: 'claude_code_check',
      arguments: { action, sessionId, responseMode: 'full' },
      _meta: keyed('k1'),
    });
  await poll('poll');
  world.hub.agents[0]!.say(textEvent('said later'));
  expect(JSON.stringify(await poll('poll'))).toContain('said later');
  await client.callTool({ name: 'claude_code_session', arguments: { action: 'list' }, _meta: keyed('k1') });
  const { entries } = await world.store.feed({ after: 0, limit: 100 });
  expect(entries.map(({ kind }) => kind)).not.toContain('command');
});

test('an outcome too large to be kept is kept in a short form that says so, and nothing is done twice', async () => {
  const world = await openAccessWorld();
  const { sessionId, requestId } = await world.make('waiting');
  const agent = world.hub.agents[0]!;
  agent.say(textEvent('x'.repeat(500_000)));
  const client = await world.connect('owner', 'compact');
  const respond = () =>
    client.callTool({
      name: 'claude_code_check',
      arguments: {
        action: 'respond_permission',
        sessionId,
        requestId,
        decision: 'allow',
        responseMode: 'full',
        includeEvents: true,
      },
      _meta: keyed('k1'),
    });
  const first = await respond();
  expect(JSON.stringify(first).length).toBeGreaterThan(500_000);
  const repeat = await respond();
  expect(repeat.isError).toBeFalsy();
  expect(repeat.structuredContent).toMatchObject({
    sessionId,
    status: 'running',
    warnings: [expect.stringMatching(/^This was carried out\. Its answer had \d+ bytes/)],
  });
  expect(JSON.parse((repeat.content[0] as { text: string }).text)).toEqual(repeat.structuredContent);
  const { entries } = await world.store.feed({ after: 0, limit: 100 });
  const commands = entries.filter(({ kind }) => kind === 'command');
  expect(commands).toHaveLength(1);
  expect(JSON.stringify(commands).length).toBeLessThan(5_000);
});

test('what is stored for the keys of one principal is bounded in bytes, and another has its own bound', async () => {
  const store = await STORES.sqlite();
  const { hub, fence } = await store.acquireLease('hub', 15_000, {});
  const once = (on: Store) => new Once({ store: on, hub: { hub, fence }, now: Date.now });
  const call = (principal: string, key: string) => ({
    ...{ keyName: 'Idempotency-Key', key, principal, operation: 'start', path: '/', input: {} },
  });
  const large = { status: 201, json: { session: { sessionId: 's1', title: 'x'.repeat(60_000) } } };
  const running = once(store);
  for (let count = 0; count < 320; count++)
    await running.run(call('token:a', `k${count}`), () => Promise.resolve(large));
  expect(await store.keyedBytes('token:a')).toBeLessThan(17 * 1024 * 1024);
  const unused = () => Promise.reject(new Error('done twice'));
  expect((await running.run(call('token:a', 'k0'), unused)).answer).toEqual(large);
  expect((await running.run(call('token:a', 'k319'), unused)).answer).toEqual({
    status: 201,
    json: { session: { sessionId: 's1' }, note: expect.stringContaining('was carried out') as string },
  });
  await running.run(call('token:b', 'k0'), () => Promise.resolve(large));
  expect((await running.run(call('token:b', 'k0'), unused)).answer).toEqual(large);

  const full = Object.create(store) as Store;
  full.keyedBytes = () => Promise.resolve(64 * 1024 * 1024);
  await expect(once(full).run(call('token:a', 'new'), unused)).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' });
  expect((await once(full).run(call('token:a', 'k0'), unused)).answer).toEqual(large);
});

test('an outcome for which the store was away for a moment is stored later, for repeats at every hub', async () => {
  const store = await STORES.sqlite();
  const { hub, fence } = await store.acquireLease('hub', 15_000, {});
  const other = await store.acquireLease('other', 15_000, {});
  const flaky = Object.create(store) as Store;
  let failures = 2;
  flaky.write = (changes, by) =>
    changes[0]?.type === 'command.finish' && failures-- > 0
      ? Promise.reject(new DomainError('UNAVAILABLE', 'the store is away'))
      : store.write(changes, by);
  const call = {
    ...{ keyName: 'Idempotency-Key', key: 'k', principal: 'token:a', operation: 'start', path: '/', input: {} },
  };
  const here = new Once({ store: flaky, hub: { hub, fence }, now: Date.now });
  await expect(here.run(call, () => Promise.resolve({ done: true }))).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  const elsewhere = new Once({ store, hub: { hub: other.hub, fence: other.fence }, now: Date.now });
  const unused = () => Promise.reject(new Error('done twice'));
  expect(await elsewhere.run(call, unused)).toEqual({ answer: { done: true }, isRepeat: true });
});
