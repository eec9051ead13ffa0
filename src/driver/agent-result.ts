import type { SDKMessage } from '@anthropic-ai/claude-agent-sdk';
import type { AgentResult } from '../schema/events.ts';
import { onlyBundledProgram } from './claude-code-program.ts';

type Retry = Extract<SDKMessage, { type: 'system'; subtype: 'api_retry' }>;

/** Claude Code retries a rejected login like an overload; waiting does not help, a person has to act. */
export function isLoginRefusal(retry: Retry): boolean {
  return retry.error_status === 401 || retry.error_status === 403 || retry.error === 'authentication_failed';
}

export function describeRetry(retry: Retry): string {
  const attempt = `attempt ${String(retry.attempt)} of ${String(retry.max_retries)}`;
  if (isLoginRefusal(retry)) {
    return `The login or key was rejected (${reason(retry)}), ${attempt}. ${loginRemedy()}`;
  }
  const seconds = Math.max(1, Math.round(retry.retry_delay_ms / 1000));
  return `The API did not respond (${reason(retry)}): ${attempt} in ${String(seconds)} s`;
}

function reason(retry: Retry): string {
  if (retry.error_status !== null) return `${String(retry.error_status)} ${retry.error}`;
  return retry.error === 'unknown' ? 'the connection was lost' : retry.error;
}

type Result = Extract<SDKMessage, { type: 'result' }>;

/** Other versions may omit figures or texts: totals must stay numbers, and an answer a string. */
export function toAgentResult(message: Result): AgentResult {
  const success = message.subtype === 'success';
  const interrupted = message.terminal_reason === 'aborted_streaming' || message.terminal_reason === 'aborted_tools';
  const errorSubtype = success ? (message.is_error ? 'error_api' : undefined) : message.subtype;
  const structuredOutput = success ? message.structured_output : undefined;
  return {
    text: success ? answerText(message) : errorText(message.errors, interrupted),
    // A refused request (HTTP 400) ends as `success` with is_error set.
    isError: message.is_error || !success,
    interrupted,
    ...(errorSubtype !== undefined && { errorSubtype }),
    numTurns: figure(message.num_turns),
    cumulativeCostUsd: figure(message.total_cost_usd),
    durationMs: figure(message.duration_ms),
    durationApiMs: figure(message.duration_api_ms),
    ...(message.stop_reason != null && { stopReason: message.stop_reason }),
    usage: { ...message.usage },
    modelUsage: { ...message.modelUsage },
    ...(structuredOutput !== undefined && { structuredOutput }),
    permissionDenials: message.permission_denials,
  };
}

/** Claude Code 2.1.325 says this of a missing login, and names a command that exists only in its own terminal. */
const NOT_LOGGED_IN = /not logged in|please run \/login|invalid api key|invalid authentication/i;

function answerText(message: Extract<Result, { subtype: 'success' }>): string {
  const text = textOf(message.result);
  const isRefused = message.api_error_status === 401 || message.api_error_status === 403;
  if (!message.is_error || !(isRefused || NOT_LOGGED_IN.test(text))) return text;
  return `${text}\nClaude Code has no valid login where the server runs. ${loginRemedy()}`;
}

/** By its path: whoever has Claude Code only from this package has no such command. */
export function loginRemedy(program = onlyBundledProgram()): string {
  const command = program === undefined ? 'claude' : `"${program}"`;
  return `Run ${command} auth login, or set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN where the server is started.`;
}

/** After an interrupt Claude Code only reports internal notes (`[ede_diagnostic] …`), which mean nothing to anyone else. */
function errorText(errors: unknown, interrupted: boolean): string {
  const text = textOf(errors);
  return interrupted && (text === '' || text.startsWith('[ede_diagnostic]')) ? 'The turn was interrupted.' : text;
}

function figure(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return Array.isArray(value) ? value.map(String).join('\n') : '';
}
