/** What an implementation brings: rows, transactions and wake-ups. Everything else is shared. */

import type { HubRef, StoredCommand, StoredLease, StoredSession, TranscriptPart } from '../schema/store.ts';
import type { Retention, Store, StoreReads, StoreTranscripts } from './contract.ts';
import type { EventSize } from './event-bounds.ts';
import type { Loaded, Needs, RowWrite } from './plan.ts';

export interface Backend {
  readonly kind: Store['kind'];
  readonly reads: StoreReads & Pick<Tables, 'leases' | 'now'> & TranscriptReads;
  /** Commits when `work` resolves, undoes it when `work` throws. Rows that `work` loads do not change until then. */
  transact<T>(durability: Durability, work: (tables: Tables) => Promise<T>): Promise<T>;
  /**
   * Without waiting for anything else that is going on here. Nothing where this life of the hub is over. Where it is
   * missing, nobody else has a share in the store and waiting does no harm.
   */
  renewLease?(by: HubRef, ttlMs: number, info: Record<string, unknown>): Promise<StoredLease | undefined>;
  /** After something was forgotten, where the implementation does not do so by itself. */
  giveBackSpace?(): Promise<void>;
  subscribe(wake: () => void): () => void;
  close(): Promise<void>;
}

/**
 * `lazy`: kept through a crash of the process, not through a power cut. `quiet`: the same, and nobody is woken, because
 * no feed shows it.
 */
export type Durability = 'durable' | 'lazy' | 'quiet';

export type TranscriptReads = Pick<StoreTranscripts, 'transcript' | 'transcriptSubpaths'>;

/** Inside a transaction. */
export interface Tables {
  /** The store's clock. */
  now(): Promise<number>;
  load(needs: Needs, hub: string | undefined): Promise<Loaded>;
  /** Of one session, by rising id. */
  eventSizes(sessionId: string): Promise<EventSize[]>;
  /**
   * The last of `count` new positions in the feed. Asked for last: positions become visible in their order because
   * whoever has one keeps the others waiting until it has committed.
   */
  nextSeq(count: number): Promise<number>;
  save(rows: readonly PositionedWrite[]): Promise<void>;

  setting(key: string): Promise<string | undefined>;

  nextFence(): Promise<number>;
  /** `alone`: once those who write in its name have done so, and before any of them does so again. */
  lease(hub: string, alone?: 'alone'): Promise<StoredLease | undefined>;
  leases(): Promise<StoredLease[]>;
  saveLease(lease: StoredLease): Promise<void>;

  sessionsToClaim(ids: readonly string[]): Promise<StoredSession[]>;
  /** The oldest queued command of each session of this hub, in whichever of its lives, that has none under way. */
  nextCommands(by: HubRef, limit: number): Promise<StoredCommand[]>;
  commandsTakenBy(hub: string): Promise<StoredCommand[]>;
  commandsTakenFor(sessionIds: readonly string[]): Promise<StoredCommand[]>;

  /** The sessions that went, as they were found by. */
  forget(retention: Retention): Promise<Pick<StoredSession, 'id' | 'principal'>[]>;

  readonly transcripts: TranscriptTable;
}

export interface TranscriptTable {
  /** 0 where there is none. */
  lastPosition(part: TranscriptPart): Promise<number>;
  /** Those of them that the part has. */
  knownUuids(part: TranscriptPart, uuids: readonly string[]): Promise<Set<string>>;
  add(part: TranscriptPart, rows: readonly TranscriptRow[]): Promise<void>;
  remove(part: TranscriptPart): Promise<void>;
}

export interface TranscriptRow {
  readonly position: number;
  readonly uuid: string | undefined;
  readonly json: string;
}

/** `seq` is 0 where the row is not in the feed. */
export interface PositionedWrite {
  readonly seq: number;
  readonly write: RowWrite;
}
