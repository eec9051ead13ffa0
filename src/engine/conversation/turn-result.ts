import type { AgentExit } from '../../driver/agent-process.ts';
import type { AgentResult, EventBody } from '../../schema/events.ts';
import type { Source } from '../requests/requests.ts';
import type { Cancellation } from '../session/session-types.ts';
import type { Ending, State } from './state.ts';

/** The answer of a call: what Claude Code reported last, or what is known about a process that died before it could. */
export type TurnResult = Pick<
  AgentResult,
  | 'text'
  | 'isError'
  | 'interrupted'
  | 'errorSubtype'
  | 'stopReason'
  | 'modelUsage'
  | 'structuredOutput'
  | 'permissionDenials'
>;

export function lostProcess(exit: AgentExit, undelivered: string[]): TurnResult {
  return failure(
    `Claude Code exited before it answered (${describeExit(exit)}). A reply resumes the session.${sendAgain(undelivered)}`,
    'process_exited',
  );
}

export function startFailed(message: string, undelivered: string[]): TurnResult {
  return failure(`${message}${sendAgain(undelivered)}`, 'start_failed');
}

function endedByForce(undelivered: string[]): TurnResult {
  return failure(
    `The turn was interrupted; the process did not respond and was ended.${sendAgain(undelivered)}`,
    'error_during_execution',
  );
}

function stoppedByServer(reason: string, undelivered: string[]): TurnResult {
  return failure(`The turn was stopped: ${reason}. A reply continues the session.${sendAgain(undelivered)}`, 'stopped');
}

const HUB_STOPPED = 'the hub stopped while it worked; reply to continue';

export function hubStopped(undelivered: string[]): TurnResult {
  return failure(`${HUB_STOPPED}${sendAgain(undelivered)}`, 'hub_stopped');
}

export function lostContact(undelivered: string[]): TurnResult {
  const text = `the hub lost contact with the store while it worked; reply to continue${sendAgain(undelivered)}`;
  return failure(text, 'hub_stopped');
}

/** There was no process to stop: it had been released while the session waited. */
function interruptedWaiting(undelivered: string[]): TurnResult {
  const text = `The turn was interrupted while it waited for an answer.${sendAgain(undelivered)}`;
  return { ...failure(text, 'error_during_execution'), interrupted: true };
}

function sendAgain(undelivered: string[]): string {
  if (undelivered.length === 0) return '';
  return `\nNot delivered, send again: ${undelivered.map((text) => JSON.stringify(text)).join(', ')}`;
}

function failure(text: string, errorSubtype: string): TurnResult {
  return {
    text,
    isError: true,
    interrupted: false,
    errorSubtype,
    modelUsage: {},
    permissionDenials: [],
  };
}

export function describeExit({ code, signal, stderr, error }: AgentExit): string {
  const how = signal !== null ? `signal ${signal}` : code !== null ? `exit code ${String(code)}` : 'it did not start';
  const words = stderr !== '' ? stderr : (error ?? '');
  return words === '' ? how : `${how}: ${words}`;
}

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
