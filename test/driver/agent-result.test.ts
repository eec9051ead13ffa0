import type { SDKMessage } from '@anthropic-ai/claude-agent-sdk';
import { expect, test } from 'vitest';
import { toAgentResult } from '../../src/driver/agent-result.ts';

type Result = Extract<SDKMessage, { type: 'result' }>;

const failed = (errors: unknown, terminalReason?: string): Result =>
  ({ type: 'result', subtype: 'error_during_execution', errors, terminal_reason: terminalReason }) as Result;

test.each([
  [['[ede_diagnostic] result_type=user stop_reason=null'], 'aborted_streaming', 'The turn was interrupted.'],
  [undefined, 'aborted_tools', 'The turn was interrupted.'],
  [['It broke.'], 'aborted_tools', 'It broke.'],
  [['It broke.', 'Twice.'], undefined, 'It broke.\nTwice.'],
])('the errors %j of a turn that ended with %s become %j', (errors, terminalReason, text) => {
  expect(toAgentResult(failed(errors, terminalReason))).toMatchObject({ text, isError: true });
});
