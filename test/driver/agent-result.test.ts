import type { SDKMessage } from '@anthropic-ai/claude-agent-sdk';
import { expect, test } from 'vitest';
import { toAgentResult } from '../../src/driver/translate.ts';

type Result = Extract<SDKMessage, { type: 'result' }>;

const failed = (errors: unknown, terminalReason?: string): Result =>
  ({ type: 'result', subtype: 'error_during_execution', errors, terminal_reason: terminalReason }) as Result;

test('a missing login names the command to run, which works outside Claude Code’s own terminal', () => {
  const message = { type: 'result', subtype: 'success', is_error: true, result: 'Not logged in · Please run /login' };
  const { text, isError } = toAgentResult(message as Result);
  expect(isError).toBe(true);
  expect(text).toMatch(/^Not logged in · Please run \/login\n.*Run .*claude.* auth login, or set ANTHROPIC_API_KEY/);
  const answer = { type: 'result', subtype: 'success', is_error: false, result: 'Please run /login in your app.' };
  expect(toAgentResult(answer as Result).text).toBe('Please run /login in your app.');
});

test.each([
  [['[ede_diagnostic] result_type=user stop_reason=null'], 'aborted_streaming', 'The turn was interrupted.'],
  [undefined, 'aborted_tools', 'The turn was interrupted.'],
  [['It broke.'], 'aborted_tools', 'It broke.'],
  [['It broke.', 'Twice.'], undefined, 'It broke.\nTwice.'],
])('the errors %j of a turn that ended with %s become %j', (errors, terminalReason, text) => {
  expect(toAgentResult(failed(errors, terminalReason))).toMatchObject({ text, isError: true });
});
