import { DomainError } from '../errors/errors.ts';
import type { Answer } from './answer.ts';
import type { Clock } from './clock.ts';
import type { Principal } from './principal.ts';
import type { OpenRequest, Source } from './requests.ts';
import type { RestoredSession, SessionSeed, SessionServices } from './session-types.ts';
import { Session } from './session.ts';

/** Somebody here answered a form about a session that runs elsewhere. */
export type SendAnswer = (session: Session, requestId: string, answer: Answer, by: Principal) => void;

/**
 * A session that another hub runs, as it is stored. It looks like any other and does nothing by itself: what is done to
 * it is done where it runs.
 */
export class SessionElsewhere extends Session {
  override readonly elsewhere: string;
  readonly #sendAnswer: SendAnswer;

  constructor(seed: SessionSeed, services: SessionServices, hub: string, sendAnswer: SendAnswer) {
    super(seed, services);
    this.elsewhere = hub;
    this.#sendAnswer = sendAnswer;
  }

  /** Somebody waits for what happens to it. */
  get isFollowed(): boolean {
    return this.notices.listenerCount > 1;
  }

  /** As it is now; the events are those since. Returns the requests that are new. */
  reflect(stored: RestoredSession): OpenRequest[] {
    this.restored = stored;
    this.missing = stored.missing;
    return this.conversation.reflect(stored);
  }

  /** Checked here, counted there: it is settled when the store says so. */
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

/** Time passes, and nothing happens by it. */
export function withoutTimers(clock: Clock): Clock {
  return { wallTime: () => clock.wallTime(), instant: () => clock.instant(), after: () => () => undefined };
}
