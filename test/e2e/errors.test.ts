import { expect } from 'vitest';
import { text } from '../../src/scripted-model/reply.ts';
import type { Toolset } from '../harness/toolsets.ts';
import { verifies } from './requirements.ts';

const UNKNOWN = '00000000-0000-4000-8000-000000000000';

type Calls = Readonly<Record<Toolset, readonly [tool: string, args: Record<string, unknown>, expected: string][]>>;

const FAILURES: Calls = {
  compact: [
    ['claude_code', {}, 'INVALID_ARGUMENT'],
    ['claude_code', { prompt: 'x', permissionMode: 'yolo' }, 'INVALID_ARGUMENT'],
    ['claude_code', { prompt: 'x', maxTurns: 0 }, 'INVALID_ARGUMENT'],
    ['claude_code', { prompt: 'x', waitMs: -1 }, 'INVALID_ARGUMENT'],
    ['claude_code', { prompt: 'x', advanced: 'everything' }, 'INVALID_ARGUMENT'],
    ['claude_code_reply', { sessionId: UNKNOWN, prompt: 'x' }, 'SESSION_NOT_FOUND'],
    ['claude_code_reply', { prompt: 'x' }, 'INVALID_ARGUMENT'],
    ['claude_code_check', { action: 'poll', sessionId: UNKNOWN }, 'SESSION_NOT_FOUND'],
    ['claude_code_check', { action: 'wait', sessionId: UNKNOWN, waitMs: 600_001 }, 'INVALID_ARGUMENT'],
    ['claude_code_check', { action: 'look', sessionId: UNKNOWN }, 'INVALID_ARGUMENT'],
    ['claude_code_session', { action: 'get' }, 'INVALID_ARGUMENT'],
    ['claude_code_session', { action: 'get', sessionId: UNKNOWN }, 'SESSION_NOT_FOUND'],
    ['claude_code_session', { action: 'rewind', sessionId: UNKNOWN }, 'SESSION_NOT_FOUND'],
    ['claude_code_nonsense', {}, 'INVALID_ARGUMENT'],
  ],
  explicit: [
    ['claude_create_session', {}, 'INVALID_ARGUMENT'],
    // Of a kind that only the compact set offers.
    ['claude_create_session', { prompt: 'x', permissionMode: 'auto' }, 'INVALID_ARGUMENT'],
    ['claude_create_session', { prompt: 'x', maxTurns: 0 }, 'INVALID_ARGUMENT'],
    ['claude_create_session', { prompt: 'x', systemPrompt: '' }, 'INVALID_ARGUMENT'],
    ['claude_send_message', { sessionId: UNKNOWN, message: 'x' }, 'SESSION_NOT_FOUND'],
    ['claude_send_message', { sessionId: UNKNOWN, message: '  ' }, 'INVALID_ARGUMENT'],
    ['claude_send_message', { sessionId: UNKNOWN }, 'INVALID_ARGUMENT'],
    ['claude_get_status', { sessionId: UNKNOWN }, 'SESSION_NOT_FOUND'],
    ['claude_get_status', {}, 'INVALID_ARGUMENT'],
    ['claude_get_status', { sessionId: UNKNOWN, waitMs: 600_001 }, 'INVALID_ARGUMENT'],
    ['claude_respond', { sessionId: UNKNOWN, inputId: 'y', decision: 'allow' }, 'SESSION_NOT_FOUND'],
    ['claude_interrupt', { sessionId: UNKNOWN }, 'SESSION_NOT_FOUND'],
    ['claude_list_sessions', { limit: 'many' }, 'INVALID_ARGUMENT'],
    ['claude_list_sessions', { limit: 0 }, 'INVALID_ARGUMENT'],
    ['claude_code', { prompt: 'x' }, 'INVALID_ARGUMENT'],
  ],
};

verifies('errors.as-results', async (variant) => {
  const h = await variant.share();
  for (const [tool, args, code] of FAILURES[variant.toolset]) {
    const { isError, data, raw } = await h.call(tool, args);
    expect(isError, `${tool} ${JSON.stringify(args)}`).toBe(true);
    expect(data.error).toMatch(new RegExp(`^Error \\[${code}\\]: .+`, 's'));
    expect(data.isError).toBe(true);
    expect(raw.content).toHaveLength(1);
  }
});

const MISSPELT: Calls = {
  compact: [
    ['claude_code', { prompt: 'x', allowedTool: ['Bash'] }, 'allowedTool; did you mean allowedTools?'],
    ['claude_code', { prompt: 'x', permision_mode: 'plan' }, 'permision_mode'],
    ['claude_code', { prompt: 'x', fallbackModl: 'y' }, 'fallbackModl; did you mean fallbackModel?'],
    ['claude_code', { prompt: 'x', advanced: { maxBudget: 1 } }, 'advanced.maxBudget'],
    ['claude_code_reply', { sessionId: UNKNOWN, prompt: 'x', fork: true }, 'fork'],
    [
      'claude_code_reply',
      { sessionId: UNKNOWN, prompt: 'x', diskResumeConfig: { maxTurn: 3 } },
      'diskResumeConfig.maxTurn; did you mean maxTurns?',
    ],
    ['claude_code_check', { action: 'poll', sessionId: UNKNOWN, cursr: 1 }, 'cursr; did you mean cursor?'],
    [
      'claude_code_check',
      { action: 'poll', sessionId: UNKNOWN, pollOptions: { maxByte: 1 } },
      'pollOptions.maxByte; did you mean maxBytes?',
    ],
    ['claude_code_session', { action: 'list', limits: 3 }, 'limits; did you mean limit?'],
  ],
  explicit: [
    ['claude_create_session', { prompt: 'x', workingDirectry: '.' }, 'workingDirectry; did you mean workingDirectory?'],
    ['claude_create_session', { prompt: 'x', advanced: { effort: 'low' } }, 'advanced'],
    ['claude_send_message', { sessionId: UNKNOWN, message: 'x', messag: 'y' }, 'messag; did you mean message?'],
    ['claude_get_status', { sessionId: UNKNOWN, outputLine: 3 }, 'outputLine; did you mean outputLines?'],
    ['claude_respond', { sessionId: UNKNOWN, inputID: 'y', decision: 'allow' }, 'inputID; did you mean inputId?'],
    ['claude_interrupt', { sessionID: UNKNOWN }, 'sessionID; did you mean sessionId?'],
    ['claude_list_sessions', { limits: 3 }, 'limits; did you mean limit?'],
  ],
};

verifies('errors.unknown-parameter', async (variant) => {
  const h = await variant.share();
  for (const [tool, args, words] of MISSPELT[variant.toolset]) {
    expect(await h.fails(tool, args, 'INVALID_ARGUMENT')).toContain(`Unknown parameter ${words}`);
  }
});

verifies(['errors.given-twice', 'errors.flat-form'], async (variant) => {
  const h = await variant.share();
  const twice = await h.fails(
    'claude_code',
    { prompt: 'x', effort: 'low', advanced: { effort: 'high' } },
    'INVALID_ARGUMENT',
  );
  expect(twice).toContain('effort');
  await h.fails(
    'claude_code_check',
    { action: 'poll', sessionId: UNKNOWN, maxBytes: 5, pollOptions: { maxBytes: 6 } },
    'INVALID_ARGUMENT',
  );
  await h.fails(
    'claude_code_reply',
    { sessionId: UNKNOWN, prompt: 'x', cwd: '/', diskResumeConfig: { cwd: '/tmp' } },
    'INVALID_ARGUMENT',
  );

  // That the flat form alone does as the nested one: `option-arguments`.
  h.model.on('hello').reply(text('hi'));
  const form = { effort: 'low', advanced: { effort: 'low' } };
  const { sessionId } = await h.ok('claude_code', { prompt: 'hello', ...form, waitMs: 40_000 });
  const { sessions } = await h.ok('claude_code_session', { action: 'get', sessionId });
  expect(sessions[0].effort).toBe('low');
});
