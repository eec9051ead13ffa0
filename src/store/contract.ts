/**
 * The hub's storage. On either database it guarantees:
 *
 * - A write is stored as a whole or not at all, and is stored when its promise resolves: only then tell anybody.
 * - Every change may be sent twice. A write whose answer was lost (`UNAVAILABLE`) is simply sent again.
 * - A session is changed only by the hub that it runs on, in that hub's present life. All others are fenced off.
 */

import { DomainError, type ErrorCode } from '../errors/errors.ts';
import type { SessionState } from '../schema/enums.ts';
import type { StandingRule } from '../schema/standing-rules.ts';
import type {
  Change,
  FeedEntry,
  HubRef,
  StoredCommand,
  StoredEvent,
  StoredGrant,
  StoredLease,
  StoredMessage,
  StoredPush,
  StoredRequest,
  StoredSession,
  StoredSubscription,
  StoredToken,
  TranscriptEntry,
  TranscriptPart,
} from '../schema/store.ts';
import type { SqlReads } from './sql/reads.ts';
import type { SqlTables } from './sql/tables.ts';

export interface Store extends StoreReads, StoreLeases, StoreTranscripts, StorePushes {
  readonly kind: 'sqlite' | 'postgres';

  /**
   * Applies all of the changes, in order, or none of them. Changes to a session need `by`, the hub that it runs on. A
   * batch containing only events and keyless commands survives a process crash, and a power cut once something else was
   * stored after it; everything else survives both.
   */
  write(changes: readonly Change[], by?: HubRef): Promise<void>;

  /** Stores the value unless there already is one; returns the stored one. Two concurrent hubs agree on it. */
  ensureSetting(key: string, value: string): Promise<string>;

  /**
   * The next command of each session that runs on this hub and has none in progress, even if only an earlier
   * incarnation has run it so far. Taken once, and never again: if the response was lost, the retry says which ones it
   * has, and gets the others that were taken for this incarnation.
   */
  takeCommands(by: HubRef, limit: number, has?: ReadonlySet<string>): Promise<StoredCommand[]>;

  /**
   * Deletes what is older than `before`: see {@link Retention}. The feed reports which sessions were removed. Call
   * again while `more`.
   */
  forget(retention: Retention): Promise<{ sessions: string[]; more: boolean }>;

  /**
   * Calls back after something was stored, by this hub or another. Only a wake-up: the changes are read with `feed`, so
   * that a lost wake-up causes a delay, never a loss. `follow` does both.
   */
  subscribe(wake: (news: StoreNews) => void): () => void;

  /** Idempotent. Waits for writes in progress. */
  close(): Promise<void>;
}

/** What a wake-up is about, so that not everybody has to look each time; where that is not known, everything. */
export interface StoreNews {
  /** A command was added. */
  readonly queued: boolean;
  /** A command was carried out, failed or withdrawn: the next one of its session can be taken. */
  readonly ended: boolean;
  readonly others: boolean;
  /** The only hub that the commands were meant for, where that is known. */
  readonly hub?: string;
}

export interface StoreReads {
  session(id: string): Promise<StoredSession | undefined>;
  /** The session, and the position in the feed of its last change; `unchanged` where that is still the given one. */
  sessionSince(id: string, position?: number): Promise<PositionedSession | 'unchanged' | undefined>;
  /** The position in the feed of the last change of each existing session. */
  positions(sessionIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** Most recently active first. */
  sessions(query: SessionQuery): Promise<Page<StoredSession>>;

  events(sessionId: string, query: { after?: number; limit: number }): Promise<EventPage>;
  /** Everything after a position, in the order in which it was stored. */
  feed(query: FeedQuery): Promise<FeedPage>;

  /** Oldest first. */
  messages(sessionId: string): Promise<StoredMessage[]>;

  request(id: string): Promise<StoredRequest | undefined>;
  /** Open requests, oldest first. */
  inbox(query: InboxQuery): Promise<Page<StoredRequest>>;

  /**
   * Whether there is a command for a session that runs on this hub, or was placed there, that has not been taken yet.
   */
  hasCommands(by: HubRef): Promise<boolean>;
  command(id: string): Promise<StoredCommand | undefined>;
  commandByKey(principal: string, key: string): Promise<StoredCommand | undefined>;
  /** What is stored for all keys of a principal, in bytes. */
  keyedBytes(principal: string): Promise<number>;

  /** Those that are not closed, oldest first. */
  grants(sessionId: string): Promise<StoredGrant[]>;

  token(id: string): Promise<StoredToken | undefined>;
  tokenByHash(hash: string): Promise<StoredToken | undefined>;
  tokens(): Promise<StoredToken[]>;

  rules(): Promise<StandingRule[]>;
  rule(id: string): Promise<StandingRule | undefined>;
  /** Rises whenever a rule is written or removed, not when one is used. */
  rulesRevision(): Promise<number>;
  /** Requests that were settled since then, most recent first. */
  settledRequests(query: SettledQuery): Promise<Page<StoredRequest>>;

  setting(key: string): Promise<string | undefined>;
}

export interface SettledQuery {
  readonly since: number;
  readonly after?: string;
  readonly limit: number;
}

export interface StoreLeases {
  /** Begins a new incarnation of this hub, with the next fencing number. An earlier one can no longer write. */
  acquireLease(hub: string, ttlMs: number, info: Record<string, unknown>): Promise<StoredLease>;
  /** Even after the lease has expired, as long as no other incarnation of this hub has started. */
  renewLease(by: HubRef, ttlMs: number, info: Record<string, unknown>): Promise<StoredLease>;
  /** Expires it now. */
  releaseLease(by: HubRef): Promise<void>;
  leases(): Promise<(StoredLease & { expired: boolean })[]>;
  /**
   * Makes this hub the owner of the sessions if their owner is an earlier incarnation of this hub, or its lease has
   * expired and they are movable. Returns those it got, in their current state. Commands that were in progress for
   * them, or for a session that never came to exist, end as `unknown`.
   */
  claimSessions(by: HubRef, sessionIds: readonly string[]): Promise<StoredSession[]>;
}

/** Claude Code's own record of a session, so that another machine can continue it. Deleted with its session. */
export interface StoreTranscripts {
  /** In call order. An entry whose `uuid` this part already has is skipped; one without is always added. */
  appendTranscript(by: HubRef, part: TranscriptPart, entries: readonly TranscriptEntry[]): Promise<void>;
  /** Replaces everything the part has. */
  replaceTranscript(by: HubRef, part: TranscriptPart, entries: readonly TranscriptEntry[]): Promise<void>;
  /** Undefined if nothing was ever appended. */
  transcript(part: TranscriptPart): Promise<TranscriptEntry[] | undefined>;
  /** The parts of a session besides the conversation itself. */
  transcriptSubpaths(sessionId: string): Promise<string[]>;
}

/** Browsers that are notified of requests, and the queue of what they are to be told. */
export interface StorePushes {
  /** Those whose credential is still valid. */
  subscriptions(): Promise<StoredSubscription[]>;
  /**
   * Adds it, or replaces the one with its id. A principal has at most `most`: its oldest ones go. What is open already is
   * announced only after `remindAfterMs`, if at all: whoever subscribes has it on the screen.
   */
  putSubscription(
    subscription: StoredSubscription,
    limits: { readonly most: number; readonly remindAfterMs: number | undefined },
  ): Promise<void>;
  /** With everything that was still to be sent to it. Idempotent. */
  removeSubscription(id: string): Promise<void>;
  /**
   * What is to be sent now. It belongs to the caller for `holdMs`, then to whoever asks next; `savePush` or `removePush`
   * says how it went, and until then it counts as a failed attempt. Open requests are queued here for every subscription whose principal may see them: there is
   * nothing that a hub could miss.
   */
  takePushes(query: PushQuery): Promise<DuePushes>;
  /** Ignored if its subscription is gone. */
  savePush(push: StoredPush): Promise<void>;
  removePush(push: Pick<StoredPush, 'subscriptionId' | 'requestId'>): Promise<void>;
}

export interface PushQuery {
  readonly limit: number;
  /** Subscriptions that get nothing now. */
  readonly except?: readonly string[];
  readonly holdMs: number;
}

export interface DuePush {
  readonly push: StoredPush;
  readonly subscription: StoredSubscription;
  /** Undefined if it was removed with its session. */
  readonly request: StoredRequest | undefined;
}

export interface DuePushes {
  readonly pushes: DuePush[];
  /** By the store's clock. */
  readonly now: number;
  /** How long until something else is due, unless something happens first; undefined if nothing is. */
  readonly nextInMs?: number;
}

/** A time that never comes, which any other can be added to. */
export const NEVER = 2 ** 52;

export interface SessionQuery {
  readonly principal?: string;
  readonly tags?: readonly SessionState[];
  readonly hub?: string;
  /** Only those that are put away, or only those that are not. */
  readonly archived?: boolean;
  /** Matched anywhere in id, title, directory or principal, ignoring case. */
  readonly search?: string;
  /** `next` from the previous page. */
  readonly after?: string;
  readonly limit: number;
}

export interface InboxQuery {
  readonly principal?: string;
  readonly sessionId?: string;
  readonly after?: string;
  readonly limit: number;
}

export interface Page<Row> {
  readonly items: Row[];
  /** Where the next page starts; absent on the last one. */
  readonly next?: string;
  /** Ids of rows that belong here and cannot be read. They stay in the store. */
  readonly unreadable?: readonly string[];
}

export interface PositionedSession {
  readonly row: StoredSession;
  readonly position: number;
}

export interface EventPage {
  readonly events: StoredEvent[];
  /** 0 before the first. */
  readonly lastId: number;
  /** The highest id that was dropped: a reader continuing from before it has missed something. */
  readonly droppedThrough: number;
}

export interface FeedQuery {
  readonly after: number;
  readonly limit: number;
  /** Stored size of a page; its first row is returned whatever its size. `MAX_FEED_BYTES` unless it is less. */
  readonly maxBytes?: number;
}

/** No reader makes the hub load more than this at once. */
export const MAX_FEED_BYTES = 1024 * 1024;

export interface FeedPage {
  readonly entries: FeedEntry[];
  /** The position to continue from; with no entries, the newest. */
  readonly last: number;
  /** There may be more after it that was already stored. */
  readonly more?: true;
}

/** A session is deleted with everything that belongs to it. One with an open request or a workspace stays. */
export interface Retention {
  /** Sessions idle since then; settled requests, finished commands, closed grants, dead tokens, removals. */
  readonly before: number;
  /** How many sessions at once, so that no one waits long. */
  readonly limit: number;
}

/** How much is kept per session until its retention ends. Events marked `keep` may take up as much again. */
export interface EventBounds {
  readonly maxEvents: number;
  readonly maxBytes: number;
}

/** Far more than anyone reads: only a session that never stops talking loses its beginning. */
export const DEFAULT_EVENT_BOUNDS: EventBounds = { maxEvents: 1_000_000, maxBytes: 256 * 1024 * 1024 };

const CONFLICT_CODES = {
  /** The session now runs elsewhere, or this incarnation of the hub is over. */
  fenced: 'UNAVAILABLE',
  /** Someone else settled it first; `stored` is the outcome. */
  settled: 'PERMISSION_REQUEST_NOT_FOUND',
  unknownRequest: 'PERMISSION_REQUEST_NOT_FOUND',
  unknownSession: 'SESSION_NOT_FOUND',
  /** The idempotency key was used for a different command, which is `stored`. */
  keyReused: 'INVALID_ARGUMENT',
  /** Too late to withdraw it; `stored` is how far it has got. */
  begun: 'SESSION_BUSY',
  /** Out of sync with what is stored: a bug in the caller. */
  outOfStep: 'INTERNAL',
} as const satisfies Record<string, ErrorCode>;

/** The store works, and refuses this write entirely. Resending it changes nothing. */
export class StoreConflict extends DomainError {
  readonly conflict: keyof typeof CONFLICT_CODES;
  readonly stored: unknown;

  constructor(conflict: keyof typeof CONFLICT_CODES, message: string, stored?: unknown) {
    super(CONFLICT_CODES[conflict], message);
    this.conflict = conflict;
    this.stored = stored;
  }
}

/** The store was lost during a write, and it is unknown whether it was stored. Resending it settles that. */
export class StoreUncertain extends DomainError {
  constructor(cause: DomainError) {
    super('UNAVAILABLE', cause.message, { cause });
  }
}

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
