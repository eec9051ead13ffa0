/** Hubs on one store: which hub owns a session, and what happens when that hub is gone. */

import { beforeEach, describe, expect, test } from 'vitest';
import type { Session } from '../../src/engine/session/session.ts';
import { TakeOver } from '../../src/fleet/take-over.ts';
import type { Store } from '../../src/store/contract.ts';
import { eventually } from '../harness/eventually.ts';
import { manualNow } from '../store/manual-now.ts';
import { STORES } from '../store/stores.ts';
import { startTestHub, type TestHub, type TestHubOptions } from './test-hub.ts';

const CWD = process.cwd();

let store: Store;
let clock: ReturnType<typeof manualNow>;

const hubNamed = (hub: string, options: TestHubOptions = {}): Promise<TestHub> =>
  startTestHub(store, { warn: () => undefined, hub, sharedWorkspace: CWD, ...options });

const takeOver = ({ engine, by }: TestHub): Promise<void> =>
  new TakeOver({ store, by, engine, log: () => undefined }).look();

const reply = ({ engine }: TestHub, { id }: Pick<Session, 'id'>): Promise<Session> =>
  engine.reply({ sessionId: id, prompt: 'go on', disk: { kind: 'open', options: {} } });

async function startOn(hub: TestHub, options = {}): Promise<Session> {
  const session = await hub.engine.start({ prompt: 'go', options });
  await hub.engine.stored();
  return session;
}

const alive = (...hubs: TestHub[]): number => hubs.flatMap(({ agents }) => agents).filter((one) => one.alive).length;

describe.each(['sqlite', 'postgres'] as const)('%s', (kind) => {
  beforeEach(async () => {
    clock = manualNow();
    store = await STORES[kind]({ now: clock.now });
  });

  test('running and waiting sessions are taken over once the lease has expired, but not unmovable ones', async () => {
    const [a, b] = [await hubNamed('a'), await hubNamed('b')];
    const [atWork, waiting, stays] = [await startOn(a), await startOn(a), await startOn(a)];
    void a.agents[1]?.ask('r1', 'Bash', { command: 'npm test' });
    await eventually(() => waiting.requests.length === 1, { what: 'the request is open' });
    stays.mobility.stays('for this test');
    await a.engine.stored();
    a.kill();
    await takeOver(b);
    expect(b.engine.sessions).toEqual([]);
    clock.advance(15_001);
    await store.renewLease(b.by, 15_000, {});
    await takeOver(b);
    await b.engine.stored();
    expect(b.engine.sessions.map(({ id }) => id).sort()).toEqual([atWork.id, waiting.id].sort());
    expect(b.engine.session(atWork.id)).toMatchObject({ state: 'error' });
    expect(b.engine.session(atWork.id).conversation.result?.text).toContain(
      'the hub stopped while it worked; reply to continue',
    );
    expect(b.engine.session(waiting.id).requests).toMatchObject([{ id: 'r1' }]);
    expect(await store.session(stays.id)).toMatchObject({ runsOn: a.by, state: { tag: 'running' } });
    await reply(b, atWork);
    expect((await b.agent()).launch.history).toEqual({ kind: 'resume' });
    // Its own hub gets it back after a restart.
    const again = await hubNamed('a');
    expect(again.engine.sessions.map(({ id }) => id)).toEqual([stays.id]);
  });

  test('a hub that wakes up stops writing to the session it lost, and continues its others', async () => {
    const [a, b] = [await hubNamed('a'), await hubNamed('b')];
    const [moved, kept] = [await startOn(a), await startOn(a)];
    kept.mobility.stays('for this test');
    await a.engine.stored();
    const forgotten: string[] = [];
    a.engine.stream.subscribe((notice) => {
      if (notice.kind === 'forgotten') forgotten.push(notice.sessionId);
    });
    clock.advance(15_001);
    await store.renewLease(b.by, 15_000, {});
    await takeOver(b);
    await b.engine.stored();
    const before = await store.events(moved.id, { limit: 1_000 });
    await store.renewLease(a.by, 15_000, {});
    a.agents[0]?.answer('too late');
    await expect(a.engine.stored()).rejects.toMatchObject({ code: 'UNAVAILABLE', message: /nother hub/ });
    expect(forgotten).toEqual([moved.id]);
    expect(a.agents.map((agent) => agent.alive)).toEqual([false, true]);
    expect(() => moved.decide('r1', { behavior: 'allow' }, 'human')).toThrow(/nother hub/);
    a.agents[1]?.answer('in time');
    await eventually(
      () =>
        a.engine.stored()?.then(
          () => true,
          () => false,
        ),
      { what: 'all pending writes are stored' },
    );
    expect(await store.session(kept.id)).toMatchObject({ state: { tag: 'idle' }, runsOn: a.by });
    expect(await store.events(moved.id, { limit: 1_000 })).toEqual(before);
    expect(a.fenced).toBe(false);
    // It does not get the session back while the other hub is alive.
    await expect(a.engine.finder.recall(moved.id)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });

  test('only one of several competing hubs gets a session, and one process starts', async () => {
    const hubs = await Promise.all(['b', 'c', 'd'].map((name) => hubNamed(name)));
    const a = await hubNamed('a');
    const session = await startOn(a);
    void a.agents[0]?.ask('r1', 'Bash', { command: 'npm test' });
    await eventually(() => session.requests.length === 1, { what: 'the request is open' });
    await a.engine.stored();
    a.kill();
    await store.releaseLease(a.by);
    await Promise.all(hubs.map(takeOver));
    const owners = hubs.filter(({ engine }) => engine.find(session.id));
    expect(owners).toHaveLength(1);
    owners[0]?.engine.respond(session.id, 'r1', { decision: 'allow' });
    await owners[0]?.agent();
    await Promise.allSettled(hubs.map(async (hub) => hub.engine.finder.recall(session.id)));
    expect(alive(...hubs)).toBe(1);
  });
});

describe('sqlite only', () => {
  beforeEach(async () => {
    clock = manualNow();
    store = await STORES.sqlite({ now: clock.now });
  });

  test('a session at rest moves to the hub that is asked for it; the error for an unmovable one names its machine', async () => {
    const [a, b] = [await hubNamed('a'), await hubNamed('b')];
    const [moves, stays] = [await startOn(a), await startOn(a, { env: { API_TOKEN: 'x' } })];
    for (const agent of a.agents) agent.answer('done');
    await a.engine.stored();
    await expect(b.engine.finder.recall(moves.id)).rejects.toMatchObject({ message: /runs on another hub/ });
    a.kill();
    await store.renewLease(a.by, 0, { host: 'machine-a' });
    await takeOver(b);
    expect(b.engine.sessions).toEqual([]);
    expect(await b.engine.finder.recall(moves.id)).toMatchObject({ state: 'idle' });
    await expect(b.engine.finder.recall(stays.id)).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: /stays on the machine machine-a, which is unavailable/,
    });
  });

  test('a hub does not claim sessions that it cannot run, or may not run under its rules', async () => {
    const a = await hubNamed('a');
    const session = await startOn(a, { systemPrompt: 'Be brief.' });
    a.kill();
    await store.releaseLease(a.by);
    const others = [
      await hubNamed('elsewhere', { argv: ['--allowed-dirs', '/usr'] }),
      await hubNamed('strict', { argv: ['--deny-options', 'systemPrompt'] }),
      await startTestHub(store, { hub: 'alone' }),
    ];
    for (const hub of others) {
      await takeOver(hub);
      await expect(hub.engine.finder.recall(session.id)).rejects.toBeInstanceOf(Error);
    }
    expect(await store.session(session.id)).toMatchObject({ runsOn: a.by });
  });

  test('a hub without its lease stops movable sessions, keeps their requests open, and starts none until it has the lease back', async () => {
    const lease = { held: true };
    const a = await hubNamed('a', { lease });
    const [atWork, waiting, stays] = [await startOn(a), await startOn(a), await startOn(a)];
    stays.mobility.stays('for this test');
    await eventually(() => !stays.mobility.lent, { what: 'the store knows that it stays' });
    void a.agents[1]?.ask('r1', 'Bash', { command: 'npm test' });
    await eventually(() => waiting.requests.length === 1, { what: 'the request is open' });
    lease.held = false;
    await a.engine.fleet.loseContact();
    expect(a.agents.map((agent) => agent.alive)).toEqual([false, false, true]);
    expect(atWork.state).toBe('error');
    expect(atWork.conversation.result?.text).toContain(
      'the hub lost contact with the store while it worked; reply to continue',
    );
    expect({ state: waiting.state, requests: waiting.requests.length }).toEqual({ state: 'waiting', requests: 1 });
    expect(stays.state).toBe('running');
    await expect(reply(a, atWork)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(a.agents).toHaveLength(3);
    lease.held = true;
    await reply(a, atWork);
    expect(alive(a)).toBe(2);
    expect(a.engine.fleet.places).toEqual({ free: 8, max: 10 });
  });
});
