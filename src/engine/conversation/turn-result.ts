import type { AgentExit } from '../../driver/agent-process.ts';
import type { AgentResult } from '../../schema/events.ts';

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
  return failed(
    `Claude Code exited before it answered (${describeExit(exit)}). A reply resumes the session.${sendAgain(undelivered)}`,
    'process_exited',
  );
}

export function startFailed(message: string, undelivered: string[]): TurnResult {
  return failed(`${message}${sendAgain(undelivered)}`, 'start_failed');
}

export function endedByForce(undelivered: string[]): TurnResult {
  return failed(
    `The turn was interrupted; the process did not respond and was ended.${sendAgain(undelivered)}`,
    'error_during_execution',
  );
}

export function stoppedByServer(reason: string, undelivered: string[]): TurnResult {
  return failed(`The turn was stopped: ${reason}. A reply continues the session.${sendAgain(undelivered)}`, 'stopped');
}

const HUB_STOPPED = 'the hub stopped while it worked; reply to continue';

export function hubStopped(undelivered: string[]): TurnResult {
  return failed(`${HUB_STOPPED}${sendAgain(undelivered)}`, 'hub_stopped');
}

export function lostContact(undelivered: string[]): TurnResult {
  const text = `the hub lost contact with the store while it worked; reply to continue${sendAgain(undelivered)}`;
  return failed(text, 'hub_stopped');
}

/** There was no process to stop: it had been released while the session waited. */
export function interruptedWaiting(undelivered: string[]): TurnResult {
  const text = `The turn was interrupted while it waited for an answer.${sendAgain(undelivered)}`;
  return { ...failed(text, 'error_during_execution'), interrupted: true };
}

function sendAgain(undelivered: string[]): string {
  if (undelivered.length === 0) return '';
  return `\nNot delivered, send again: ${undelivered.map((text) => JSON.stringify(text)).join(', ')}`;
}

function failed(text: string, errorSubtype: string): TurnResult {
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
