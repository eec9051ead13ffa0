import type { AgentExit } from '../../driver/agent-process.ts';
import type { EventBody } from '../../schema/events.ts';
import type { Source } from '../requests/requests.ts';
import type { Cancellation } from '../session/session-types.ts';
import type { Ending } from './standing.ts';
import type { State } from './state.ts';
import { endedByForce, interruptedWaiting, stoppedByServer, type TurnResult } from './turn-result.ts';

/** How a turn ends, with all consequences. */
export type TurnEnding = Ending & {
  /** What becomes of unanswered requests. */
  readonly unanswered: { readonly message: string; readonly interrupt?: true; readonly source: Source };
  /** For the log. */
  readonly error?: EventBody;
};

const INTERRUPTED = { message: 'The turn was interrupted.', interrupt: true, source: 'interrupt' } as const;

/** Claude Code is idle. */
export function ranToCompletion(state: State, result: TurnResult | undefined): TurnEnding {
  const stopped =
    result?.interrupted === true || (state === 'interrupting' && result?.errorSubtype === 'error_during_execution');
  return {
    how: stopped ? 'stop' : result?.isError === true ? 'fail' : 'rest',
    result,
    unanswered: { message: 'The turn has ended.', source: 'cancel' },
  };
}

/** There is no process to continue it. */
export function failed(result: TurnResult, exit: Pick<AgentExit, 'code' | 'signal'> | undefined): TurnEnding {
  return {
    how: 'fail',
    result,
    error: { kind: 'error', message: result.text, ...(exit && { exitCode: exit.code, signal: exit.signal }) },
    unanswered: { message: 'Claude Code has ended.', interrupt: true, source: 'cancel' },
  };
}

/** Interrupted while it waited for answers without a process. */
export function interruptedDetached(undelivered: string[]): TurnEnding {
  return { how: 'stop', result: interruptedWaiting(undelivered), unanswered: INTERRUPTED };
}

/** The process did not respond to an interrupt and was ended. */
export function forced(undelivered: string[]): TurnEnding {
  return { how: 'stop', result: endedByForce(undelivered), unanswered: INTERRUPTED };
}

/** Stopped by the server; unlike a cancelled conversation, this one still accepts messages. */
export function stopped(cancellation: Cancellation, undelivered: string[]): TurnEnding {
  const { reason } = cancellation;
  return {
    how: 'stop',
    result: stoppedByServer(reason, undelivered),
    cancellation,
    unanswered: { message: `The turn was stopped: ${reason}.`, interrupt: true, source: 'cancel' },
  };
}

export function cancelled(cancellation: Cancellation, source: Source): TurnEnding {
  const message = `The session was cancelled: ${cancellation.reason}`;
  return { how: 'cancel', cancellation, unanswered: { message, interrupt: true, source } };
}
