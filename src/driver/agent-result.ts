import type { SDKMessage } from '@anthropic-ai/claude-agent-sdk';
import type { AgentResult } from './agent-signal.ts';

type Result = Extract<SDKMessage, { type: 'result' }>;

export function toAgentResult(message: Result): AgentResult {
  const success = message.subtype === 'success';
  return {
    text: success ? message.result : message.errors.join('\n'),
    // A refused request (HTTP 400) ends as `success` with is_error set.
    isError: message.is_error || !success,
    interrupted: message.terminal_reason === 'aborted_streaming' || message.terminal_reason === 'aborted_tools',
    errorSubtype: success ? (message.is_error ? 'error_api' : undefined) : message.subtype,
    numTurns: message.num_turns,
    cumulativeCostUsd: message.total_cost_usd,
    durationMs: message.duration_ms,
    durationApiMs: message.duration_api_ms,
    stopReason: message.stop_reason ?? undefined,
    usage: { ...message.usage },
    modelUsage: message.modelUsage,
    structuredOutput: success ? message.structured_output : undefined,
    permissionDenials: message.permission_denials,
  };
}
