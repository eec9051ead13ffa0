/** What an implementation provides: rows, transactions and wake-ups. Everything else is shared. */

import type { HubRef, StoredCommand, StoredLease, StoredSession, TranscriptPart } from '../schema/store.ts';
import type { Retention, Store, StoreReads, StoreTranscripts } from './contract.ts';
import type { EventSize } from './event-bounds.ts';
import type { Loaded, Needs, RowWrite } from './plan.ts';

export interface Backend {
  readonly kind: Store['kind'];
  readonly reads: StoreReads & Pick<Tables, 'leases' | 'now'> & TranscriptReads;
  /** Commits when `work` resolves, rolls back when `work` throws. Rows that `work` loads do not change until then. */
  transact<T>(durability: Durability, work: (tables: Tables) => Promise<T>): Promise<T>;
  /**
   * Without waiting for anything else in progress here. Undefined if this incarnation of the hub is over. Missing where
   * no one else shares the store and waiting does no harm.
   */
  renewLease?(by: HubRef, ttlMs: number, info: Record<string, unknown>): Promise<StoredLease | undefined>;
  /** After deletions, if the implementation does not do it by itself. */
  giveBackSpace?(): Promise<void>;
  subscribe: Store['subscribe'];
  close(): Promise<void>;
}

/**
 * `lazy`: survives a process crash, but not a power cut. `quiet`: the same, and no one is woken, because it is not in
 * the feed.
 */
export type Durability = 'durable' | 'lazy' | 'quiet';

export type TranscriptReads = Pick<StoreTranscripts, 'transcript' | 'transcriptSubpaths'>;

/** Inside a transaction. */
export interface Tables {
  /** The store's clock. */
  now(): Promise<number>;
  load(needs: Needs, hub: string | undefined): Promise<Loaded>;
  /** Of one session, by ascending id. */
  eventSizes(sessionId: string): Promise<EventSize[]>;
  /**
   * The last of `count` new positions in the feed. Requested last: positions become visible in order because the holder
   * of one blocks the others until it has committed.
   */
  nextSeq(count: number): Promise<number>;
  save(rows: readonly PositionedWrite[]): Promise<void>;

  setting(key: string): Promise<string | undefined>;

  nextFence(): Promise<number>;
  /** `alone`: after those who write in its name have finished, and before any of them writes again. */
  lease(hub: string, alone?: 'alone'): Promise<StoredLease | undefined>;
  leases(): Promise<StoredLease[]>;
  saveLease(lease: StoredLease): Promise<void>;

  sessionsToClaim(ids: readonly string[]): Promise<StoredSession[]>;
  /** The oldest queued command of each session of this hub, in any of its incarnations, that has none in progress. */
  nextCommands(by: HubRef, limit: number): Promise<StoredCommand[]>;
  /** Their positions stay as they are: no one waits for a command to be taken. */
  saveTaken(commands: readonly StoredCommand[]): Promise<void>;
  commandsTakenBy(hub: string): Promise<StoredCommand[]>;
  commandsTakenFor(sessionIds: readonly string[]): Promise<StoredCommand[]>;

  /** The removed sessions, with what they are looked up by. */
  forget(retention: Retention): Promise<Pick<StoredSession, 'id' | 'principal'>[]>;

  readonly transcripts: TranscriptTable;
}

export interface TranscriptTable {
  /** 0 if there is none. */
  lastPosition(part: TranscriptPart): Promise<number>;
  /** Those that the part already has. */
  knownUuids(part: TranscriptPart, uuids: readonly string[]): Promise<Set<string>>;
  add(part: TranscriptPart, rows: readonly TranscriptRow[]): Promise<void>;
  remove(part: TranscriptPart): Promise<void>;
}

export interface TranscriptRow {
  readonly position: number;
  readonly uuid: string | undefined;
  readonly json: string;
}

/** `seq` is 0 if the row is not in the feed. */
export interface PositionedWrite {
  readonly seq: number;
  readonly write: RowWrite;
}
