/** What every store promises to hubs that share it, tested on each implementation. */

import { describe, expect, test } from 'vitest';
import { manualNow } from './manual-now.ts';
import type { Change } from '../../src/schema/store.ts';
import { append, command, event, finish, put, send, session, T0 } from './rows.ts';
import { KINDS, openStore, ref, type OpenedStore, type OpenOptions } from './stores.ts';

describe.each(KINDS)('%s', (kind) => {
  const opened = (options?: OpenOptions): Promise<OpenedStore> => openStore(kind, options);

  describe('commands', () => {
    test('are taken in order, one at a time per session, and never twice', async () => {
      const { store, hub } = await opened();
      await store.write([put(session('s1', hub)), put(session('s2', hub))], hub);
      await store.write([send(command('s1', 'c1')), send(command('s1', 'c2')), send(command('s2', 'c3'))]);
      const take = async (limit = 10): Promise<string[]> => (await store.takeCommands(hub, limit)).map(({ id }) => id);
      expect(await take(1)).toEqual(['c1']);
      expect(await take()).toEqual(['c3']);
      expect(await take()).toEqual([]);
      const done = { status: 'done' as const, at: T0, result: { sessionId: 's1' } };
      await store.write([finish('s1', 'c1', done), append(event('s1', 1))], hub);
      await store.write([finish('s1', 'c1', done)], hub);
      expect(await store.command('c1')).toMatchObject({ progress: done });
      expect(await take()).toEqual(['c2']);
      const again = store.write([finish('s1', 'c1', { status: 'failed', at: T0, error: 'no' })], hub);
      await expect(again).rejects.toMatchObject({ conflict: 'outOfStep' });
    });

    test('taken by a call whose reply was lost are handed out again, to the same incarnation only', async () => {
      const { store, hub } = await opened();
      await store.write([put(session('s1', hub)), put(session('s2', hub))], hub);
      await store.write([send(command('s1', 'c1')), send(command('s1', 'c2')), send(command('s2', 'c3'))]);
      await store.takeCommands(hub, 1);
      expect(await store.takeCommands(hub, 5, new Set(['c1']))).toMatchObject([{ id: 'c3' }]);
      expect(await store.takeCommands(hub, 5, new Set(['c3']))).toMatchObject([
        { id: 'c1', progress: { status: 'taken' } },
      ]);
      expect(await store.takeCommands(hub, 5, new Set(['c1', 'c3']))).toEqual([]);
      const other = ref(await store.acquireLease('hub-b', 15_000, {}));
      expect(await store.takeCommands(other, 5, new Set())).toEqual([]);
    });

    test('with the same key from the same principal are added once; the key is refused for a different command', async () => {
      const { store, hub } = await opened();
      await store.write([put(session('s1', hub))], hub);
      await store.write([send(command('s1', 'c1', { key: 'k' }))]);
      await store.write([
        send(command('s1', 'c2', { key: 'k' })),
        send(command('s1', 'c3', { key: 'k', principal: 'ci' })),
      ]);
      expect(await store.command('c2')).toBeUndefined();
      expect(await store.commandByKey('local', 'k')).toMatchObject({ id: 'c1', progress: { status: 'queued' } });
      expect(await store.commandByKey('ci', 'k')).toMatchObject({ id: 'c3' });
      expect(await store.keyedBytes('ci')).toBeGreaterThan(50);
      expect(await store.keyedBytes('nobody')).toBe(0);
      const other = store.write([send(command('s1', 'c4', { key: 'k', body: { do: 'cancel' } }))]);
      await expect(other).rejects.toMatchObject({
        conflict: 'keyReused',
        code: 'INVALID_ARGUMENT',
        stored: { id: 'c1' },
      });
      const two = [send(command('s1', 'c5', { key: 'n' })), send(command('s1', 'c6', { key: 'n' }))];
      await store.write(two);
      expect(await store.command('c6')).toBeUndefined();
    });

    test('added concurrently with the same key are stored once', async () => {
      const { store, hub } = await opened();
      await store.write([put(session('s1', hub))], hub);
      await Promise.all(Array.from({ length: 8 }, (_, n) => store.write([send(command('s1', `c${n}`, { key: 'k' }))])));
      const stored = await Promise.all(Array.from({ length: 8 }, (_, n) => store.command(`c${n}`)));
      expect(stored.filter(Boolean)).toHaveLength(1);
    });

    test('that start a session wait on the hub they were placed on, and can be moved until taken', async () => {
      const { store, hub } = await opened();
      const other = ref(await store.acquireLease('hub-b', 15_000, {}));
      const start = command('s9', 'c1', { placedOn: 'hub-b', body: { do: 'start' } });
      await store.write([send(start)]);
      expect(await store.takeCommands(hub, 5)).toEqual([]);
      await store.write([send({ ...start, placedOn: 'hub-a' })]);
      expect(await store.takeCommands(other, 5)).toEqual([]);
      expect(await store.takeCommands(hub, 5)).toMatchObject([{ id: 'c1' }]);
      const done = finish('s9', 'c1', { status: 'done', at: T0, result: null });
      await store.write([put(session('s9', hub)), done], hub);
      expect(await store.command('c1')).toMatchObject({ progress: { status: 'done' } });
    });

    test('can be withdrawn by any hub until they are taken', async () => {
      const { store, hub } = await opened();
      await store.write([put(session('s1', hub))], hub);
      await store.write([send(command('s1', 'c1')), send(command('s1', 'c2')), send(command('s1', 'c3'))]);
      await store.takeCommands(hub, 1);
      const withdraw = (commandId: string): Change => ({ type: 'command.withdraw', commandId, at: T0 + 5 });
      for (let time = 0; time < 2; time++) await store.write([withdraw('c2')]);
      const withdrawn = { status: 'failed', at: T0 + 5, error: 'withdrawn' };
      expect(await store.command('c2')).toMatchObject({ progress: withdrawn });
      const begun = { conflict: 'begun', stored: { status: 'taken' } };
      await expect(store.write([withdraw('c1')])).rejects.toMatchObject(begun);
      await expect(store.write([withdraw('c9')])).rejects.toMatchObject({ conflict: 'begun' });
      await store.write([finish('s1', 'c1', { status: 'done', at: T0, result: {} })], hub);
      expect(await store.takeCommands(hub, 5)).toMatchObject([{ id: 'c3' }]);
    });

    test('taken by a past incarnation end as unknown, and later ones proceed', async () => {
      const { store, hub } = await opened();
      await store.write([put(session('s1', hub))], hub);
      await store.write([send(command('s1', 'c1')), send(command('s1', 'c2'))]);
      await store.takeCommands(hub, 1);
      const restarted = ref(await store.acquireLease('hub-a', 15_000, {}));
      expect(await store.command('c1')).toMatchObject({ progress: { status: 'unknown' } });
      // Even though the session has not been claimed yet.
      expect(await store.takeCommands(restarted, 5)).toMatchObject([{ id: 'c2' }]);
      const failed = { status: 'failed' as const, at: T0, error: 'no' };
      await store.write([finish('s1', 'c2', failed)], restarted);
      expect(await store.command('c2')).toMatchObject({ progress: failed });
    });
  });

  describe('leases', () => {
    test('an earlier incarnation of a hub can neither write, take, renew nor claim', async () => {
      const { store, hub: earlier } = await opened();
      await store.write([put(session('s1', earlier))], earlier);
      const now = ref(await store.acquireLease('hub-a', 15_000, {}));
      expect(now.fence).toBeGreaterThan(earlier.fence);
      const fenced = { conflict: 'fenced', code: 'UNAVAILABLE' };
      await expect(store.write([append(event('s1', 1))], earlier)).rejects.toMatchObject(fenced);
      await expect(store.write([put(session('s2', earlier))], earlier)).rejects.toMatchObject(fenced);
      await expect(store.takeCommands(earlier, 1)).rejects.toMatchObject(fenced);
      await expect(store.renewLease(earlier, 15_000, {})).rejects.toMatchObject(fenced);
      await expect(store.claimSessions(earlier, ['s1'])).rejects.toMatchObject(fenced);
      await store.releaseLease(earlier);
      expect(await store.leases()).toMatchObject([{ hub: 'hub-a', fence: now.fence, expired: false }]);
      // The new incarnation owns no session until it claims it.
      await expect(store.write([append(event('s1', 1))], now)).rejects.toMatchObject(fenced);
      expect(await store.claimSessions(now, ['s1', 'unknown'])).toMatchObject([{ id: 's1', runsOn: now }]);
      await store.write([append(event('s1', 1))], now);
      expect(await store.session('s2')).toBeUndefined();
      await expect(store.write([append(event('s1', 2))])).rejects.toMatchObject({ code: 'INTERNAL' });
      await expect(store.write([put(session('s3', earlier))], now)).rejects.toMatchObject(fenced);
    });

    test('a session can be taken over only after its hub’s lease has expired by the store’s clock', async () => {
      const clock = manualNow();
      const { store, hub: a } = await opened({ now: clock.now });
      const b = ref(await store.acquireLease('hub-b', 60_000, { places: 3 }));
      const movable = (id: string): Change => put(session(id, a, { movable: true }));
      await store.write([movable('s1'), movable('s2'), send(command('s1', 'c1'))], a);
      await store.takeCommands(a, 1);
      clock.advance(14_999);
      expect(await store.claimSessions(b, ['s1'])).toEqual([]);
      await store.renewLease(a, 15_000, { places: 1 });
      clock.advance(14_999);
      expect(await store.claimSessions(b, ['s1'])).toEqual([]);
      clock.advance(2);
      expect(await store.leases()).toMatchObject([
        { hub: 'hub-a', expired: true, info: { places: 1 } },
        { hub: 'hub-b', expired: false, info: { places: 3 } },
      ]);
      expect(await store.claimSessions(b, ['s1'])).toMatchObject([{ id: 's1', runsOn: b }]);
      expect(await store.command('c1')).toMatchObject({ progress: { status: 'unknown' } });
      // Once awake, the hub can no longer write to the session it lost, but keeps the other.
      await store.renewLease(a, 15_000, {});
      await expect(store.write([append(event('s1', 1))], a)).rejects.toMatchObject({ conflict: 'fenced', stored: b });
      const mixed = store.write([append(event('s2', 1)), append(event('s1', 1))], a);
      await expect(mixed).rejects.toMatchObject({ conflict: 'fenced' });
      await store.write([append(event('s2', 1))], a);
      expect((await store.events('s2', { limit: 9 })).lastId).toBe(1);
      await store.releaseLease(a);
      expect(await store.claimSessions(b, ['s1', 's2'])).toMatchObject([{ id: 's2' }]);
    });

    test('a session that cannot move waits for its own hub, together with its running command', async () => {
      const { store, hub } = await opened();
      await store.write([put(session('s1', hub)), send(command('s1', 'c1'))], hub);
      await store.write([send(command('unstarted', 'c2', { placedOn: 'hub-a' }))]);
      await store.takeCommands(hub, 2);
      await store.releaseLease(hub);
      const other = ref(await store.acquireLease('hub-b', 15_000, {}));
      expect(await store.claimSessions(other, ['s1', 'unstarted'])).toEqual([]);
      expect(await store.command('c1')).toMatchObject({ progress: { status: 'taken' } });
      // No hub will ever know how this one ended.
      expect(await store.command('c2')).toMatchObject({ progress: { status: 'unknown' } });
      const restarted = ref(await store.acquireLease('hub-a', 15_000, {}));
      expect(await store.claimSessions(restarted, ['s1'])).toMatchObject([{ id: 's1', runsOn: restarted }]);
    });

    test('only one of several hubs that claim the same session at once gets it', async () => {
      const { store, hub } = await opened();
      await store.write([put(session('s1', hub, { movable: true }))], hub);
      await store.releaseLease(hub);
      const hubs = await Promise.all(['b', 'c', 'd'].map(async (id) => ref(await store.acquireLease(id, 60_000, {}))));
      const claims = await Promise.all(hubs.map((by) => store.claimSessions(by, ['s1'])));
      expect(claims.flat()).toHaveLength(1);
      expect(await store.session('s1')).toEqual(claims.flat()[0]);
    });
  });
});
