import type { SDKMessage } from '@anthropic-ai/claude-agent-sdk';

import { loginRemedy } from './agent-result.ts';

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
