import type { HubRef, StoredLease } from '../schema/store.ts';
import type { Store } from './contract.ts';
import type { SqlReads } from './sql/reads.ts';
import type { SqlTables } from './sql/tables.ts';

/** What a database provides: connections for the shared SQL, transactions and wake-ups. Everything else is shared. */
export interface Backend {
  readonly kind: Store['kind'];
  readonly reads: SqlReads;
  /** Commits when `work` resolves, rolls back when `work` throws. Rows that `work` loads do not change until then. */
  transact<T>(durability: Durability, work: (tables: SqlTables) => Promise<T>): Promise<T>;
  /**
   * Without waiting for anything else in progress here. Undefined if this incarnation of the hub is over. Missing where
   * no one else shares the store and waiting does no harm.
   */
  renewLease?(by: HubRef, ttlMs: number, info: Record<string, unknown>): Promise<StoredLease | undefined>;
  /** After deletions, if the database does not do it by itself. */
  giveBackSpace?(): Promise<void>;
  subscribe: Store['subscribe'];
  close(): Promise<void>;
}

/**
 * `lazy`: survives a process crash, but not a power cut. `quiet`: the same, and no one is woken, because it is not in
 * the feed.
 */
export type Durability = 'durable' | 'lazy' | 'quiet';
