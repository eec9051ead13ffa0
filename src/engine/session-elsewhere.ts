import { DomainError } from '../errors/errors.ts';
import type { Answer } from './answer.ts';
import type { Clock } from './clock.ts';
import type { Principal } from './principal.ts';
import type { OpenRequest, Source } from './requests.ts';
import type { RestoredSession, SessionSeed, SessionServices } from './session-types.ts';
import { Session } from './session.ts';

/** A form for a session that runs elsewhere was answered here. */
export type SendAnswer = (session: Session, requestId: string, answer: Answer, by: Principal) => void;

/**
 * A session that another hub runs, as stored. It looks like any other but does nothing by itself: operations on it
 * happen where it runs.
 */
export class SessionElsewhere extends Session {
  override readonly elsewhere: string;
  readonly #sendAnswer: SendAnswer;

  constructor(seed: SessionSeed, services: SessionServices, hub: string, sendAnswer: SendAnswer) {
    super(seed, services);
    this.elsewhere = hub;
    this.#sendAnswer = sendAnswer;
  }

  /** Someone is waiting for something to happen to it. */
  get isFollowed(): boolean {
    return this.notices.listenerCount > 1;
  }

  /** Its current state; the events are those since the last update. Returns the new requests. */
  reflect(stored: RestoredSession): OpenRequest[] {
    this.restored = stored;
    this.missing = stored.missing;
    return this.conversation.reflect(stored);
  }

  /** Checked here, decided there: it is settled when the store says so. */
  override respond(requestId: string, answer: Answer, _source: Source, by?: Principal): OpenRequest {
    const { request } = this.conversation.requests.decisionFor(requestId, answer);
    if (!by) throw new DomainError('INTERNAL', 'An answer sent to another hub must say who gave it.');
    this.#sendAnswer(this, requestId, answer, by);
    return request;
  }

  override decide(): void {
    throw new DomainError('INTERNAL', `Session ${this.id} runs on the hub ${this.elsewhere}; nothing is decided here.`);
  }
}

/** Nothing here expires by itself. */
export function withoutTimers(clock: Clock): Clock {
  return { wallTime: () => clock.wallTime(), instant: () => clock.instant(), after: () => () => undefined };
}
