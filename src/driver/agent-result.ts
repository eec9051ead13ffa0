import type { SDKMessage } from '@anthropic-ai/claude-agent-sdk';
import type { AgentResult } from '../schema/events.ts';

type Result = Extract<SDKMessage, { type: 'result' }>;

/** Other versions may omit figures or texts: totals must stay numbers, and an answer a string. */
export function toAgentResult(message: Result): AgentResult {
  const success = message.subtype === 'success';
  const interrupted = message.terminal_reason === 'aborted_streaming' || message.terminal_reason === 'aborted_tools';
  const errorSubtype = success ? (message.is_error ? 'error_api' : undefined) : message.subtype;
  const structuredOutput = success ? message.structured_output : undefined;
  return {
    text: success ? textOf(message.result) : errorText(message.errors, interrupted),
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
