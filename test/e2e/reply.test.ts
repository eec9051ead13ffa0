import { expect } from 'vitest';
import { gate, hang, httpError, text, tool } from '../../src/scripted-model/reply.ts';
import type { Toolset } from '../harness/toolsets.ts';
import { claudePid } from './claude-process.ts';
import { verifies } from './requirements.ts';

/** What somebody can do about a session that nobody knows. */
const HINT: Readonly<Record<Toolset, string>> = {
  compact: 'CLAUDE_CODE_MCP_ALLOW_DISK_RESUME',
  explicit: 'Claude Code has no session with this id',
};

verifies(['reply.same-process', 'reply.new-result', 'reply.queue'], async (variant) => {
  const h = await variant.share();
  h.model.on('one').reply(text('1'));
  const held = gate(text('2'));
  const second = h.model.on('two').reply(held);
  const sessionId = await h.converse('one');
  await h.finish(sessionId);
  const pid = await claudePid(h, sessionId);
  expect(pid).toBeDefined();
  expect(await h.say(sessionId, 'two')).toMatchObject({ sessionId, status: 'running' });
  await held.arrived;
  expect(await h.look(sessionId)).toMatchObject({ status: 'running', answer: undefined });
  held.release();
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: '2', turns: 2 });
  expect(await claudePid(h, sessionId)).toBe(pid);
  expect(h.model.requestsFor(second)[0]?.userTexts).toEqual(['one', 'two']);

  const working = gate(text('first answer'));
  h.model.on('three').reply(working);
  // Whether Claude Code has read both when it asks again is a matter of chance.
  h.model.on('four').reply(text('four heard'));
  const last = h.model.on('five').reply(text('all heard'));
  await h.say(sessionId, 'three');
  await working.arrived;
  expect(await h.queue(sessionId, 'four')).toMatchObject({ sessionId, status: 'running' });
  await h.queue(sessionId, 'five');
  expect(await h.look(sessionId)).toMatchObject({ status: 'running' });
  working.release();
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'all heard' });
  expect(h.model.requestsFor(last)).toHaveLength(1);
  expect(h.model.requestsFor(last)[0]?.userTexts.join('\n')).toBe('one\ntwo\nthree\nfour\nfive');
});

verifies(['reply.wait', 'reply.busy', 'reply.busy-race'], async (variant) => {
  const h = await variant.share();
  h.model.on('one').reply(text('1'));
  h.model.on('two').reply(text('2'));
  const sessionId = await h.converse('one');
  await h.finish(sessionId);
  const second = await h.ok('claude_code_reply', { sessionId, prompt: 'two', waitMs: 40_000 });
  expect(second).toMatchObject({ status: 'idle', result: { result: '2' } });

  const held = gate(tool('Bash', { command: 'touch a.txt' }));
  h.model.on('work').reply(held, text('done'));
  await h.say(sessionId, 'work');
  await held.arrived;
  const running = await h.fails('claude_code_reply', { sessionId, prompt: 'more' }, 'SESSION_BUSY');
  expect(running).toContain('queue');
  held.release();
  await h.waitForRequest(sessionId);
  await h.fails('claude_code_reply', { sessionId, prompt: 'more', whenBusy: 'reject' }, 'SESSION_BUSY');
  await h.allow(sessionId);
  const { result } = await h.waitUntilRest(sessionId);
  expect(result).toMatchObject({ result: 'done' });

  h.model.on('faster').always(text('first'));
  const answers = await Promise.all(
    [1, 2, 3].map((n) => h.call('claude_code_reply', { sessionId, prompt: `faster ${String(n)}` })),
  );
  expect(answers.filter(({ isError }) => !isError)).toHaveLength(1);
  for (const { isError, data } of answers) if (isError) expect(data.error).toContain('[SESSION_BUSY]');
  const sessionTotalTurns = Number(result.sessionTotalTurns) + 1;
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'first', sessionTotalTurns } });
});

verifies('reply.queue', { toolsets: ['compact'], when: 'while tools run' }, async (variant) => {
  const h = await variant.share();
  const held = gate(tool('Bash', { command: 'echo worked', description: 'work' }));
  h.model.on('work').reply(held);
  const heard = h.model.on('one more thing').reply(text('with that'));
  const sessionId = await h.converse('work');
  await held.arrived;
  await h.queue(sessionId, 'one more thing');
  held.release();
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'with that' });
  expect(h.model.requestsFor(heard)[0]?.toolResults).toMatchObject([{ text: 'worked' }]);
});

verifies('reply.queue-interrupted', async (variant) => {
  const h = await variant.share();
  const silence = gate(hang());
  h.model.on('endless').reply(silence);
  const held = gate(tool('Bash', { command: 'touch done.txt', description: 'do it' }));
  h.model.on('instead').reply(held, text('did that instead'));
  const sessionId = await h.converse('endless');
  await silence.arrived;
  await h.queue(sessionId, 'instead');

  await h.interrupt(sessionId);

  expect(await h.look(sessionId)).toMatchObject({ status: 'running' });
  await held.arrived;
  held.release();
  await h.allow(sessionId);
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'did that instead' });
});

/** Each round races once more. */
const ROUNDS = [1, 2, 3, 4];

verifies('reply.queue-late', async (variant) => {
  const h = await variant.share();
  h.model.on('hello').reply(text('hello'));
  const sessionId = await h.converse('hello');
  await h.finish(sessionId);
  for (const round of ROUNDS) {
    const held = gate(text(`turn ${round}`));
    h.model.on(`begin ${round}.`).reply(held);
    const late = h.model.on(`late ${round}.`).reply(text(`heard ${round}`));
    await h.say(sessionId, `begin ${round}.`);
    await held.arrived;

    held.release();
    await h.queue(sessionId, `late ${round}.`);

    const heard = await h.until(sessionId, ({ answer }) => answer === `heard ${round}`, { what: `answer ${round}` });
    expect(heard).toMatchObject({ status: 'rest' });
    expect(h.model.requestsFor(late)).toHaveLength(1);
  }
  for (const round of ROUNDS) {
    const held = gate(text('never said'));
    h.model.on(`start ${round}.`).reply(held);
    h.model.on(`too late ${round}.`).always(text(`heard again ${round}`));
    await h.say(sessionId, `start ${round}.`);
    await held.arrived;

    const calls = [() => h.interrupt(sessionId), () => h.queue(sessionId, `too late ${round}.`)];
    await Promise.all((round % 2 === 0 ? calls : calls.toReversed()).map((call) => call()));

    const heard = await h.until(sessionId, ({ answer }) => answer === `heard again ${round}`, {
      what: `answer ${round}`,
    });
    expect(heard).toMatchObject({ status: 'rest' });
  }
});

verifies('reply.switch', async (variant) => {
  const h = await variant.share();
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

verifies('reply.switch', { when: 'to a model that is refused' }, async (variant) => {
  const h = await variant.share();
  h.model.on('one').reply(text('1'));
  h.model.on(/^Hi$/).reply(httpError(404, { type: 'not_found_error', message: 'model: claude-no-such-model' }));
  h.model.on('two').reply(text('2'));
  const sessionId = await h.converse('one');
  await h.finish(sessionId);
  const refused = { sessionId, prompt: 'two', model: 'claude-no-such-model' };
  expect(await h.fails('claude_code_reply', refused, 'INVALID_ARGUMENT')).toContain('claude-no-such-model');
  const answer = await h.ok('claude_code_reply', { sessionId, prompt: 'two', waitMs: 40_000 });
  expect(answer).toMatchObject({ status: 'idle', result: { result: '2' } });
});

verifies('reply.unknown-session', async (variant) => {
  const h = await variant.share();
  const sessionId = '00000000-0000-4000-8000-000000000000';
  const { say, look, interrupt } = h.dialect;
  expect(await h.fails(...say(sessionId, 'hello'), 'SESSION_NOT_FOUND')).toContain(HINT[variant.toolset]);
  for (const call of [look(sessionId), interrupt(sessionId)]) await h.fails(...call, 'SESSION_NOT_FOUND');
});

verifies('reply.after-failure', { toolsets: ['compact'], when: 'of the model' }, async (variant) => {
  const h = await variant.share();
  h.model.on('broken').always(httpError(400, { message: 'the model has had enough' }));
  h.model.on('better').reply(text('fine again'));
  const sessionId = await h.converse('broken');
  const failed = await h.finish(sessionId);
  expect(failed).toMatchObject({ status: 'error', answer: undefined, error: expect.stringContaining('had enough') });
  await h.say(sessionId, 'better');
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'fine again', error: undefined });
});
