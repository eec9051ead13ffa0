import type { RequestRecord, SessionEvent } from '../schema/events.ts';
import type { SessionRecord } from '../schema/records.ts';
import type { Message } from './conversation/outbox.ts';
import type { Outcome } from './requests/requests.ts';
import type { Sums } from './conversation/totals.ts';

/** What happened to a session, in the order in which it did. */
export type SessionNotice =
  /** State, activity, totals or forms: something that a waiting call may have been waiting for. */
  | { readonly kind: 'changed' }
  /** Final: an event that is still growing is announced when it has stopped. */
  | { readonly kind: 'event'; readonly event: SessionEvent }
  | { readonly kind: 'request'; readonly request: RequestRecord }
  | { readonly kind: 'settled'; readonly request: RequestRecord; readonly outcome: Outcome }
  /** On its way to Claude Code, and later: accepted by it, or withdrawn. */
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'delivered'; readonly messageId: string };

/** Which session a notice is about, and what its observers look at each time. */
export interface AboutSession {
  readonly sessionId: string;
  /** The id of the principal it belongs to. */
  readonly owner: string;
  readonly atRest: boolean;
  readonly totals: Readonly<Sums>;
}

/** What happened in the engine: the single stream that the hub's journal and all other observers read. */
export type EngineNotice =
  | (SessionNotice & AboutSession)
  | ({ readonly kind: 'added' } & AboutSession)
  /** By this process. Its stored data stays. */
  | ({ readonly kind: 'forgotten'; readonly record: SessionRecord } & AboutSession)
  /** It never came to be: no one needs what was stored of it. The audit log has the reason. */
  | ({ readonly kind: 'start_failed' } & AboutSession)
  /** The tools that sessions reported so far. */
  | { readonly kind: 'tools'; readonly tools: readonly string[] };

/** Calls its listeners synchronously, in the order in which they subscribed. */
export class NoticeStream<Notice> {
  /** Replaced, never mutated, so that a listener in the middle of a notice does not miss another. */
  #listeners: readonly ((notice: Notice) => void)[] = [];

  /** Returns an unsubscribe function. */
  subscribe(listener: (notice: Notice) => void): () => void {
    const own = (notice: Notice): void => listener(notice);
    this.#listeners = [...this.#listeners, own];
    return () => {
      this.#listeners = this.#listeners.filter((each) => each !== own);
    };
  }

  tell(notice: Notice): void {
    for (const listener of this.#listeners) listener(notice);
  }

  get listenerCount(): number {
    return this.#listeners.length;
  }
}
