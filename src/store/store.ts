import type {
  Change,
  HubRef,
  StoredCommand,
  StoredLease,
  StoredSession,
  TranscriptEntry,
  TranscriptPart,
} from '../schema/store.ts';
import {
  DEFAULT_EVENT_BOUNDS,
  type Backend,
  type EventBounds,
  type Retention,
  type Store,
  type StoreTranscripts,
} from './contract.ts';
import { dropOldest, isOver } from './event-bounds.ts';
import { NO_SESSION, toJson } from './row-facts.ts';
import { checkLease, needsOf, plan, sessionOf, checkSessionOwner, noNeeds, type RowWrite } from './plan.ts';
import type { PositionedWrite, SqlTables } from './sql/tables.ts';
import type { TranscriptRow } from './sql/reads.ts';

/** Those whose rows are in the feed, and messages, which are ordered by it. */
const POSITIONED: ReadonlySet<RowWrite['table']> = new Set([
  'sessions',
  'events',
  'requests',
  'commands',
  'messages',
  'removals',
]);

/** The contract over either database: rules here, rows in `sql`. */
export function createStore(backend: Backend, bounds: EventBounds = DEFAULT_EVENT_BOUNDS): Store {
  const { reads } = backend;

  const write = async (changes: readonly Change[], by?: HubRef): Promise<void> => {
    if (changes.length === 0) return;
    const durability = changes.every(isSafeToLose) ? 'lazy' : 'durable';
    const isFenced = changes.some((change) => sessionOf(change) !== undefined);
    await backend.transact(durability, async (tables) => {
      const loaded = await tables.load(needsOf(changes), isFenced ? by?.hub : undefined);
      await save(tables, await withinBounds(tables, plan(changes, by, loaded), bounds));
    });
  };

  const ensureSetting = (key: string, value: string): Promise<string> =>
    backend.transact('durable', async (tables) => {
      // Whoever asks first for a position goes first, so that the second sees what the first has stored.
      await tables.nextSeq(0);
      const stored = await tables.setting(key);
      if (stored !== undefined) return stored;
      await tables.save([{ seq: 0, write: { table: 'settings', key, value } }]);
      return value;
    });

  const takeCommands = (by: HubRef, limit: number, has?: ReadonlySet<string>): Promise<StoredCommand[]> =>
    backend.transact('durable', async (tables) => {
      const [lease, before, next] = await Promise.all([
        tables.lease(by.hub),
        has ? tables.commandsTakenBy(by.hub) : [],
        tables.nextCommands(by, limit),
      ]);
      checkLease(by, lease);
      const missed = before.filter((one) => isTakenIn(one, by) && !has?.has(one.id));
      // For people to read, as everywhere in a command's progress: not worth a round trip to the store's clock.
      const at = Date.now();
      const taken = next.map((row): StoredCommand => ({ ...row, progress: { status: 'taken', by, at } }));
      await tables.saveTaken(taken);
      return [...missed, ...taken];
    });

  const forget = async (retention: Retention): Promise<{ sessions: string[]; more: boolean }> => {
    const sessions = await backend.transact('durable', async (tables) => {
      const gone = await tables.forget(retention);
      const at = await tables.now();
      await save(
        tables,
        gone.map(({ id, principal }): RowWrite => ({ table: 'removals', row: { id, principal, at } })),
      );
      return gone.map(({ id }) => id);
    });
    if (sessions.length > 0) await backend.giveBackSpace?.();
    return { sessions, more: sessions.length >= retention.limit };
  };

  const acquireLease = (hub: string, ttlMs: number, info: Record<string, unknown>): Promise<StoredLease> =>
    backend.transact('durable', async (tables) => {
      await tables.lease(hub, 'alone');
      const [fence, now] = [await tables.nextFence(), await tables.now()];
      const lease: StoredLease = { hub, fence, expiresAt: now + ttlMs, info };
      await tables.saveLease(lease);
      await abandon(tables, await tables.commandsTakenBy(hub));
      return lease;
    });

  const renewInTurn: NonNullable<Backend['renewLease']> = (by, ttlMs, info) =>
    backend.transact('lazy', async (tables) => {
      if ((await tables.lease(by.hub))?.fence !== by.fence) return undefined;
      const lease: StoredLease = { ...by, expiresAt: (await tables.now()) + ttlMs, info };
      await tables.saveLease(lease);
      return lease;
    });

  const renewLease = async (by: HubRef, ttlMs: number, info: Record<string, unknown>): Promise<StoredLease> => {
    const lease = await (backend.renewLease ?? renewInTurn)(by, ttlMs, info);
    checkLease(by, lease);
    return lease;
  };

  const releaseLease = (by: HubRef): Promise<void> =>
    backend.transact('durable', async (tables) => {
      const lease = await tables.lease(by.hub);
      if (lease?.fence === by.fence) await tables.saveLease({ ...lease, expiresAt: await tables.now() });
    });

  const claimSessions = (by: HubRef, sessionIds: readonly string[]): Promise<StoredSession[]> =>
    backend.transact('durable', async (tables) => {
      checkLease(by, await tables.lease(by.hub));
      const now = await tables.now();
      const isFree = async (holder: HubRef): Promise<boolean> => {
        if (holder.hub === by.hub) return holder.fence < by.fence;
        const lease = await tables.lease(holder.hub);
        return lease === undefined || lease.expiresAt <= now;
      };
      const claimed: StoredSession[] = [];
      const known = await tables.sessionsToClaim(sessionIds);
      for (const session of known) {
        const mayHave = session.runsOn.hub === by.hub || session.movable === true;
        if (mayHave && (await isFree(session.runsOn))) claimed.push({ ...session, runsOn: by });
      }
      await save(
        tables,
        claimed.map((row): RowWrite => ({ table: 'sessions', row, isNew: false })),
      );
      const left = new Set(known.map(({ id }) => id));
      for (const { id } of claimed) left.delete(id);
      const abandoned: StoredCommand[] = [];
      for (const command of await tables.commandsTakenFor(sessionIds.filter((id) => !left.has(id)))) {
        if (command.progress.status === 'taken' && (await isFree(command.progress.by))) abandoned.push(command);
      }
      await abandon(tables, abandoned);
      return claimed;
    });

  const leases = async (): Promise<(StoredLease & { expired: boolean })[]> => {
    const now = await reads.now();
    return (await reads.leases()).map((lease) => ({ ...lease, expired: lease.expiresAt <= now }));
  };

  return {
    kind: backend.kind,
    session: (id) => reads.session(id),
    sessionSince: (id, position) => reads.sessionSince(id, position),
    positions: (ids) => reads.positions(ids),
    sessions: (query) => reads.sessions(query),
    events: (sessionId, query) => reads.events(sessionId, query),
    feed: (query) => reads.feed(query),
    messages: (sessionId) => reads.messages(sessionId),
    request: (id) => reads.request(id),
    inbox: (query) => reads.inbox(query),
    hasCommands: (by) => reads.hasCommands(by),
    command: (id) => reads.command(id),
    keyedBytes: (principal) => reads.keyedBytes(principal),
    commandByKey: (principal, key) => reads.commandByKey(principal, key),
    grants: (sessionId) => reads.grants(sessionId),
    token: (id) => reads.token(id),
    tokenByHash: (hash) => reads.tokenByHash(hash),
    tokens: () => reads.tokens(),
    rules: () => reads.rules(),
    rule: (id) => reads.rule(id),
    rulesRevision: () => reads.rulesRevision(),
    settledRequests: (query) => reads.settledRequests(query),
    setting: (key) => reads.setting(key),
    ...storeTranscripts(backend),
    subscriptions: () => reads.pushes.subscriptions(),
    putSubscription: (subscription, limits) =>
      backend.transact('durable', ({ pushes }) => pushes.put(subscription, limits)),
    removeSubscription: (id) => backend.transact('durable', ({ pushes }) => pushes.remove(id)),
    // What a power cut takes back is sent again, under the same tag.
    takePushes: (query) => backend.transact('quiet', ({ pushes }) => pushes.take(query)),
    savePush: (push) => backend.transact('quiet', ({ pushes }) => pushes.save(push)),
    removePush: (push) => backend.transact('quiet', ({ pushes }) => pushes.removePush(push)),
    write,
    ensureSetting,
    takeCommands,
    forget,
    acquireLease,
    renewLease,
    releaseLease,
    leases,
    claimSessions,
    subscribe: (wake) => backend.subscribe(wake),
    close: () => backend.close(),
  };
}

/**
 * Nobody relies on it before something later is stored for good, and that stores it as well: logs are flushed in order.
 * Whoever takes a command begins when it is durably taken, so that one which a power cut takes back was not begun. A call
 * under a key changes nothing before something is stored for good; its answer is lost with whoever waited for it, and
 * asking again says that it is unknown.
 */
function isSafeToLose(change: Change): boolean {
  if (change.type === 'command.finish') return change.sessionId === NO_SESSION;
  return change.type === 'event.append' || change.type === 'command.add';
}

async function save(tables: SqlTables, writes: readonly RowWrite[]): Promise<void> {
  if (writes.length === 0) return;
  const count = writes.filter(({ table }) => POSITIONED.has(table)).length;
  let seq = count === 0 ? 0 : (await tables.nextSeq(count)) - count;
  await tables.save(writes.map((write): PositionedWrite => ({ seq: POSITIONED.has(write.table) ? ++seq : 0, write })));
}

/** Drops the oldest events of sessions that have too many with the new ones. */
async function withinBounds(
  tables: SqlTables,
  writes: readonly RowWrite[],
  bounds: EventBounds,
): Promise<readonly RowWrite[]> {
  const bounded: RowWrite[] = [];
  for (const write of writes) {
    if (write.table !== 'books' || !isOver(write.book, bounds)) {
      bounded.push(write);
      continue;
    }
    const { sessionId } = write;
    const added = writes.flatMap((other) =>
      other.table === 'events' && other.row.sessionId === sessionId
        ? [{ id: other.row.id, keep: other.row.keep, size: Buffer.byteLength(other.json) }]
        : [],
    );
    const { dropped, book } = dropOldest(write.book, [...(await tables.eventSizes(sessionId)), ...added], bounds);
    bounded.push({ ...write, book }, { table: 'dropped', sessionId, eventIds: dropped });
  }
  return bounded;
}

/** Started by a past incarnation, without a stored outcome: the outcome is unknown, and it must not be repeated. */
async function abandon(tables: SqlTables, commands: readonly StoredCommand[]): Promise<void> {
  if (commands.length === 0) return;
  const at = await tables.now();
  const check = 'The hub stopped while carrying this out. Check the session before you send it again.';
  await save(
    tables,
    commands.map((row) => commandWrite({ ...row, progress: { status: 'unknown', at, check } })),
  );
}

function isTakenIn({ progress }: StoredCommand, { fence }: HubRef): boolean {
  return progress.status === 'taken' && progress.by.fence === fence;
}

function commandWrite(row: StoredCommand): RowWrite {
  return { table: 'commands', row };
}

/** Who may write a transcript, and which entries are new. */
function storeTranscripts(backend: Backend): StoreTranscripts {
  const changed = (by: HubRef, part: TranscriptPart, change: (tables: SqlTables) => Promise<void>): Promise<void> =>
    backend.transact('quiet', async (tables) => {
      const { sessionId } = part;
      // The row stays locked until the end, so that no one else adds to the same part.
      const loaded = await tables.load({ ...noNeeds(), sessions: new Set([sessionId]) }, by.hub);
      checkSessionOwner(sessionId, by, loaded);
      await change(tables);
    });

  return {
    transcript: (part) => backend.reads.transcripts.transcript(part),
    transcriptSubpaths: (sessionId) => backend.reads.transcripts.transcriptSubpaths(sessionId),
    async appendTranscript(by, part, entries) {
      if (entries.length === 0) return;
      await changed(by, part, async ({ transcripts }) => {
        const uuids = entries.flatMap(({ uuid }) => uuid ?? []);
        const [known, last] = await Promise.all([transcripts.knownUuids(part, uuids), transcripts.lastPosition(part)]);
        await transcripts.add(part, rowsOf(withoutRepeats(entries, known), last));
      });
    },
    replaceTranscript: (by, part, entries) =>
      changed(by, part, async ({ transcripts }) => {
        const rows = rowsOf(withoutRepeats(entries, new Set()), 0);
        await transcripts.remove(part);
        await transcripts.add(part, rows);
      }),
  };
}

function withoutRepeats(entries: readonly TranscriptEntry[], known: Set<string>): TranscriptEntry[] {
  return entries.filter(({ uuid }) => {
    if (uuid === undefined) return true;
    const isNew = !known.has(uuid);
    known.add(uuid);
    return isNew;
  });
}

function rowsOf(entries: readonly TranscriptEntry[], last: number): TranscriptRow[] {
  return entries.map((entry, index) => ({ position: last + index + 1, uuid: entry.uuid, json: toJson(entry) }));
}
