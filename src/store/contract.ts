/**
 * What the hub remembers. Three promises hold for every implementation:
 *
 * - A write is stored as a whole or not at all, and is stored when its promise resolves: only then tell anybody.
 * - Every change may be sent twice. A write whose answer was lost (`UNAVAILABLE`) is simply sent again.
 * - A session is changed only by the hub that it runs on, in that hub's present life. All others are fenced off.
 */

import { DomainError, type ErrorCode } from '../errors/errors.ts';
import type {
  Change,
  FeedEntry,
  HubRef,
  SessionTag,
  StoredCommand,
  StoredEvent,
  StoredGrant,
  StoredLease,
  StoredMessage,
  StoredRequest,
  StoredSession,
  StoredToken,
  TranscriptEntry,
  TranscriptPart,
} from '../schema/store.ts';

export interface Store extends StoreReads, StoreLeases, StoreTranscripts {
  readonly kind: 'memory' | 'sqlite' | 'postgres';

  /**
   * Applies all of the changes, in order, or none of them. Changes to a session need `by`, the hub that it runs on.
   * A batch of nothing but events and commands without a key is kept through a crash of the process, and through a power
   * cut once something else was stored after it; all else is kept through both.
   */
  write(changes: readonly Change[], by?: HubRef): Promise<void>;

  /** Stores the value unless there is one already; returns the one that is stored. Two hubs at once agree on it. */
  ensureSetting(key: string, value: string): Promise<string>;

  /**
   * The next command of each session that runs on this hub and has none under way; also where only an earlier life has run
   * it so far. Taken once, and never again: where the answer was lost, whoever asks again says which ones it has, and gets
   * the others that were taken for this life.
   */
  takeCommands(by: HubRef, limit: number, has?: ReadonlySet<string>): Promise<StoredCommand[]>;

  /** Forgets what is older than `before`: see {@link Retention}. The feed tells which sessions went. Call again while `more`. */
  forget(retention: Retention): Promise<{ sessions: string[]; more: boolean }>;

  /**
   * Calls back after something was stored, by this hub or another. A wake-up and nothing more: what was stored is
   * read with `feed`, so that a lost wake-up delays and never loses. `follow` does both.
   */
  subscribe(wake: () => void): () => void;

  /** Idempotent. Waits for writes under way. */
  close(): Promise<void>;
}

export interface StoreReads {
  session(id: string): Promise<StoredSession | undefined>;
  /** The position in the feed of the last change of each session, of those that there are. */
  positions(sessionIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** The most recently active first. */
  sessions(query: SessionQuery): Promise<Page<StoredSession>>;

  events(sessionId: string, query: { after?: number; limit: number }): Promise<EventPage>;
  /** Everything after a position, in the order in which it was stored. */
  feed(query: { after: number; limit: number }): Promise<FeedPage>;

  /** Oldest first. */
  messages(sessionId: string): Promise<StoredMessage[]>;

  request(id: string): Promise<StoredRequest | undefined>;
  /** Open requests, oldest first. */
  inbox(query: InboxQuery): Promise<Page<StoredRequest>>;

  /** Whether there is a command for a session that runs on this hub, or was placed there, and nobody has taken. */
  hasCommands(by: HubRef): Promise<boolean>;
  command(id: string): Promise<StoredCommand | undefined>;
  commandByKey(principal: string, key: string): Promise<StoredCommand | undefined>;

  /** Those that are not closed, oldest first. */
  grants(sessionId: string): Promise<StoredGrant[]>;

  token(id: string): Promise<StoredToken | undefined>;
  tokenByHash(hash: string): Promise<StoredToken | undefined>;
  tokens(): Promise<StoredToken[]>;

  setting(key: string): Promise<string | undefined>;
}

export interface StoreLeases {
  /** Begins a new life of this hub, with the next fencing number. An earlier life can write no more. */
  acquireLease(hub: string, ttlMs: number, info: Record<string, unknown>): Promise<StoredLease>;
  /** Also after the lease has expired, as long as no other life of this hub has begun. */
  renewLease(by: HubRef, ttlMs: number, info: Record<string, unknown>): Promise<StoredLease>;
  /** Expires it now. */
  releaseLease(by: HubRef): Promise<void>;
  leases(): Promise<(StoredLease & { expired: boolean })[]>;
  /**
   * Makes this hub the one that the sessions run on, where the hub they ran on is an earlier life of this one, or its
   * lease has expired and they are movable. Returns those it got, as they are now. Commands that were under way for
   * them, or for a session that never came to be, end as `unknown`.
   */
  claimSessions(by: HubRef, sessionIds: readonly string[]): Promise<StoredSession[]>;
}

/** Claude Code's own record of a session, so that another machine can continue it. Gone with its session. */
export interface StoreTranscripts {
  /** In the order of the calls. An entry whose `uuid` this part has already is left out; one without is always added. */
  appendTranscript(by: HubRef, part: TranscriptPart, entries: readonly TranscriptEntry[]): Promise<void>;
  /** Puts these in place of all that the part has. */
  replaceTranscript(by: HubRef, part: TranscriptPart, entries: readonly TranscriptEntry[]): Promise<void>;
  /** Nothing where nothing was ever appended. */
  transcript(part: TranscriptPart): Promise<TranscriptEntry[] | undefined>;
  /** The parts of a session beside the conversation itself. */
  transcriptSubpaths(sessionId: string): Promise<string[]>;
}

export interface SessionQuery {
  readonly principal?: string;
  readonly tags?: readonly SessionTag[];
  readonly hub?: string;
  /** Found anywhere in id, title, directory or principal, whatever the case. */
  readonly search?: string;
  /** `next` of the page before. */
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
  /** Where the next page begins; absent on the last one. */
  readonly next?: string;
}

export interface EventPage {
  readonly events: StoredEvent[];
  /** 0 before the first. */
  readonly lastId: number;
  /** The highest id that was dropped: whoever reads on from before it has missed something. */
  readonly droppedThrough: number;
}

export interface FeedPage {
  readonly entries: FeedEntry[];
  /** The position to continue from; with no entries, the newest. */
  readonly last: number;
}

/** A session goes with all that belongs to it. One with an open request, or with a workspace, stays. */
export interface Retention {
  /** Sessions at rest since; settled requests, finished commands, closed grants, dead tokens, removals. */
  readonly before: number;
  /** How many sessions at once, so that nobody waits long. */
  readonly limit: number;
}

/** How much is kept of one session. Events marked `keep` may take up as much again. */
export interface EventBounds {
  readonly maxEvents: number;
  readonly maxBytes: number;
}

export const DEFAULT_EVENT_BOUNDS: EventBounds = { maxEvents: 1000, maxBytes: 8 * 1024 * 1024 };

const CONFLICT_CODES = {
  /** The session runs elsewhere now, or this life of the hub is over. */
  fenced: 'UNAVAILABLE',
  /** Somebody else settled it first; `stored` is the outcome. */
  settled: 'PERMISSION_REQUEST_NOT_FOUND',
  unknownRequest: 'PERMISSION_REQUEST_NOT_FOUND',
  unknownSession: 'SESSION_NOT_FOUND',
  /** The idempotency key was used for another command; `stored` is that one. */
  keyReused: 'INVALID_ARGUMENT',
  /** Too late to withdraw it; `stored` is how far it has got. */
  begun: 'SESSION_BUSY',
  /** Out of step with what is stored: a defect of the caller. */
  outOfStep: 'INTERNAL',
} as const satisfies Record<string, ErrorCode>;

/** The store works, and refuses this write as a whole. Sending it again changes nothing. */
export class StoreConflict extends DomainError {
  readonly conflict: keyof typeof CONFLICT_CODES;
  readonly stored: unknown;

  constructor(conflict: keyof typeof CONFLICT_CODES, message: string, stored?: unknown) {
    super(CONFLICT_CODES[conflict], message);
    this.conflict = conflict;
    this.stored = stored;
  }
}

/** The store was lost while it stored something, and nobody knows whether it has. To send it again settles that. */
export class StoreUncertain extends DomainError {
  constructor(cause: DomainError) {
    super('UNAVAILABLE', cause.message, { cause });
  }
}
