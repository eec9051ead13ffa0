import {
  STATES_AT_REST,
  type SessionState,
  type StateAtRest,
  type RestsAs,
  type StateAtWork,
} from '../../schema/enums.ts';
import type { Cancellation } from '../session/session-types.ts';
import type { TurnResult } from './turn-result.ts';

/*
 * The life of a session as data. `waiting` means that at least one request is unanswered; `interrupting` that somebody
 * pressed Escape and Claude Code has not come to rest yet. An event that has no entry for a state changes nothing.
 */
export type State = SessionState;

export const TRANSITIONS = {
  /** Claude Code has reported its start. */
  started: { starting: 'running' },
  /** A message was delivered, or Claude Code woke up by itself. */
  work: { idle: 'running', interrupted: 'running', error: 'running' },
  /** The turn was stopped, and Claude Code continues with a queued message. */
  next: { interrupting: 'running' },
  /** The first open request. Background work can ask while the conversation is at rest. */
  asked: { starting: 'waiting', running: 'waiting', idle: 'waiting', interrupted: 'waiting', error: 'waiting' },
  /** The last open request was settled. */
  answered: { waiting: 'running' },
  interrupt: { starting: 'interrupting', running: 'interrupting', waiting: 'interrupting' },
  /** At rest with an answer. */
  rest: { starting: 'idle', running: 'idle', waiting: 'idle', interrupting: 'idle' },
  /** At rest because the turn was stopped. */
  stop: { starting: 'interrupted', running: 'interrupted', waiting: 'interrupted', interrupting: 'interrupted' },
  /** At rest because the turn failed, or the process died while working. */
  fail: {
    starting: 'error',
    running: 'error',
    waiting: 'error',
    interrupting: 'error',
    idle: 'error',
    interrupted: 'error',
  },
  cancel: {
    starting: 'cancelled',
    running: 'cancelled',
    waiting: 'cancelled',
    interrupting: 'cancelled',
    idle: 'cancelled',
    interrupted: 'cancelled',
    error: 'cancelled',
  },
} as const satisfies Record<string, Partial<Record<State, State>>>;

export type StateEvent = keyof typeof TRANSITIONS;

type Next<Event extends StateEvent> = (typeof TRANSITIONS)[Event][keyof (typeof TRANSITIONS)[Event]];

/** The next state, or `undefined` if the event is invalid in this one. */
export function transition<Event extends StateEvent>(state: State, event: Event): Next<Event> | undefined {
  return (TRANSITIONS[event] as Partial<Record<State, Next<Event>>>)[state];
}

export function isAtRest(state: State): state is StateAtRest {
  return (STATES_AT_REST as readonly State[]).includes(state);
}

/** The current answer belongs to the turn while it works, and to the rest state afterwards. */
type At =
  | {
      readonly kind: StateAtWork | Exclude<StateAtRest, 'cancelled'>;
      readonly result: TurnResult | undefined;
      /** Of a turn that the server stopped. */
      readonly cancellation?: Cancellation | undefined;
    }
  | { readonly kind: 'cancelled'; readonly result: TurnResult | undefined; readonly cancellation: Cancellation };

/** The stored form of a conversation's standing. */
export interface StoredStanding {
  readonly state: State;
  readonly result: TurnResult | undefined;
  readonly cancellation: Cancellation | undefined;
}

/** How a turn ends. */
export type Ending =
  | {
      readonly how: RestsAs;
      readonly result: TurnResult | undefined;
      readonly cancellation?: Cancellation;
    }
  | { readonly how: 'cancel'; readonly cancellation: Cancellation };

/** Events within a turn, into one, or back from one of the server's own requests. */
export type Move = Exclude<StateEvent, 'cancel'>;

/** Where a conversation stands, with the answer of its last turn. */
export class Standing {
  #at: At;

  /** `restored`: where it stood when an earlier process ended. */
  constructor(restored?: StoredStanding) {
    const { state, result, cancellation } = restored ?? { state: 'starting', result: undefined };
    this.#at = { kind: state, result, cancellation } as At;
  }

  get state(): State {
    return this.#at.kind;
  }

  get result(): TurnResult | undefined {
    return this.#at.result;
  }

  get cancellation(): Cancellation | undefined {
    return this.#at.cancellation;
  }

  setResult(result: TurnResult | undefined): void {
    this.#at = { ...this.#at, result };
  }

  /** False if the event is invalid in this state. */
  move(event: Move): boolean {
    const kind = transition(this.state, event);
    if (kind === undefined) return false;
    this.#at = { kind, result: this.result };
    return true;
  }

  /** False if there is no turn to end. */
  end(ending: Ending): boolean {
    const next = this.#after(ending);
    if (!next) return false;
    this.#at = next;
    return true;
  }

  #after(ending: Ending): At | undefined {
    if (ending.how === 'cancel') {
      const kind = transition(this.state, ending.how);
      return kind && { kind, result: this.result, cancellation: ending.cancellation };
    }
    const kind = transition(this.state, ending.how);
    return kind && { kind, result: ending.result, cancellation: ending.cancellation };
  }
}
