/** What a client discovers, and the errors for wrong tools and parameters. */

import type { Tool } from '@modelcontextprotocol/client';
import { expect } from 'vitest';
import { text } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Harness } from '../harness/open-harness.ts';
import type { Toolset } from '../harness/toolsets.ts';
import { verifies } from './requirements.ts';
import { standInEnv } from './stand-in.ts';
import { check } from './steps.ts';

const ACTS = { readOnlyHint: false, destructiveHint: true };
const READS = { readOnlyHint: true, destructiveHint: false };

const TOOLS: Readonly<Record<Toolset, Readonly<Record<string, object>>>> = {
  compact: { claude_code: ACTS, claude_code_reply: ACTS, claude_code_check: ACTS, claude_code_session: ACTS },
  explicit: {
    claude_create_session: ACTS,
    claude_send_message: ACTS,
    claude_get_status: READS,
    claude_respond: ACTS,
    claude_interrupt: ACTS,
    claude_list_sessions: READS,
  },
};

/** Those that callers write rules for. */
const TEN_TOOLS = 'Bash Read Edit Write NotebookEdit Glob Grep WebFetch WebSearch Agent'.split(' ');

const SIZES: Readonly<Record<Toolset, number>> = { compact: 7_500, explicit: 4_000 };

async function listed(h: Harness): Promise<Tool[]> {
  return (await h.client.listTools()).tools;
}

/** Counts only what a model reads. */
async function sizeOfList(h: Harness): Promise<number> {
  const read = (await listed(h)).map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  return Buffer.byteLength(JSON.stringify(read));
}

async function startDescription(h: Harness): Promise<string> {
  return (await listed(h)).find(({ name }) => name === 'claude_code')?.description ?? '';
}

/** The tools do not depend on Claude Code. */
const STAND_IN = { env: standInEnv('ordinary') };

verifies(['tools.few', 'tools.described', 'tools.size'], async (variant) => {
  const h = await variant.share(STAND_IN);
  const tools = await listed(h);
  expect(tools.map(({ name }) => name)).toEqual(Object.keys(TOOLS[variant.toolset]));
  for (const tool of tools) {
    expect(tool.title, tool.name).toBeTruthy();
    expect(tool.description, tool.name).toBeTruthy();
    expect(tool.outputSchema, tool.name).toMatchObject({ type: 'object' });
    expect(tool.annotations, tool.name).toMatchObject({
      ...TOOLS[variant.toolset][tool.name],
      idempotentHint: expect.any(Boolean),
      openWorldHint: expect.any(Boolean),
    });
  }
  expect(await sizeOfList(h)).toBeLessThanOrEqual(SIZES[variant.toolset]);
});

verifies(
  ['tools.default', 'tools.builtin-names', 'tools.real-names', 'check.available-tools', 'tools.size'],
  async (variant) => {
    let announced = 0;
    const h = await variant.start({
      env: { CLAUDE_CODE_MCP_TOOLSET: '' },
      clientOptions: { listChanged: { tools: { autoRefresh: false, onChanged: () => announced++ } } },
    });
    h.model.on('hello').always(text('hi'));
    expect((await listed(h)).map(({ name }) => name)).toEqual(Object.keys(TOOLS.compact));
    const before = await startDescription(h);
    expect(before).toContain(TEN_TOOLS.join(', '));
    expect(announced).toBe(0);

    const { sessionId } = await h.ok('claude_code', { prompt: 'hello', waitMs: 40_000 });
    await eventually(() => announced > 0, { what: 'tools/list_changed is announced' });
    const { availableTools } = await check(h, { action: 'poll', sessionId, includeTools: true });
    const after = await startDescription(h);
    const names: string[] = availableTools.map(({ name }: { name: string }) => name);
    const named = TEN_TOOLS.filter((name) => names.includes(name));
    expect(after).toContain(`${named.join(', ')} and ${String(names.length - named.length)} more`);
    for (const { category } of availableTools) expect(category).toEqual(expect.any(String));
    expect(await sizeOfList(h)).toBeLessThanOrEqual(SIZES.compact);

    // A session with few tools does not hide the others. One era is enough to show it.
    if (variant.era === 'legacy') return;
    const few = await h.ok('claude_code', { prompt: 'hello', tools: ['Read'], waitMs: 40_000 });
    expect(
      (await check(h, { action: 'poll', sessionId: few.sessionId, includeTools: true })).availableTools,
    ).toMatchObject([{ name: 'Read' }]);
    expect(await startDescription(h)).toBe(after);
  },
);

verifies('tools.list-stays', async (variant) => {
  const h = await variant.share(STAND_IN);
  expect(h.client.getServerCapabilities()).toMatchObject({ tools: { listChanged: false } });
  let announced = 0;
  h.client.setNotificationHandler('notifications/tools/list_changed', () => {
    announced++;
  });
  const before = await listed(h);
  await h.finish(await h.begin('hello'));
  // An announcement would have come before this answer.
  expect(await listed(h)).toEqual(before);
  expect(announced).toBe(0);
});

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
    // A mode that only the compact toolset offers.
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
  const h = await variant.share(STAND_IN);
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
  const h = await variant.share(STAND_IN);
  for (const [tool, args, words] of MISSPELT[variant.toolset]) {
    expect(await h.fails(tool, args, 'INVALID_ARGUMENT')).toContain(`Unknown parameter ${words}`);
  }
});

verifies(['errors.given-twice', 'errors.flat-form'], async (variant) => {
  const h = await variant.share(STAND_IN);
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

  // For the flat form by itself, see `option-arguments`.
  const form = { effort: 'low', advanced: { effort: 'low' } };
  const { sessionId } = await h.ok('claude_code', { prompt: 'hello', ...form, waitMs: 40_000 });
  const { sessions } = await h.ok('claude_code_session', { action: 'get', sessionId });
  expect(sessions[0].effort).toBe('low');
});
