import { expect } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { claudePid } from './claude-process.ts';
import { verifies } from './requirements.ts';
import { check, start } from './steps.ts';

verifies(['reply.same-process', 'reply.new-result', 'reply.wait'], async (variant) => {
  const h = await variant.start();
  h.model.on('one').reply(text('1'));
  const held = gate(text('2'));
  const second = h.model.on('two').reply(held);
  const { sessionId } = await h.ok('claude_code', { prompt: 'one', waitMs: 40_000 });
  const pid = await claudePid(h, sessionId);
  expect(pid).toBeDefined();
  const answer = await h.ok('claude_code_reply', { sessionId, prompt: 'two' });
  expect(answer).toEqual({ sessionId, status: 'running', pollInterval: 3000 });
  await held.arrived;
  expect(await check(h, { action: 'poll', sessionId })).not.toHaveProperty('result');
  held.release();
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: '2' } });
  expect(await claudePid(h, sessionId)).toBe(pid);
  expect(h.model.requestsFor(second)[0]?.userTexts).toEqual(['one', 'two']);
  h.model.on('three').reply(text('3'));
  const third = await h.ok('claude_code_reply', { sessionId, prompt: 'three', waitMs: 40_000 });
  expect(third).toMatchObject({ status: 'idle', result: { result: '3' } });
});

verifies('reply.busy', async (variant) => {
  const h = await variant.start();
  const held = gate(tool('Bash', { command: 'touch a.txt' }));
  h.model.on('work').reply(held, text('done'));
  const sessionId = await start(h, { prompt: 'work' });
  await held.arrived;
  const running = await h.fails('claude_code_reply', { sessionId, prompt: 'more' }, 'SESSION_BUSY');
  expect(running).toContain('queue');
  held.release();
  await h.waitForRequest(sessionId);
  await h.fails('claude_code_reply', { sessionId, prompt: 'more', whenBusy: 'reject' }, 'SESSION_BUSY');
  await h.allow(sessionId);
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'done' } });
});

verifies('reply.busy-race', async (variant) => {
  const h = await variant.start();
  h.model.on('hello').reply(text('hi'));
  h.model.on('faster').always(text('first'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'hello', waitMs: 40_000 });
  const answers = await Promise.all(
    [1, 2, 3].map((n) => h.call('claude_code_reply', { sessionId, prompt: `faster ${String(n)}` })),
  );
  expect(answers.filter(({ isError }) => !isError)).toHaveLength(1);
  for (const { isError, data } of answers) if (isError) expect(data.error).toContain('[SESSION_BUSY]');
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'first', sessionTotalTurns: 2 } });
});

verifies('reply.queue', async (variant) => {
  const h = await variant.start();
  const held = gate(text('first answer'));
  h.model.on('first task').reply(held);
  const second = h.model.on('second task').reply(text('second answer'));
  const sessionId = await start(h, { prompt: 'first task' });
  await held.arrived;
  const queued = await h.ok('claude_code_reply', { sessionId, prompt: 'second task', whenBusy: 'queue' });
  expect(queued).toMatchObject({ sessionId, status: 'running' });
  held.release();
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { result: 'second answer' } });
  expect(h.model.requestsFor(second)).toHaveLength(1);
});

verifies('reply.switch', async (variant) => {
  const h = await variant.start();
  const first = h.model.on('one').reply(text('1'));
  // Before it changes the model Claude Code tries it.
  h.model.on(/^Hi$/).reply(text('hello'));
  const second = h.model.on('two').reply(tool('Write', { file_path: `${h.project}/a.txt`, content: 'a' }), text('2'));
  const third = h.model.on('three').reply(text('3'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'one', model: 'claude-opus-5-5', waitMs: 40_000 });
  const change = { model: 'claude-haiku-4-5', permissionMode: 'acceptEdits' };
  const answer = await h.ok('claude_code_reply', { sessionId, prompt: 'two', waitMs: 40_000, ...change });
  // The edit passed without a question.
  expect(answer).toMatchObject({ status: 'idle', result: { result: '2' } });
  await h.ok('claude_code_reply', { sessionId, prompt: 'three', waitMs: 40_000 });
  const models = [first, second, third].map((script) => h.model.requestsFor(script)[0]?.model);
  expect(models).toEqual(['claude-opus-5-5', 'claude-haiku-4-5', 'claude-haiku-4-5']);
  const { sessions } = await h.ok('claude_code_session', { action: 'get', sessionId });
  expect(sessions[0]).toMatchObject({ model: 'claude-haiku-4-5', permissionMode: 'acceptEdits' });
});

verifies('reply.unknown-session', async (variant) => {
  const h = await variant.start();
  const sessionId = '00000000-0000-4000-8000-000000000000';
  const message = await h.fails('claude_code_reply', { sessionId, prompt: 'hello' }, 'SESSION_NOT_FOUND');
  expect(message).toContain('CLAUDE_CODE_MCP_ALLOW_DISK_RESUME');
  await h.fails('claude_code_check', { action: 'poll', sessionId }, 'SESSION_NOT_FOUND');
  for (const action of ['get', 'cancel', 'interrupt']) {
    await h.fails('claude_code_session', { action, sessionId }, 'SESSION_NOT_FOUND');
  }
});
