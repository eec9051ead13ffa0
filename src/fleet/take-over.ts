import type { Engine } from '../engine/engine.ts';
import { messageOf, DomainError } from '../errors/errors.ts';
import { STATES_AT_WORK } from '../schema/enums.ts';
import type { HubRef, StoredLease, StoredSession } from '../schema/store.ts';
import type { Store } from '../store/contract.ts';
import { summaryOf } from './lease.ts';
import { recordOfRow, messageOfRow, newestEvents, requestOfRow } from './session-codec.ts';
import type { RecalledSession } from '../engine/ports.ts';
import type { SessionRecord } from '../schema/records.ts';
import { isSameIncarnation } from '../store/row-facts.ts';

export interface TakeOverOptions {
  readonly store: Store;
  readonly by: HubRef;
  readonly engine: Engine;
  readonly log: (level: 'debug' | 'warn', line: string) => void;
}

/** Sessions of a hub that were working or waiting when it was last heard from. */
export async function unfinishedOn(store: Store, hub: string): Promise<StoredSession[]> {
  const sessions: StoredSession[] = [];
  let after: string | undefined;
  do {
    const page = await store.sessions({ tags: STATES_AT_WORK, hub, limit: 200, ...(after !== undefined && { after }) });
    sessions.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return sessions;
}

/**
 * Takes over what hubs that are gone left unfinished. Idle sessions stay where they are until they are requested. Every
 * hub tries; the store gives a session to one of them.
 */
export class TakeOver {
  readonly #options: TakeOverOptions;
  /** By hub, the lease that it let expire: nothing is left there for this hub until that hub is heard from again. */
  readonly #done = new Map<string, string>();
  #running: Promise<void> | undefined;

  constructor(options: TakeOverOptions) {
    this.#options = options;
  }

  /** One look at all hubs; concurrent calls join it. Never rejects. */
  look(): Promise<void> {
    this.#running ??= this.#look()
      .catch((error: unknown) => this.#options.log('debug', `take-over: ${messageOf(error)}`))
      .finally(() => (this.#running = undefined));
    return this.#running;
  }

  async #look(): Promise<void> {
    const { store, by } = this.#options;
    for (const lease of await store.leases()) {
      const expired = `${lease.fence} ${lease.expiresAt}`;
      if (lease.hub === by.hub || !lease.expired || this.#done.get(lease.hub) === expired) continue;
      if (await this.#takeOver(lease)) this.#done.set(lease.hub, expired);
    }
  }

  /** Whether nothing is left that another look could change. */
  async #takeOver({ hub, info }: StoredLease): Promise<boolean> {
    const { store, engine, log } = this.#options;
    let isDone = true;
    for (const row of await unfinishedOn(store, hub)) {
      if (row.movable !== true) continue;
      try {
        await engine.fleet.checkCanRun(recordOfRow(row));
      } catch (error) {
        log('debug', `session ${row.id} is not taken over from ${hub}: ${messageOf(error)}`);
        continue;
      }
      try {
        await engine.fleet.takeUp(row.id);
        log('warn', `session ${row.id} was taken over from ${summaryOf(hub, info).host}, which stopped responding`);
      } catch (error) {
        // Another hub was faster, or the store is unavailable: the next look will tell.
        log('debug', `session ${row.id}: ${messageOf(error)}`);
        isDone = false;
      }
    }
    return isDone;
  }
}

export interface Recaller {
  readonly store: Store;
  /** This incarnation of this hub. */
  readonly by: HubRef;
  /** Rejects if this hub may not run a session that ran on another. */
  readonly checkCanRun: (record: SessionRecord) => Promise<void>;
}

/**
 * Recalls a session as it was last stored, by an earlier incarnation of this hub or by a hub that is gone. Claims it if it is
 * not this incarnation's already; throws if this hub may not have it.
 */
export async function recall(sessionId: string, recaller: Recaller): Promise<RecalledSession | undefined> {
  const { store, by } = recaller;
  const known = await store.session(sessionId);
  if (!known) return undefined;
  const row = isSameIncarnation(known.runsOn, by) ? known : await claim(known, recaller);
  const requests = await store.inbox({ sessionId, limit: 1_000 });
  const messages = await store.messages(sessionId);
  const { events, lastId, droppedThrough } = await newestEvents(store, sessionId);
  return {
    record: recordOfRow(row),
    ranElsewhere: known.runsOn.hub !== by.hub,
    events,
    lastEventId: lastId,
    droppedThrough,
    requests: requests.items.map(requestOfRow),
    messages: messages.map(messageOfRow),
    grants: await store.grants(sessionId),
  };
}

async function claim(known: StoredSession, { store, by, checkCanRun }: Recaller): Promise<StoredSession> {
  const { id, runsOn, movable } = known;
  if (runsOn.hub !== by.hub) {
    const lease = (await store.leases()).find(({ hub }) => hub === runsOn.hub);
    const { host } = summaryOf(runsOn.hub, lease?.info);
    if (lease?.expired === false)
      throw new DomainError('UNAVAILABLE', `Session ${id} runs on another hub (${host}); send the call there.`);
    if (movable !== true)
      throw new DomainError('UNAVAILABLE', `Session ${id} stays on the machine ${host}, which is unavailable.`);
    await checkCanRun(recordOfRow(known));
  }
  const [row] = await store.claimSessions(by, [id]);
  if (row) return row;
  throw new DomainError('UNAVAILABLE', `Session ${id} is being taken over by another hub. Try again.`);
}
