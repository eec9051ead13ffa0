import type { SessionEvent } from '../schema/events.ts';
import type { Message } from './outbox.ts';
import type { OpenRequest, Outcome } from './requests.ts';
import type { Session } from './session.ts';

/** What happened to a session, in the order in which it did. */
export type SessionNotice =
  /** State, activity, totals or forms: something that a waiting call may have been waiting for. */
  | { readonly kind: 'changed' }
  /** Final: an event that is still growing is announced when it has stopped. */
  | { readonly kind: 'event'; readonly event: SessionEvent }
  | { readonly kind: 'request'; readonly request: OpenRequest }
  | { readonly kind: 'settled'; readonly request: OpenRequest; readonly outcome: Outcome }
  /** On its way to Claude Code, and later: taken up by it, or taken back. */
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'delivered'; readonly messageId: string };

/** What happened in the engine: the one stream that the hub's journal and every other observer reads. */
export type EngineNotice =
  | (SessionNotice & { readonly session: Session })
  | { readonly kind: 'added'; readonly session: Session }
  /** By this process. What was stored of it stays. */
  | { readonly kind: 'forgotten'; readonly session: Session }
  /** The tools that sessions reported so far. */
  | { readonly kind: 'tools'; readonly tools: readonly string[] };

/** Calls its listeners at once, in the order in which they came. */
export class NoticeStream<Notice> {
  /** Never changed but replaced, so that nobody who is being told of a notice misses another one for it. */
  #listeners: readonly ((notice: Notice) => void)[] = [];

  /** Returns how to stop listening. */
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
