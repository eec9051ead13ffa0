import { expect, test } from 'vitest';
import { EngineClient } from '../../src/engine/engine-client.ts';
import type { Principal } from '../../src/engine/principal.ts';
import { isAtRest } from '../../src/engine/state.ts';
import type { Store } from '../../src/store/contract.ts';
import { eventually } from '../harness/eventually.ts';
import { STORES } from '../store/stores.ts';
import { beginLife, type FleetPlace, type HubLife } from './hub-life.ts';

const CWD = process.cwd();
const ANN: Principal = { id: 'token:ann', name: 'ann', kind: 'token', role: 'caller', attended: false };
const BEN: Principal = { id: 'token:ben', name: 'ben', kind: 'token', role: 'caller', attended: false };
const EVE: Principal = { id: 'person:eve', name: 'eve', kind: 'person', role: 'approver', attended: true };
const DISK = { kind: 'token', token: undefined, options: {} } as const;

const hubOn = (store: Store, hub: string, place: FleetPlace = {}): Promise<HubLife> =>
  beginLife(store, [], undefined, () => undefined, { hub, isFleet: true, ...place });

const clientOf = ({ engine }: HubLife, principal = ANN): EngineClient =>
  new EngineClient(engine, {
    principal,
    rules: engine.rulesFor({ settings: engine.settings, cwd: undefined }),
    showsForms: false,
  });

for (const kind of ['memory', 'postgres'] as const) {
  test(`a session that runs on one hub is seen, waited for and driven through another (${kind})`, async () => {
    const store = await STORES[kind]();
    const [a, b] = [await hubOn(store, 'a'), await hubOn(store, 'b')];
    const { id } = await clientOf(a).start({ prompt: 'first', options: { cwd: CWD } });
    await a.engine.stored();

    const there = clientOf(b);
    const seen = await there.session(id);
    expect(seen.elsewhere).toBe('a');
    expect(seen.state).toBe('running');
    expect((await there.listSessions()).map((one) => one.id)).toEqual([id]);

    (await a.agent()).answer('done');
    await eventually(() => (isAtRest(seen.state) ? true : undefined), { what: 'rest seen from the other hub' });
    expect(seen.result?.text).toBe('done');
    const types = (session: typeof seen): string[] => session.log.from(1).events.map(({ type }) => type);
    expect(types(seen)).toEqual(types(a.engine.session(id)));

    const replied = await there.reply({ sessionId: id, prompt: 'second', disk: DISK });
    expect(replied.state).toBe('running');
    expect(a.agents[0]?.prompts).toEqual(['first', 'second']);
    expect(b.agents).toEqual([]);

    const decision = (await a.agent()).ask('r1', 'Write', { file_path: 'x', content: 'y' });
    await eventually(async () => ((await there.session(id)).requests.length === 1 ? true : undefined), {
      what: 'the request on the other hub',
    });
    await there.respond(id, 'r1', { decision: 'allow' });
    expect((await decision).behavior).toBe('allow');
    expect((await there.session(id)).requests).toEqual([]);
    await expect(there.respond(id, 'r1', { decision: 'deny' })).rejects.toMatchObject({
      code: 'PERMISSION_REQUEST_NOT_FOUND',
    });

    expect(await there.cancel(id)).toBe(true);
    expect((await there.session(id)).state).toBe('cancelled');
    expect(a.engine.session(id).state).toBe('cancelled');
  });
}

test('whoever may not here may not there either', async () => {
  const store = await STORES.memory();
  const [a, b] = [await hubOn(store, 'a'), await hubOn(store, 'b')];
  const { id } = await clientOf(a).start({ prompt: 'go', options: { cwd: CWD } });
  await a.engine.stored();
  await expect(clientOf(b, BEN).session(id)).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
  await expect(clientOf(b, BEN).cancel(id)).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
  await expect(clientOf(b, EVE).reply({ sessionId: id, prompt: 'x', disk: DISK })).rejects.toMatchObject({
    code: 'PERMISSION_DENIED',
  });
  void (await a.agent()).ask('r1', 'Write', { file_path: 'x', content: 'y' });
  await a.engine.stored();
  await clientOf(b, EVE).respond(id, 'r1', { decision: 'deny', message: 'no' });
  expect((await store.request('r1'))?.outcome).toMatchObject({ decision: 'deny', by: EVE.id, source: 'human' });
});

test('errors come back as they were, and a secret is not passed on', async () => {
  const store = await STORES.memory();
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
