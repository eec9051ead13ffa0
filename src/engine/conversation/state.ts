import { STATES_AT_REST, type SessionState, type StateAtRest } from '../../schema/enums.ts';

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
