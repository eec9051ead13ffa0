import { expect, test } from 'vitest';
import { EngineClient } from '../../src/engine/client.ts';
import type { Principal } from '../../src/engine/rules/access.ts';
import type { SessionReading } from '../../src/engine/conversation/reading.ts';
import { isAtRest } from '../../src/engine/conversation/state.ts';
import { DomainError, messageOf } from '../../src/errors/errors.ts';
import { StoreUncertain, type Store } from '../../src/store/contract.ts';
import { eventually } from '../harness/eventually.ts';
import { STORES } from '../store/stores.ts';
import { ANN, TestClient } from './test-client.ts';
import { startTestHub, type TestHub, type TestHubOptions } from './test-hub.ts';

const CWD = process.cwd();
const BEN: Principal = { id: 'token:ben', name: 'ben', kind: 'token', role: 'caller', attended: false };
const EVE: Principal = { id: 'person:eve', name: 'eve', kind: 'person', role: 'approver', attended: true };
const DISK = { kind: 'token', token: undefined, options: {} } as const;

const hubOn = (store: Store, hub: string, options: TestHubOptions = {}): Promise<TestHub> =>
  startTestHub(store, { warn: () => undefined, hub, isFleet: true, ...options });

const clientOf = (hub: TestHub, principal = ANN): TestClient => new TestClient(hub, principal);

for (const kind of ['sqlite', 'postgres'] as const) {
  test(`a session on one hub can be read, waited for and driven through another (${kind})`, async () => {
    const store = await STORES[kind]();
    const [a, b] = [await hubOn(store, 'a'), await hubOn(store, 'b')];
    const { id } = await clientOf(a).start({ prompt: 'first', options: { cwd: CWD } });
    await a.engine.stored();

    const there = clientOf(b);
    const seen = async (): Promise<SessionReading> => there.read(id);
    expect((await seen()).record.state).toBe('running');
    expect((await there.client.list()).sessions.map((one) => one.id)).toEqual([id]);

    (await a.agent()).answer('done');
    await eventually(async () => isAtRest((await seen()).record.state), {
      what: 'the other hub sees the session at rest',
    });
    expect((await seen()).record.turn?.text).toBe('done');
    const types = ({ log }: Pick<SessionReading, 'log'>): string[] => log.from(1).events.map(({ type }) => type);
    expect(types(await seen())).toEqual(types(a.engine.session(id).read()));

    await there.reply({ sessionId: id, prompt: 'second', disk: DISK });
    expect((await seen()).record.state).toBe('running');
    expect(a.agents[0]?.prompts).toEqual(['first', 'second']);
    expect(b.agents).toEqual([]);

    const decision = (await a.agent()).ask('r1', 'Write', { file_path: 'x', content: 'y' });
    await eventually(async () => (await seen()).requests.length === 1, {
      what: 'the other hub shows the request',
    });
    await there.respond(id, 'r1', { decision: 'allow' });
    expect((await decision).behavior).toBe('allow');
    expect((await seen()).requests).toEqual([]);
    await expect(there.respond(id, 'r1', { decision: 'deny' })).rejects.toMatchObject({
      code: 'PERMISSION_REQUEST_NOT_FOUND',
    });

    expect(await there.cancel(id)).toBe(true);
    expect((await seen()).record.state).toBe('cancelled');
    expect(a.engine.session(id).state).toBe('cancelled');
  });
}

test('a session at rest can be driven through another hub after its own has restarted', async () => {
  const store = await STORES.sqlite();
  const b = await hubOn(store, 'b');
  const a = await hubOn(store, 'a');
  const { id } = await clientOf(a).start({ prompt: 'first', options: { cwd: CWD } });
  (await a.agent()).answer('done');
  await a.engine.stored();
  a.kill();
  const again = await hubOn(store, 'a');
  await clientOf(b).reply({ sessionId: id, prompt: 'second', disk: DISK });
  expect((await again.agent()).prompts).toEqual(['second']);
  expect(await store.session(id)).toMatchObject({ runsOn: again.by });
});

test('permissions are the same through every hub', async () => {
  const store = await STORES.sqlite();
  const [a, b] = [await hubOn(store, 'a'), await hubOn(store, 'b')];
  const { id } = await clientOf(a).start({ prompt: 'go', options: { cwd: CWD } });
  await a.engine.stored();
  await expect(clientOf(b, BEN).read(id)).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
  await expect(clientOf(b, BEN).cancel(id)).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
  await expect(clientOf(b, EVE).reply({ sessionId: id, prompt: 'x', disk: DISK })).rejects.toMatchObject({
    code: 'PERMISSION_DENIED',
  });
  void (await a.agent()).ask('r1', 'Write', { file_path: 'x', content: 'y' });
  await eventually(() => a.engine.session(id).requests.length === 1, { what: 'the request is open' });
  await a.engine.stored();
  await clientOf(b, EVE).respond(id, 'r1', { decision: 'deny', message: 'no' });
  expect((await store.request('r1'))?.outcome).toMatchObject({ decision: 'deny', by: EVE.id, source: 'human' });
});

test('errors are passed back unchanged, and secrets are not passed on', async () => {
  const store = await STORES.sqlite();
  const [a, b] = [await hubOn(store, 'a'), await hubOn(store, 'b')];
  const { id } = await clientOf(a).start({ prompt: 'go', options: { cwd: CWD } });
  await a.engine.stored();
  const there = clientOf(b);
  await expect(there.reply({ sessionId: id, prompt: 'x', disk: DISK })).rejects.toMatchObject({ code: 'SESSION_BUSY' });
  const disk = { ...DISK, options: { env: { API_TOKEN: 'hunter2' } } };
  await expect(there.reply({ sessionId: id, prompt: 'x', disk })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('env.API_TOKEN') as string,
  });
  expect(JSON.stringify(await store.feed({ after: 0, limit: 1000 }))).not.toContain('hunter2');
});

const shared = { sharedWorkspace: CWD };

test('a movable session starts on the hub with the most free slots, any other on the hub that got the call', async () => {
  const store = await STORES.sqlite();
  const a = await hubOn(store, 'a', { ...shared, places: { free: 5, max: 10 } });
  const b = await hubOn(store, 'b', { ...shared, places: { free: 2, max: 10 } });
  const placed = await clientOf(b).start({ prompt: 'anywhere', options: { cwd: CWD } });
  expect(await store.session(placed.id)).toMatchObject({ runsOn: { hub: 'a' }, principal: ANN.id });
  expect((await a.agent()).prompts).toEqual(['anywhere']);
  const staying = await clientOf(b).start({ prompt: 'here', options: { cwd: CWD, env: { TOKEN: 'x' } } });
  await b.engine.stored();
  expect(await store.session(staying.id)).toMatchObject({ runsOn: { hub: 'b' } });
  expect((await b.agent()).prompts).toEqual(['here']);
});

test('a hub that refuses or does not answer is skipped; if all are full, the error says how full', async () => {
  const store = await STORES.sqlite();
  const deaf = await startTestHub(store, {
    warn: () => undefined,
    hub: 'deaf',
    ...shared,
    places: { free: 9, max: 9 },
  });
  expect(deaf.agents).toEqual([]);
  const full = await startTestHub(store, {
    argv: ['--max-sessions', '1'],
    warn: () => undefined,
    hub: 'full',
    isFleet: true,
    ...shared,
    places: { free: 7, max: 7 },
  });
  await full.engine.start({ prompt: 'occupied', options: { cwd: CWD, env: { TOKEN: 'x' } } });
  const here = await hubOn(store, 'here', { ...shared, places: { free: 1, max: 4 } });
  const session = await clientOf(here).start({ prompt: 'go', options: { cwd: CWD } });
  await here.engine.stored();
  expect(await store.session(session.id)).toMatchObject({ runsOn: { hub: 'here' } });
  expect(deaf.agents).toEqual([]);

  const other = await STORES.sqlite();
  await hubOn(other, 'x', { ...shared, places: { free: 0, max: 3 } });
  const y = await hubOn(other, 'y', { ...shared, places: { free: 0, max: 2 } });
  await expect(clientOf(y).start({ prompt: 'go', options: { cwd: CWD } })).rejects.toMatchObject({
    code: 'TOO_MANY_SESSIONS',
    message: expect.stringMatching(/x: 3 of 3.*y: 2 of 2/) as string,
  });
});

test('an unmovable session of a lost hub can still be read, and calls to it name the machine', async () => {
  let now = Date.now();
  const store = await STORES.sqlite({ now: () => now });
  const [a, b] = [await hubOn(store, 'a'), await hubOn(store, 'b')];
  const { id } = await clientOf(a).start({ prompt: 'go', options: { cwd: CWD } });
  (await a.agent()).answer('done');
  await a.engine.stored();
  now += 20_000;
  a.kill();
  const there = clientOf(b);
  expect((await there.read(id)).record.turn?.text).toBe('done');
  await expect(there.reply({ sessionId: id, prompt: 'more', disk: DISK })).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringContaining('runs on a') as string,
  });
  expect(b.agents).toEqual([]);
});

test('a form works for a session that another hub runs', async () => {
  const store = await STORES.sqlite();
  const [a, b] = [await hubOn(store, 'a'), await hubOn(store, 'b')];
  const { id } = await clientOf(a).start({ prompt: 'go', options: { cwd: CWD } });
  await a.engine.stored();
  const shown: string[] = [];
  const withForms = new EngineClient(b.engine, {
    principal: { ...ANN, attended: true },
    showsForms: true,
    showForm: async (_session, request) => {
      shown.push(request.id);
      return { kind: 'answered', answer: { decision: 'allow' } };
    },
  });
  withForms.connect();
  await withForms.read(id);
  const decision = (await a.agent()).ask('r1', 'Write', { file_path: 'x', content: 'y' });
  expect((await decision).behavior).toBe('allow');
  expect(shown).toEqual(['r1']);
  await eventually(async () => (await withForms.read(id)).requests.length === 0, { what: 'the request is settled' });
  expect((await store.request('r1'))?.outcome).toMatchObject({ source: 'human', by: ANN.id });
});

test('a command taken by a call whose reply was lost is still carried out, once', async () => {
  const store = await STORES.sqlite();
  const flaky = Object.create(store) as Store;
  let isLost = false;
  flaky.takeCommands = async (...args) => {
    const taken = await store.takeCommands(...args);
    if (taken.length === 0 || isLost) return taken;
    isLost = true;
    throw new DomainError('UNAVAILABLE', 'the connection was lost');
  };
  const [a, b] = [await hubOn(flaky, 'a'), await hubOn(store, 'b')];
  const { id } = await clientOf(a).start({ prompt: 'first', options: { cwd: CWD } });
  (await a.agent()).answer('done');
  await a.engine.stored();
  await clientOf(b).reply({ sessionId: id, prompt: 'second', disk: DISK });
  expect(isLost).toBe(true);
  expect(a.agents[0]?.prompts).toEqual(['first', 'second']);
});

test('a command that may have been queued is never reported as not done: it is sent again, or its outcome is unknown', async () => {
  const store = await STORES.sqlite();
  const flaky = Object.create(store) as Store;
  let lost = 1;
  flaky.write = async (changes, by) => {
    await store.write(changes, by);
    if (changes.some(({ type }) => type === 'command.add') && lost-- > 0)
      throw new StoreUncertain(new DomainError('UNAVAILABLE', 'the connection was lost'));
  };
  const [a, b] = [await hubOn(store, 'a'), await hubOn(flaky, 'b')];
  const { id } = await clientOf(a).start({ prompt: 'first', options: { cwd: CWD } });
  const agent = await a.agent();
  agent.answer('done');
  await a.engine.stored();
  await clientOf(b).reply({ sessionId: id, prompt: 'second', disk: DISK });
  agent.answer('done');
  await a.engine.stored();
  lost = 10;
  await expect(clientOf(b).reply({ sessionId: id, prompt: 'third', disk: DISK })).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringContaining('The outcome is unknown') as string,
  });
  expect(agent.prompts).toEqual(['first', 'second', 'third']);
});

test('a session that this hub may not continue can be read here while its own hub is away', async () => {
  let now = Date.now();
  const store = await STORES.sqlite({ now: () => now });
  const strict = (hub: string): Promise<TestHub> =>
    startTestHub(store, {
      argv: ['--deny-options', 'systemPrompt'],
      warn: () => undefined,
      hub,
      isFleet: true,
      ...shared,
    });
  const a = await startTestHub(store, { warn: () => undefined, hub: 'a', ...shared });
  const { id } = await clientOf(a).start({ prompt: 'go', options: { cwd: CWD, systemPrompt: 'Be brief.' } });
  (await a.agent()).answer('done');
  await a.engine.stored();
  const here = await strict('here');
  expect((await clientOf(here).read(id)).record.turn?.text).toBe('done');
  now += 20_000;
  await store.renewLease(here.by, 60_000, { host: 'here', sharedWorkspace: CWD });
  // The hub's view of the leases is up to half a second old.
  const replied = (): Promise<string> =>
    clientOf(here)
      .reply({ sessionId: id, prompt: 'more', disk: DISK })
      .then(() => 'done', messageOf);
  await eventually(async () => (await replied()).includes('this one may not'), {
    what: 'the other hub is known to be away',
  });
  expect((await clientOf(here).read(id)).record.turn?.text).toBe('done');
  // Even on a hub that has not read it before.
  expect((await clientOf(await strict('late')).read(id)).record.turn?.text).toBe('done');
  expect(await store.session(id)).toMatchObject({ runsOn: a.by });
});

test('a queued command is withdrawn when its hub turns out to be away, and the error says what to do', async () => {
  let now = Date.now();
  const store = await STORES.sqlite({ now: () => now });
  // This hub takes no commands.
  const a = await startTestHub(store, { warn: () => undefined, hub: 'a', ...shared });
  const b = await hubOn(store, 'b', shared);
  const ids: string[] = [];
  for (const env of [undefined, { TOKEN: 'x' }]) {
    const { id } = await clientOf(a).start({ prompt: 'go', options: { cwd: CWD, ...(env && { env }) } });
    (await a.agent()).answer('done');
    a.agents.at(-1)?.answer('done');
    ids.push(id);
  }
  await a.engine.stored();
  const [moves = '', stays = ''] = ids;
  const there = clientOf(b);
  const replies = [moves, stays].map((sessionId) => there.reply({ sessionId, prompt: 'more', disk: DISK }));
  const outcomes = Promise.allSettled(replies);
  const queued = async (): Promise<boolean> => {
    const { entries } = await store.feed({ after: 0, limit: 1_000 });
    return entries.filter(({ kind }) => kind === 'command').length === 2;
  };
  await eventually(queued, { what: 'both commands are queued' });
  a.kill();
  now += 20_000;
  await store.renewLease(b.by, 60_000, { host: 'b', sharedWorkspace: CWD });
  expect(await outcomes).toMatchObject([
    { reason: { code: 'UNAVAILABLE', message: expect.stringContaining('Nothing was done; try again') as string } },
    { reason: { code: 'UNAVAILABLE', message: expect.stringContaining('until that machine is back') as string } },
  ]);
  await there.reply({ sessionId: moves, prompt: 'more', disk: DISK });
  expect((await b.agent()).prompts).toEqual(['more']);
  expect(a.agents.flatMap(({ prompts }) => prompts)).toEqual(['go', 'go']);
});
