/** The contract of every store, tested on each implementation. */

import { describe, expect, test } from 'vitest';
import type { Change } from '../../src/schema/store.ts';
import { NEVER, StoreConflict, type Store } from '../../src/store/contract.ts';
import { follow } from '../../src/store/wake-ups.ts';
import { manualNow } from './manual-now.ts';
import {
  allow,
  append,
  ask,
  command,
  event,
  grant,
  put,
  request,
  send,
  session,
  settle,
  subscription,
  T0,
  token,
} from './rows.ts';
import { KINDS, openStore, STORES, type OpenedStore, type OpenOptions } from './stores.ts';

describe.each(KINDS)('%s', (kind) => {
  const open = (options?: OpenOptions): Promise<Store> => STORES[kind](options);
  const opened = (options?: OpenOptions): Promise<OpenedStore> => openStore(kind, options);

  describe('sessions', () => {
    test('are read back as written, whatever text they contain', async () => {
      const { store, hub } = await opened();
      const odd = session('s1', hub, {
        principal: 'https://issuer.example|jürgen 🦊',
        title: `it's "100%" \\ _ done`,
        options: { nested: { list: [1, null, 'NUL \0 and a lone \ud800'] }, none: undefined },
        workspace: { type: 'worktree', path: '/w', branch: 'claude/1', base: 'main' },
        state: { tag: 'error', message: 'line\nbreak' },
      });
      await store.write([put(odd)], hub);
      expect(await store.session('s1')).toEqual(JSON.parse(JSON.stringify(odd)));
      await store.write([put({ ...odd, state: { tag: 'running' } })], hub);
      expect(await store.session('s1')).toMatchObject({ state: { tag: 'running' } });
      expect(await store.session('s2')).toBeUndefined();
    });

    test('are returned as copies', async () => {
      const { store, hub } = await opened();
      const row = session('s1', hub);
      await store.write([put(row), append(event('s1', 1))], hub);
      row.totals['turns'] = 99;
      (await store.session('s1'))!.totals['turns'] = 98;
      for (const entry of (await store.feed({ after: 0, limit: 9 })).entries) Object.assign(entry.row, { id: 'other' });
      expect((await store.session('s1'))!.totals['turns']).toBe(1);
      expect((await store.events('s1', { limit: 1 })).events[0]!.id).toBe(1);
    });

    test('are listed by activity, filtered, searched and paged without gaps or repeats', async () => {
      const { store, hub } = await opened();
      const rows = Array.from({ length: 25 }, (_, index) =>
        session(`s${String(index).padStart(2, '0')}`, hub, {
          // Several with the same time, so that a page ends among them.
          lastActiveAt: T0 + Math.floor(index / 4),
          principal: index % 2 === 0 ? 'local' : 'token:ci',
          state: { tag: index % 5 === 0 ? 'running' : 'idle' },
          ...(index === 7 && { title: 'Fix the 100%_CPU Bug' }),
          ...(index === 8 && { archivedAt: T0 }),
        }),
      );
      await store.write(rows.map(put), hub);
      const all = await everyPage((after) => store.sessions({ limit: 4, ...(after && { after }) }));
      expect(all.map(({ id }) => id)).toEqual(rows.map(({ id }) => id).reverse());

      const ids = async (query: Omit<Parameters<Store['sessions']>[0], 'limit'>): Promise<string[]> =>
        (await store.sessions({ limit: 100, ...query })).items.map(({ id }) => id);
      expect(await ids({ principal: 'token:ci' })).toHaveLength(12);
      expect(await ids({ principal: 'nobody' })).toEqual([]);
      expect(await ids({ tags: ['running'] })).toEqual(['s20', 's15', 's10', 's05', 's00']);
      expect(await ids({ tags: [] })).toEqual([]);
      expect(await ids({ hub: 'hub-b' })).toEqual([]);
      expect(await ids({ archived: true })).toEqual(['s08']);
      expect(await ids({ archived: false })).toHaveLength(24);
      await store.write([put(session('s08', hub))], hub);
      expect(await ids({ archived: true })).toEqual([]);
      expect(await ids({ search: '100%_cpu' })).toEqual(['s07']);
      expect(await ids({ search: '1%cpu' })).toEqual([]);
      expect(await ids({ search: 'S1' })).toHaveLength(10);
      expect(await ids({ search: 'work', tags: ['running'], principal: 'local' })).toEqual(['s20', 's10', 's00']);
      await expect(store.sessions({ limit: 1, after: 'nonsense' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    });
  });

  describe('pushes', () => {
    const query = { limit: 10, holdMs: 60_000 };
    const limits = { most: 20, remindAfterMs: 600_000 };
    const taken = async (store: Store, more = {}): Promise<string[]> =>
      (await store.takePushes({ ...query, ...more })).pushes.map(
        ({ push: { subscriptionId, requestId } }) => `${subscriptionId} ${requestId}`,
      );
    const subscribed = async (...subscriptions: ReturnType<typeof subscription>[]) => {
      const clock = manualNow(T0 + 10);
      const { store, hub } = await opened({ now: clock.now });
      await store.write([
        { type: 'token.put', token: token('t_anna') },
        { type: 'token.put', token: token('t_carl') },
      ]);
      for (const row of subscriptions) await store.putSubscription(row, limits);
      return { store, hub, clock };
    };

    test('an open request is taken once for every subscription that may see it, by one caller', async () => {
      const own = { credential: 't_carl', principal: 'token:t_carl', readsAll: false };
      const { store, hub } = await subscribed(subscription('p1'), subscription('p2', own));
      await store.write([put(session('s1', hub)), ask(request('s1', 'r1', { createdAt: T0 + 1 }))], hub);
      const hers = session('s2', hub, { principal: 'token:t_carl' });
      await store.write([put(hers), ask(request('s2', 'r2', { createdAt: T0 + 2 }))], hub);
      const both = await Promise.all([taken(store), taken(store)]);
      expect(both.flat().sort()).toEqual(['p1 r1', 'p1 r2', 'p2 r2']);
      expect(await taken(store)).toEqual([]);
    });

    test('what was taken and not reported is taken again, and a limit leaves the rest for the next', async () => {
      const { store, hub, clock } = await subscribed(subscription('p1'));
      const requests = ['r1', 'r2', 'r3'].map((id, index) => ask(request('s1', id, { createdAt: T0 + index })));
      await store.write([put(session('s1', hub)), ...requests], hub);
      expect(await taken(store, { limit: 2 })).toEqual(['p1 r1', 'p1 r2']);
      expect(await taken(store)).toEqual(['p1 r3']);
      clock.advance(59_999);
      expect(await taken(store)).toEqual([]);
      clock.advance(1);
      expect(await taken(store)).toEqual(['p1 r1', 'p1 r2', 'p1 r3']);
    });

    test('an announced request comes again when it is due, and at once when it is settled', async () => {
      const { store, hub, clock } = await subscribed(subscription('p1'));
      const asked = request('s1', 'r1', { createdAt: T0 + 1 });
      await store.write([put(session('s1', hub)), ask(asked)], hub);
      const { pushes, now } = await store.takePushes(query);
      await store.savePush({ ...pushes[0]!.push, sent: 1, notBefore: now, remindAt: now + 600_000 });
      expect(await store.takePushes(query)).toMatchObject({ pushes: [], nextInMs: 600_000 });
      clock.advance(600_000);
      expect(await store.takePushes(query)).toMatchObject({ pushes: [{ push: { sent: 1 }, request: { id: 'r1' } }] });
      await store.savePush({ ...pushes[0]!.push, sent: 2, notBefore: now, remindAt: NEVER });
      expect(await store.takePushes(query)).toEqual({ pushes: [], now: now + 600_000 });
      await store.write([settle(asked)], hub);
      const settled = await store.takePushes(query);
      expect(settled.pushes).toMatchObject([{ push: { sent: 2 }, request: { outcome: { decision: 'allow' } } }]);
      await store.removePush(settled.pushes[0]!.push);
      clock.advance(600_000);
      expect(await taken(store)).toEqual([]);
    });

    test('a request that is gone with its session is taken like a settled one', async () => {
      const { store, hub, clock } = await subscribed(subscription('p1'));
      await store.write([put(session('s1', hub)), ask(request('s1', 'r1', { createdAt: T0 + 1 }))], hub);
      const { pushes, now } = await store.takePushes(query);
      await store.savePush({ ...pushes[0]!.push, sent: 1, notBefore: now, remindAt: NEVER });
      await store.write([{ type: 'session.remove', sessionId: 's1', principal: 'local', at: T0 }], hub);
      clock.advance(1);
      expect((await store.takePushes(query)).pushes).toMatchObject([{ push: { requestId: 'r1' }, request: undefined }]);
    });

    test('what was open before the subscription is announced only after the time for a reminder', async () => {
      const { store, hub, clock } = await subscribed();
      await store.write([put(session('s1', hub)), ask(request('s1', 'r1', { createdAt: T0 + 999 }))], hub);
      await store.putSubscription(subscription('p1'), limits);
      await store.putSubscription(subscription('p2'), { ...limits, remindAfterMs: undefined });
      expect(await store.takePushes(query)).toMatchObject({ pushes: [], nextInMs: 600_000 });
      // The clocks of hubs differ.
      await store.write([ask(request('s1', 'r2', { createdAt: T0 - 999 }))], hub);
      expect(await taken(store)).toEqual(['p1 r2', 'p2 r2']);
      clock.advance(600_000);
      expect(await taken(store)).toEqual(['p1 r1', 'p1 r2', 'p2 r2']);
    });

    test('a subscription ends with its credential, and nothing is sent to it any more', async () => {
      const signedIn = token('s_1', { kind: 'sign-in', expiresAt: T0 + 1000 });
      const { store, hub, clock } = await subscribed(subscription('p1', { credential: 's_1' }), subscription('p2'));
      await store.write([{ type: 'token.put', token: signedIn }]);
      await store.putSubscription(subscription('p1', { credential: 's_1' }), limits);
      await store.write([put(session('s1', hub)), ask(request('s1', 'r1', { createdAt: T0 + 1 }))], hub);
      expect((await store.subscriptions()).map(({ id }) => id)).toEqual(['p1', 'p2']);
      await store.write([{ type: 'token.put', token: token('t_anna', { revokedAt: T0 + 1 }) }]);
      expect(await taken(store)).toEqual(['p1 r1']);
      clock.advance(60_000);
      expect(await taken(store)).toEqual([]);
      expect(await store.subscriptions()).toEqual([]);
    });

    test('a subscription is replaced by its id, bounded in number, and removed with what it was to be told', async () => {
      const { store, hub } = await subscribed();
      for (const at of [1, 2, 3])
        await store.putSubscription(subscription(`p${at}`, { createdAt: T0 + at }), { ...limits, most: 2 });
      await store.putSubscription(subscription('p3', { createdAt: T0 + 3, name: 'Firefox' }), { ...limits, most: 2 });
      expect(await store.subscriptions()).toMatchObject([{ id: 'p2' }, { id: 'p3', name: 'Firefox' }]);
      await store.write([put(session('s1', hub)), ask(request('s1', 'r1', { createdAt: T0 + 9 }))], hub);
      const { pushes } = await store.takePushes(query);
      await store.removeSubscription('p2');
      await store.removeSubscription('p2');
      await store.savePush({ ...pushes[0]!.push, notBefore: 0 });
      expect(await taken(store)).toEqual([]);
    });
  });

  describe('events', () => {
    test('are numbered without gaps and read from a cursor, and a repeated append changes nothing', async () => {
      const { store, hub } = await opened();
      await store.write([put(session('s1', hub)), append(event('s1', 1)), append(event('s1', 2))], hub);
      await store.write([append(event('s1', 2)), append(event('s1', 3, { keep: true, type: 'result' }))], hub);
      const page = await store.events('s1', { after: 1, limit: 10 });
      expect(page).toEqual({
        events: [event('s1', 2), event('s1', 3, { keep: true, type: 'result' })],
        lastId: 3,
        droppedThrough: 0,
      });
      expect((await store.events('s1', { limit: 2 })).events.map(({ id }) => id)).toEqual([1, 2]);
      expect(await store.events('nobody', { limit: 2 })).toEqual({ events: [], lastId: 0, droppedThrough: 0 });
      await expect(store.write([append(event('s1', 5))], hub)).rejects.toMatchObject({ conflict: 'outOfStep' });
      await expect(store.write([append(event('s2', 1))], hub)).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
      const later = { ...append(event('s1', 7)), afterDropped: true } as Change;
      await store.write([later, append(event('s1', 8))], hub);
      await store.write([later], hub);
      const { events, ...bounds } = await store.events('s1', { limit: 10 });
      expect(events.map(({ id }) => id)).toEqual([1, 2, 3, 7, 8]);
      expect(bounds).toEqual({ lastId: 8, droppedThrough: 6 });
    });

    test('are bounded per session; those marked `keep` are dropped last, and the reader learns what is missing', async () => {
      const { store, hub } = await opened({ bounds: { maxEvents: 10, maxBytes: 100_000 } });
      await store.write([put(session('s1', hub)), put(session('s2', hub)), append(event('s2', 1))], hub);
      for (let id = 1; id <= 40; id++) await store.write([append(event('s1', id, { keep: id % 10 === 0 }))], hub);
      const page = await store.events('s1', { limit: 100 });
      const kept = page.events.map(({ id }) => id);
      expect(kept).toEqual(expect.arrayContaining([10, 20, 30, 40, 39, 38]));
      expect(kept.length).toBeLessThanOrEqual(14);
      expect(page.lastId).toBe(40);
      expect(page.droppedThrough).toBeGreaterThanOrEqual(25);
      expect(kept.filter((id) => id > page.droppedThrough)).toHaveLength(40 - page.droppedThrough);
      expect((await store.events('s2', { limit: 100 })).events).toHaveLength(1);
    });

    test('are bounded in bytes, and the newest is never dropped', async () => {
      const { store, hub } = await opened({ bounds: { maxEvents: 100, maxBytes: 1_000 } });
      await store.write([put(session('s1', hub))], hub);
      const batch = Array.from({ length: 5 }, (_, index) => append(event('s1', index + 1, { data: 'é'.repeat(200) })));
      await store.write(batch, hub);
      expect((await store.events('s1', { limit: 100 })).events.map(({ id }) => id)).toEqual([4, 5]);
      await store.write([append(event('s1', 6, { data: 'x'.repeat(5_000) }))], hub);
      expect((await store.events('s1', { limit: 100 })).events.map(({ id }) => id)).toEqual([6]);
    });
  });

  describe('the feed', () => {
    test('contains every row once, at the position of its last change, in write order', async () => {
      const { store, hub } = await opened();
      const first = request('s1', 'r1');
      await store.write([put(session('s1', hub)), append(event('s1', 1)), ask(first)], hub);
      await store.write([send(command('s1', 'c1'))]);
      const initial = await store.feed({ after: 0, limit: 100 });
      expect(initial.entries.map(({ kind: what, row }) => [what, row.id])).toEqual([
        ['session', 's1'],
        ['event', 1],
        ['request', 'r1'],
        ['command', 'c1'],
      ]);
      await store.write([settle(first), append(event('s1', 2)), put(session('s1', hub))], hub);
      const next = await store.feed({ after: initial.last, limit: 100 });
      expect(next.entries.map(({ kind: what }) => what)).toEqual(['request', 'event', 'session']);
      expect(next.entries[0]!.row).toEqual({ ...first, outcome: allow() });
      expect((await store.feed({ after: 0, limit: 100 })).entries.map(({ kind: what }) => what)).toEqual([
        'event',
        'command',
        'request',
        'event',
        'session',
      ]);
      const some = await store.feed({ after: 0, limit: 2 });
      expect(some.last).toBe(some.entries[1]!.seq);
      expect(await store.feed({ after: next.last, limit: 100 })).toEqual({ entries: [], last: next.last });
      expect((await store.feed({ after: 999_999, limit: 1 })).last).toBe(next.last);
    });

    test('is read in pages of limited size; a row that is larger than a page is a page', async () => {
      const { store, hub } = await opened();
      await store.write([put(session('s1', hub))], hub);
      const start = (await store.feed({ after: 0, limit: 9 })).last;
      const sized = (id: number, bytes: number) => append(event('s1', id, { data: { text: 'ä'.repeat(bytes / 2) } }));
      const sizes = [1000, 1000, 1000, 50_000, 1000];
      await store.write(
        sizes.map((bytes, index) => sized(index + 1, bytes)),
        hub,
      );
      const pages: number[][] = [];
      for (let after = start, more: true | undefined = true; more;) {
        const page = await store.feed({ after, limit: 9, maxBytes: 2500 });
        pages.push(page.entries.map(({ row }) => Number(row.id)));
        ({ last: after, more } = page);
      }
      expect(pages).toEqual([[1, 2], [3], [4], [5]]);
      // What anybody asks for has a bound too.
      const large = Array.from({ length: 5 }, (_, index) => sized(index + 6, 400_000));
      await store.write(large, hub);
      const page = await store.feed({ after: start + 5, limit: 500, maxBytes: Infinity });
      expect(page).toMatchObject({ entries: [{ row: { id: 6 } }, { row: { id: 7 } }], more: true });
      const stop = new AbortController();
      const followed: number[] = [];
      for await (const { entries } of follow(store, start, stop.signal, { lookEveryMs: 60_000 })) {
        followed.push(...entries.map(({ row }) => Number(row.id)));
        if (followed.length === 10) stop.abort();
      }
      expect(followed).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    });

    test('can be followed as it grows, from any position', async () => {
      const { store, hub } = await opened();
      await store.write([put(session('s1', hub))], hub);
      const stop = new AbortController();
      const seen: number[] = [];
      const following = (async () => {
        for await (const page of follow(store, 0, stop.signal, { limit: 3, lookEveryMs: 60_000 })) {
          for (const { kind: what, row } of page.entries) if (what === 'event') seen.push(row.id);
          if (seen.at(-1) === 50) stop.abort();
        }
      })();
      for (let id = 1; id <= 50; id++) await store.write([append(event('s1', id))], hub);
      await following;
      expect(seen).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
    });
  });

  describe('requests', () => {
    test('stay in the inbox, oldest first, until they are settled, once', async () => {
      const { store, hub } = await opened();
      const [old, young] = [request('s1', 'r1'), request('s2', 'r2', { createdAt: T0 + 5, expiresAt: T0 + 50 })];
      await store.write([put(session('s1', hub)), put(session('s2', hub, { principal: 'token:ci' }))], hub);
      await store.write([ask(young), ask(old)], hub);
      expect((await store.inbox({ limit: 10 })).items).toEqual([old, young]);
      expect((await store.inbox({ limit: 10, principal: 'token:ci' })).items).toEqual([young]);
      expect((await store.inbox({ limit: 10, sessionId: 's1' })).items).toEqual([old]);
      expect((await everyPage((after) => store.inbox({ limit: 1, ...(after && { after }) }))).length).toBe(2);

      await store.write([settle(old)], hub);
      await store.write([settle(old), ask(old)], hub);
      expect(await store.request('r1')).toEqual({ ...old, outcome: allow() });
      expect((await store.inbox({ limit: 10 })).items).toEqual([young]);
    });

    test('a second decision is refused with an error that carries the first, and nothing in its batch is stored', async () => {
      const { store, hub } = await opened();
      const row = request('s1', 'r1');
      await store.write([put(session('s1', hub)), ask(row), settle(row, allow('anna'))], hub);
      const late = store.write([append(event('s1', 1)), settle(row, allow('ben'))], hub);
      await expect(late).rejects.toMatchObject({ conflict: 'settled', stored: allow('anna') });
      await expect(late).rejects.toBeInstanceOf(StoreConflict);
      expect((await store.events('s1', { limit: 9 })).lastId).toBe(0);
      const unknown = store.write([settle(request('s1', 'r9'))], hub);
      await expect(unknown).rejects.toMatchObject({ conflict: 'unknownRequest', code: 'PERMISSION_REQUEST_NOT_FOUND' });
      // A session cannot settle another session's request.
      await store.write([put(session('s2', hub))], hub);
      const foreign = store.write([settle({ ...row, sessionId: 's2' })], hub);
      await expect(foreign).rejects.toMatchObject({ conflict: 'unknownRequest' });
    });
  });

  test('undelivered messages keep their order until they are delivered', async () => {
    const { store, hub } = await opened();
    await store.write([put(session('s1', hub))], hub);
    const message = (id: string) => ({ id, sessionId: 's1', at: T0, content: { text: id } });
    const queue = (id: string) => ({ type: 'message.put' as const, message: message(id) });
    await store.write([queue('m2'), queue('m1')], hub);
    await store.write([queue('m3'), queue('m2')], hub);
    expect(await store.messages('s1')).toEqual([message('m2'), message('m1'), message('m3')]);
    const delivered = { type: 'message.delivered' as const, sessionId: 's1', messageId: 'm2' };
    await store.write([delivered, delivered, append(event('s1', 1))], hub);
    expect((await store.messages('s1')).map(({ id }) => id)).toEqual(['m1', 'm3']);
    await store.write([queue('m4'), { ...delivered, messageId: 'm4' }], hub);
    expect((await store.messages('s1')).map(({ id }) => id)).toEqual(['m1', 'm3']);
  });

  test('a grant is closed once', async () => {
    const { store, hub } = await opened();
    const [first, second] = [grant('s1', 'g1'), grant('s1', 'g2', { updatedInput: { command: 'ls -l' } })];
    const add = (row: typeof first) => ({ type: 'grant.add' as const, grant: row });
    const use = (toolUseId: string) => ({
      ...{ type: 'grant.close' as const, sessionId: 's1', grantId: 'g1' },
      closed: { how: 'used' as const, at: T0, toolUseId },
    });
    await store.write([put(session('s1', hub)), add(second), add(first)], hub);
    expect(await store.grants('s1')).toEqual([first, second]);
    await store.write([use('toolu_1')], hub);
    await store.write([use('toolu_1'), add(first)], hub);
    expect(await store.grants('s1')).toEqual([second]);
    await expect(store.write([use('toolu_2')], hub)).rejects.toMatchObject({ conflict: 'outOfStep' });
  });

  test('tokens are found by hash, and concurrent hubs agree on a setting', async () => {
    const store = await open();
    const row = token('t1', { expiresAt: T0 + 9 });
    await store.write([
      { type: 'token.put', token: row },
      { type: 'token.put', token: token('t2', { kind: 'sign-in' }) },
    ]);
    expect(await store.tokenByHash('hash-of-t1')).toEqual(row);
    expect(await store.tokenByHash('hash-of-t9')).toBeUndefined();
    await store.write([{ type: 'token.put', token: { ...row, revokedAt: T0 } }]);
    expect(await store.token('t1')).toEqual({ ...row, revokedAt: T0 });
    expect((await store.tokens()).map(({ id }) => id)).toEqual(['t1', 't2']);

    expect(await store.setting('form-key')).toBeUndefined();
    const agreed = await Promise.all(['a', 'b', 'c'].map((value) => store.ensureSetting('form-key', value)));
    expect(new Set(agreed).size).toBe(1);
    expect(await store.setting('form-key')).toBe(agreed[0]);
    await store.write([{ type: 'setting.put', key: 'form-key', value: 'new' }]);
    expect(await store.ensureSetting('form-key', 'x')).toBe('new');
  });

  test('forgets old sessions at rest with everything that belongs to them, but never open requests or work', async () => {
    const clock = manualNow();
    const { store, hub } = await opened({ now: clock.now });
    const waiting = request('asks', 'open');
    const settled = request('young', 'settled');
    const young = { lastActiveAt: T0 + 1000 };
    await store.write(
      [
        ...['old-1', 'old-2', 'old-3'].map((id) => put(session(id, hub))),
        put(session('working', hub, { state: { tag: 'running' } })),
        put(session('asks', hub)),
        put(session('has-work', hub, { workspace: { type: 'worktree', path: '/w' } })),
        put(session('young', hub, young)),
        ...['old-1', 'young'].flatMap((id) => [append(event(id, 1)), send(command(id, `c-${id}`, { key: id }))]),
        { type: 'message.put', message: { id: 'm', sessionId: 'old-1', at: T0, content: '' } },
        { type: 'grant.add', grant: grant('old-1', 'g') },
        ask(waiting),
        ask(settled),
        settle(settled),
        { type: 'token.put', token: token('dead', { revokedAt: T0 }) },
        { type: 'token.put', token: token('alive', { expiresAt: T0 + 5000 }) },
      ],
      hub,
    );
    const retention = { before: T0 + 1000, limit: 2 };
    clock.advance(1000);
    expect(await store.forget(retention)).toEqual({ sessions: ['old-1', 'old-2'], more: true });
    expect(await store.forget(retention)).toEqual({ sessions: ['old-3'], more: false });
    expect((await store.sessions({ limit: 9 })).items.map(({ id }) => id)).toEqual([
      'young',
      'working',
      'has-work',
      'asks',
    ]);
    expect((await store.events('old-1', { limit: 9 })).lastId).toBe(0);
    expect([await store.messages('old-1'), await store.grants('old-1')]).toEqual([[], []]);
    expect(await store.command('c-old-1')).toBeUndefined();
    expect(await store.command('c-young')).toBeDefined();
    expect((await store.inbox({ limit: 9 })).items).toEqual([waiting]);
    expect(await store.request('settled')).toBeUndefined();
    expect((await store.tokens()).map(({ id }) => id)).toEqual(['alive']);
    const oldRows = async (after: number) =>
      (await store.feed({ after, limit: 99 })).entries.flatMap(({ kind, row }) =>
        String(row.id).startsWith('old-') ? [`${kind} ${row.id}`] : [],
      );
    expect(await oldRows(0)).toEqual(['removal old-1', 'removal old-2', 'removal old-3']);
    // Stored again and forgotten again: the feed shows only the last change.
    await store.write([put(session('old-2', hub))], hub);
    expect(await oldRows(0)).toEqual(['removal old-1', 'removal old-2', 'removal old-3', 'session old-2']);
    await store.forget(retention);
    expect(await oldRows(0)).toEqual(['removal old-1', 'removal old-3', 'removal old-2']);
    clock.advance(1000);
    await store.forget({ before: clock.now(), limit: 9 });
    expect(await oldRows(0)).toEqual([]);
  });

  test('a removed session leaves nothing but its removal in the feed, and its commands', async () => {
    const { store, hub } = await opened();
    await store.write([put(session('s1', hub)), append(event('s1', 1)), ask(request('s1', 'r1'))], hub);
    await store.write([put(session('s2', hub))], hub);
    await store.write([send(command('s1', 'c1', { key: 'once' }))]);
    const remove: Change = { type: 'session.remove', sessionId: 's1', principal: 'local', at: T0 };
    // In one batch with what was waiting to be stored, and sent again because the answer was lost.
    await store.write([put(session('s1', hub)), append(event('s1', 2)), remove], hub);
    await store.write([remove], hub);
    expect(await store.session('s1')).toBeUndefined();
    expect(await store.request('r1')).toBeUndefined();
    expect((await store.sessions({ limit: 9 })).items.map(({ id }) => id)).toEqual(['s2']);
    expect((await store.feed({ after: 0, limit: 9 })).entries.map(({ kind }) => kind)).toEqual([
      'session',
      'command',
      'removal',
    ]);
    expect(await store.commandByKey('local', 'once')).toMatchObject({ id: 'c1' });
  });

  test('wakes its subscribers after a write, but not after a refused one or once they have left', async () => {
    const { store, hub } = await opened();
    const quiet = counter();
    quiet.subscribe(store)();
    const { count, subscribe } = counter();
    const unsubscribe = subscribe(store);
    await store.write([put(session('s1', hub))], hub);
    await expect.poll(count).toBe(1);
    await expect(store.write([append(event('s1', 9))], hub)).rejects.toThrow();
    await store.write([append(event('s1', 1))], hub);
    await expect.poll(count).toBe(2);
    unsubscribe();
    await store.write([append(event('s1', 2))], hub);
    expect([count(), quiet.count()]).toEqual([2, 0]);
  });

  test('concurrent writes are all stored, with each session’s events in order and no gaps in the feed', async () => {
    const { store, hub } = await opened();
    const ids = ['s1', 's2', 's3', 's4'];
    await store.write(
      ids.map((id) => put(session(id, hub))),
      hub,
    );
    await Promise.all(
      ids.map(async (id) => {
        for (let n = 1; n <= 25; n++) await store.write([append(event(id, n))], hub);
      }),
    );
    const { entries } = await store.feed({ after: 0, limit: 1000 });
    expect(entries.map(({ seq }) => seq)).toEqual(Array.from({ length: 104 }, (_, index) => index + 1));
    for (const id of ids) expect((await store.events(id, { limit: 99 })).events).toHaveLength(25);
  });

  test('can be closed twice, and finishes pending writes first', async () => {
    const { store, hub } = await opened();
    const writing = store.write([put(session('s1', hub))], hub);
    await Promise.all([store.close(), store.close()]);
    await writing;
  });
});

function counter(): { count: () => number; subscribe: (store: Store) => () => void } {
  let calls = 0;
  return { count: () => calls, subscribe: (store) => store.subscribe(() => calls++) };
}

async function everyPage<Row>(read: (after?: string) => Promise<{ items: Row[]; next?: string }>): Promise<Row[]> {
  const rows: Row[] = [];
  let after: string | undefined;
  do {
    const page = await read(after);
    rows.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return rows;
}
