/** Calls as clients written for the two original tool designs make them. */

import { describe, expect, test } from 'vitest';
import { gate, stall, text, tool } from '../../src/scripted-model/reply.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import { DISK_RESUME, TOOLSETS, type Toolset } from '../harness/toolsets.ts';
import { killClaude } from './claude-process.ts';

/** Calls about a session that fail. */
const FAILING: Readonly<Record<Toolset, (id: string) => readonly [tool: string, args: Record<string, unknown>][]>> = {
  compact: (sessionId) => [
    ['claude_code_check', { action: 'poll', sessionId, cursr: 1 }],
    ['claude_code_check', { action: 'respond_permission', sessionId, requestId: 'gone', decision: 'allow' }],
    ['claude_code_reply', { sessionId, prompt: ' ' }],
    ['claude_code_session', { action: 'rewind', sessionId, toUserMessage: 'x' }],
  ],
  explicit: (sessionId) => [
    ['claude_get_status', { sessionId, lines: 5 }],
    ['claude_respond', { sessionId, inputId: 'gone', decision: 'allow' }],
    ['claude_send_message', { sessionId, message: ' ' }],
  ],
};

const SENDS = new Set(['claude_code_reply', 'claude_send_message']);

const STATUSES = {
  compact: { atWork: 'running', atRest: 'idle' },
  explicit: { atWork: 'running', atRest: 'completed' },
} as const;

describe.each(TOOLSETS)('%s', (toolset) => {
  const harness = shareHarness({ toolset });

  test('an error about a known session carries its status', async () => {
    const h = harness();
    const held = gate(text('done'));
    h.model.on('work').reply(held);
    const sessionId = await h.converse('work');
    await held.arrived;
    const expectStatus = async (status: string): Promise<void> => {
      for (const [name, args] of FAILING[toolset](sessionId))
        expect((await h.call(name, args)).data, `${name} ${JSON.stringify(args)}`).toMatchObject({
          isError: true,
          // A client that looks at `status` alone must not take the last answer for one to a refused message.
          ...(SENDS.has(name) ? { status: 'error', sessionStatus: status } : { status }),
          error: expect.stringMatching(/^Error \[[A-Z_]+\]: /),
        });
    };
    await expectStatus(STATUSES[toolset].atWork);
    held.release();
    await h.finish(sessionId);
    await expectStatus(STATUSES[toolset].atRest);
  });

  test('an empty reason for a denial counts as none', async () => {
    const h = harness();
    const script = h.model.on('touch').reply(tool('Bash', { command: 'touch a', description: 'x' }), text('well'));
    const sessionId = await h.converse('touch');
    await h.deny(sessionId, { message: '' });
    await h.finish(sessionId);
    expect(h.model.requestsFor(script)[1]?.toolResults[0]?.text).toContain('Permission denied by caller');
  });

  if (toolset === 'compact') return;

  test('recentOutput shows text while it is being written, line by line', async () => {
    const h = harness();
    h.model.on('write').reply(stall(text('first line\nsecond line\nand no more of it').chunks(10)));
    const sessionId = await h.converse('write');
    const seen = await h.waitFor(sessionId, ({ recentOutput }) => recentOutput.length > 1);
    expect(seen).toMatchObject({ status: 'running' });
    expect(seen.recentOutput[0]).toBe('first line');
    expect('second line').toContain(seen.recentOutput[1]);
    await h.interrupt(sessionId);
  });

  test('claude_send_message with fork answers in a copy of the session', async () => {
    const h = harness();
    h.model.on('remember seven').reply(text('I do'));
    const forked = h.model.on('and eight').reply(text('both'));
    const sessionId = await h.converse('remember seven');
    await h.finish(sessionId);
    const fork = await h.ok('claude_send_message', { sessionId, message: 'and eight', fork: true });
    expect(fork).toEqual({ sessionId: expect.any(String), status: 'running' });
    expect(fork.sessionId).not.toBe(sessionId);
    expect(await h.finish(fork.sessionId)).toMatchObject({ answer: 'both' });
    expect(h.model.requestsFor(forked)[0]?.userTexts.slice(-2)).toEqual(['remember seven', 'and eight']);
    expect(await h.look(sessionId)).toMatchObject({ answer: 'I do' });
  });

  test('isActive is true only while the session has a process', async () => {
    const h = harness();
    h.model.on('hello').reply(text('hi'));
    const sessionId = await h.converse('hello');
    await h.finish(sessionId);
    const listed = async (): Promise<unknown> =>
      (await h.ok('claude_list_sessions', {})).sessions.find((one: Json) => one.sessionId === sessionId);
    expect(await listed()).toMatchObject({ isActive: true, activeStatus: 'completed' });
    await killClaude(h, sessionId);
    await expect.poll(listed, { timeout: 20_000 }).toMatchObject({ isActive: false });
    expect(await listed()).not.toHaveProperty('activeStatus');
  });
});

test('a system prompt given on a resume from disk replaces, extends or restores the recorded one', async () => {
  const h = await startHarness({ env: DISK_RESUME });
  h.model.on('hello').reply(text('hi'));
  const first = { prompt: 'hello', systemPrompt: presetWith({ append: 'A word of the first start.' }) };
  const { sessionId, resumeToken } = await h.ok('claude_code', { ...first, waitMs: 40_000 });
  await h.restartServer();
  for (const [systemPrompt, expected] of [
    ['Speak like a pirate.', /pirate/],
    [presetWith({ append: 'Speak like a pirate.' }), /pirate/],
    [presetWith({ snapshot: true }), /\bof the first start\b/],
  ] as const) {
    const script = h.model.on('go on').reply(text('aye'));
    const reply = { sessionId, resumeToken, prompt: 'go on', forkSession: true, waitMs: 40_000 };
    await h.ok('claude_code_reply', { ...reply, diskResumeConfig: { systemPrompt } });
    expect(h.model.requestsFor(script)[0]?.system).toMatch(expected);
  }
});

function presetWith(more: object): object {
  return { type: 'preset', preset: 'claude_code', ...more };
}

const plain = shareHarness({ env: { CLAUDE_CODE_MCP_LOG_LEVEL: 'debug' } });

test.each([
  [{ prompt: 'never', timeout: 5 }, 'waitMs says how long a call waits'],
  [{ prompt: 'never', maxTurns: 'three' }, 'maxTurns: must be a number'],
  [{ prompt: 'never', permissionMode: 'nope' }, 'permissionMode: must be one of "default"'],
  [{ prompt: 'never', attempts: 'two' }, 'attempts: must be a number, or must be a list'],
  [{}, 'prompt: is required'],
  [{ prompt: 'never', pathToClaudeCodeExecutable: 'no-such-claude' }, 'no program called no-such-claude on the PATH'],
])('%j is refused in words of this server', async (args, words) => {
  const error = await plain().fails('claude_code', args, 'INVALID_ARGUMENT');
  expect(error).toContain(words);
  expect(error).not.toMatch(/Invalid input|received|expected/);
});

test('an unknown session is told how to be found; with LOG_LEVEL=debug the log says what happens in one', async () => {
  const h = plain();
  const error = await h.fails('claude_code_check', { action: 'poll', sessionId: 'nobody' }, 'SESSION_NOT_FOUND');
  expect(error).toContain('claude_code_session with action "list"');
  h.model.on('look').reply(tool('Bash', { command: 'echo 1' }), text('seen'));
  const sessionId = await h.converse('look');
  await h.finish(sessionId);
  expect(h.server.stderr()).toMatch(
    new RegExp(`debug: session ${sessionId}: event \\d+ output message tool_call Bash`),
  );
  expect(h.server.stderr()).not.toContain('echo 1');
});
