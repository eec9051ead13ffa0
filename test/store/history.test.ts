/** Random histories: what holds for each of them, and that both stores give the same answers. */

import fc from 'fast-check';
import { beforeEach, expect, test, vi } from 'vitest';
import { DomainError } from '../../src/errors/errors.ts';
import type { Change, HubRef } from '../../src/schema/store.ts';
import type { Store } from '../../src/store/contract.ts';
import { manualNow } from './manual-now.ts';
import * as rows from './rows.ts';
import { STORES } from './stores.ts';

type Step =
  | { readonly do: 'write'; readonly hub: number; readonly changes: readonly Draft[] }
  | { readonly do: 'acquire' | 'renew' | 'release' | 'take' | 'claim'; readonly hub: number }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'forget'; readonly age: number };
/** A change whose author and event number are filled in later. */
interface Draft {
  readonly type: Change['type'];
  readonly s: number;
  readonly n: number;
  readonly flag: boolean;
}

const HUBS = ['hub-a', 'hub-b'];
const SESSIONS = ['s0', 's1', 's2'];
const BOUNDS = { maxEvents: 6, maxBytes: 400 };
const TYPES: readonly Change['type'][] = [
  ...(['session.put', 'session.put', 'event.append', 'event.append', 'event.append', 'message.put'] as const),
  ...(['message.delivered', 'request.open', 'request.settle', 'grant.add', 'grant.close', 'command.add'] as const),
  ...(['command.finish', 'command.withdraw', 'token.put', 'setting.put', 'rule.put', 'rule.remove'] as const),
];

const draft = fc.record({
  type: fc.constantFrom(...TYPES),
  s: fc.nat(SESSIONS.length - 1),
  n: fc.nat(3),
  flag: fc.boolean(),
});
const hub = fc.nat(HUBS.length - 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ do: fc.constant('write' as const), hub, changes: fc.array(draft, { maxLength: 6 }) }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('acquire', 'renew', 'release', 'take', 'claim'), hub }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 9_000, 20_000) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('forget' as const), age: fc.constantFrom(0, 30_000) }) },
);
const history = fc.array(step, { minLength: 5, maxLength: 40 });

// The time a command was taken comes from the hub's own clock, which must not tick between two stores.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] });
  return () => void vi.useRealTimers();
});

test('Postgres gives the same answers as SQLite for every history', async () => {
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      const clock = manualNow();
      const options = { bounds: BOUNDS, now: clock.now };
      const [postgres, sqlite] = [await STORES.postgres(options), await STORES.sqlite(options)];
      const [actual, expected] = [new Player(postgres), new Player(sqlite)];
      for (const one of steps) {
        if (one.do === 'pass') clock.advance(one.ms);
        expect(await actual.play(one, clock.now())).toEqual(await expected.play(one, clock.now()));
      }
      expect(await everythingIn(postgres)).toEqual(await everythingIn(sqlite));
      await Promise.all([postgres.close(), sqlite.close()]);
    }),
    { numRuns: 10 },
  );
}, 120_000);

test('a write sent twice changes nothing the second time', async () => {
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      const clock = manualNow();
      const options = { bounds: BOUNDS, now: clock.now };
      const [once, twice] = [await STORES.sqlite(options), await STORES.sqlite(options)];
      const [first, second] = [new Player(once), new Player(twice, { sendTwice: true })];
      for (const one of steps) {
        if (one.do === 'pass') clock.advance(one.ms);
        await first.play(one, clock.now());
        await second.play(one, clock.now());
      }
      // Rows written again move to the end of the feed, as if they had changed.
      const { feed: _once, ...expected } = await everythingIn(once);
      const { feed: _twice, ...actual } = await everythingIn(twice);
      expect(actual).toEqual(expected);
      await Promise.all([once.close(), twice.close()]);
    }),
    { numRuns: 30 },
  );
});

test('no command is taken twice, no outcome is changed, no event goes missing', async () => {
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      const clock = manualNow();
      const store = await STORES.sqlite({ now: clock.now });
      const player = new Player(store);
      const outcomes = new Map<string, unknown>();
      for (const one of steps) {
        if (one.do === 'forget') continue;
        if (one.do === 'pass') clock.advance(one.ms);
        await player.play(one, clock.now());
        for (const { kind, row } of (await store.feed({ after: 0, limit: 10_000 })).entries) {
          if (kind !== 'request' || !row.outcome) continue;
          expect(outcomes.get(row.id) ?? row.outcome).toEqual(row.outcome);
          outcomes.set(row.id, row.outcome);
        }
      }
      expect(new Set(player.taken).size).toBe(player.taken.length);
      for (const id of SESSIONS) {
        const { events, lastId } = await store.events(id, { limit: 10_000 });
        expect(events.map((row) => row.id)).toEqual(Array.from({ length: lastId }, (_, index) => index + 1));
      }
      await store.close();
    }),
    { numRuns: 30 },
  );
});

/** Plays the steps of a history on one store and returns the outcome of each. */
class Player {
  readonly taken: string[] = [];
  readonly #store: Store;
  readonly #incarnations = new Map<string, HubRef>();
  readonly #sendTwice: boolean;

  constructor(store: Store, { sendTwice = false } = {}) {
    this.#store = store;
    this.#sendTwice = sendTwice;
  }

  async play(one: Step, now: number): Promise<unknown> {
    try {
      return await this.#play(one, now);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      return { code: error.code, message: error.message };
    }
  }

  async #play(one: Step, now: number): Promise<unknown> {
    if (one.do === 'pass') return undefined;
    if (one.do === 'forget') return this.#store.forget({ before: now - one.age, limit: 2 });
    const name = HUBS[one.hub]!;
    const by = this.#incarnations.get(name) ?? { hub: name, fence: 1 };
    switch (one.do) {
      case 'acquire': {
        const lease = await this.#store.acquireLease(name, 15_000, {});
        // Sometimes an earlier incarnation carries on as if nothing had happened.
        if (lease.fence % 4 !== 0) this.#incarnations.set(name, { hub: name, fence: lease.fence });
        return lease;
      }
      case 'renew':
        return this.#store.renewLease(by, 15_000, { renewed: true });
      case 'release':
        return this.#store.releaseLease(by);
      case 'claim':
        return this.#store.claimSessions(by, [...SESSIONS, 'nobody']);
      case 'take': {
        const commands = await this.#store.takeCommands(by, 2);
        this.taken.push(...commands.map(({ id }) => id));
        return commands;
      }
      case 'write': {
        const changes = await this.#changes(one.changes, by, now);
        await this.#store.write(changes, by);
        if (this.#sendTwice) await this.#store.write(changes, by);
        return undefined;
      }
    }
  }

  async #changes(drafts: readonly Draft[], by: HubRef, now: number): Promise<Change[]> {
    const next = new Map<string, number>();
    for (const id of SESSIONS) next.set(id, (await this.#store.events(id, { limit: 1 })).lastId + 1);
    return drafts.map(({ type, s, n, flag }): Change => {
      const id = SESSIONS[s]!;
      switch (type) {
        case 'session.put': {
          const tag = (['idle', 'running', 'waiting', 'error'] as const)[n]!;
          return rows.put(
            rows.session(id, by, {
              state: { tag },
              lastActiveAt: now,
              title: flag ? 'Ä%_' : 'b',
              ...(s > 0 && { movable: true }),
            }),
          );
        }
        case 'session.remove':
          return { type, sessionId: id, principal: 'local', at: now };
        case 'event.append': {
          const eventId = next.get(id)! - (n === 3 ? 1 : 0);
          if (eventId === 0) return rows.append(rows.event(id, 1));
          next.set(id, Math.max(next.get(id)!, eventId + 1));
          return rows.append(rows.event(id, eventId, { keep: flag, data: 'ü'.repeat(n * 20) }));
        }
        case 'message.put':
          return { type, message: { id: `m${n}`, sessionId: id, at: now, content: { flag } } };
        case 'message.delivered':
          return { type, sessionId: id, messageId: `m${n}` };
        case 'request.open':
          return rows.ask(rows.request(id, `r-${id}-${n}`, { createdAt: now }));
        case 'request.settle':
          return rows.settle(rows.request(id, `r-${id}-${n}`), rows.allow(flag ? 'anna' : 'ben', now));
        case 'grant.add':
          return { type, grant: rows.grant(id, `g-${id}-${n}`, { createdAt: rows.T0 + n }) };
        case 'grant.close': {
          const closed = flag ? { how: 'lapsed' as const, at: now } : { how: 'used' as const, at: now, toolUseId: 't' };
          return { type, sessionId: id, grantId: `g-${id}-${n}`, closed };
        }
        case 'command.add': {
          const key = flag ? { key: `k${n}` } : {};
          return rows.send(rows.command(id, `c-${id}-${n}-${flag}`, { ...key, createdAt: now, placedOn: 'hub-a' }));
        }
        case 'command.finish':
          return rows.finish(id, `c-${id}-${n}-${flag}`, { status: 'done', at: now, result: { n } });
        case 'command.withdraw':
          return { type, commandId: `c-${id}-${n}-${flag}`, at: now };
        case 'token.put':
          return { type, token: rows.token(`t${n}`, flag ? { revokedAt: now } : {}) };
        case 'rule.put':
          return { type, rule: rows.rule(`r${n}`, { enabled: flag }) };
        case 'rule.remove':
          return { type, ruleId: `r${n}` };
        case 'rule.use':
          return { type, ruleId: `r${n}`, at: now, times: 1 };
        case 'setting.put':
          return { type, key: `k${n}`, value: String(flag) };
      }
    });
  }
}

async function everythingIn(store: Store): Promise<Record<string, unknown>> {
  const each = <T>(read: (id: string) => Promise<T>): Promise<T[]> => Promise.all(SESSIONS.map(read));
  return {
    feed: await store.feed({ after: 0, limit: 10_000 }),
    sessions: await store.sessions({ limit: 100 }),
    found: await store.sessions({ limit: 100, search: 'ä%_' }),
    resting: await store.sessions({ limit: 1, tags: ['idle', 'error'] }),
    events: await each((id) => store.events(id, { limit: 1000 })),
    messages: await each((id) => store.messages(id)),
    grants: await each((id) => store.grants(id)),
    inbox: await store.inbox({ limit: 100 }),
    own: await store.inbox({ limit: 2, principal: 'local' }),
    keys: await Promise.all([0, 1, 2, 3].map((n) => store.commandByKey('local', `k${n}`))),
    tokens: await store.tokens(),
    rules: await store.rules(),
    settled: await store.settledRequests({ since: 0, limit: 2 }),
    settings: await Promise.all([0, 1, 2, 3].map((n) => store.setting(`k${n}`))),
    leases: await store.leases(),
  };
}
