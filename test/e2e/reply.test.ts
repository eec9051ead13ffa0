/** Continuing a session: replies, queued messages, interrupts and forks. Most tests share one conversation. */

import { expect } from 'vitest';
import { gate, hang, httpError, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Harness } from '../harness/open-harness.ts';
import type { Toolset } from '../harness/toolsets.ts';
import { claudePid } from './claude-process.ts';
import { ENDLESS, waitUntilBegun, runningCommands } from './endless-command.ts';
import { verifies } from './requirements.ts';
import { check, pollAll, start } from './steps.ts';

/** What the error for an unknown session suggests. */
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
  // Claude Code may have read one or both by its next request.
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

/** Each round is one more race. */
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

    const heard = await h.until(sessionId, ({ answer }) => answer === `heard ${round}`, {
      what: `message ${round} is answered`,
    });
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
      what: `message ${round} is answered`,
    });
    expect(heard).toMatchObject({ status: 'rest' });
  }
});

verifies('reply.switch', async (variant) => {
  const h = await variant.share();
  const first = h.model.on('one').reply(text('1'));
  // Claude Code tries a model before it switches.
  h.model.on(/^Hi$/).reply(text('hello'));
  const second = h.model.on('two').reply(tool('Write', { file_path: `${h.project}/a.txt`, content: 'a' }), text('2'));
  const third = h.model.on('three').reply(text('3'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'one', model: 'claude-opus-5-5', waitMs: 40_000 });
  const change = { model: 'claude-haiku-4-5', permissionMode: 'acceptEdits' };
  const answer = await h.ok('claude_code_reply', { sessionId, prompt: 'two', waitMs: 40_000, ...change });
  // The edit ran without a request.
  expect(answer).toMatchObject({ status: 'idle', result: { result: '2' } });
  await h.ok('claude_code_reply', { sessionId, prompt: 'three', waitMs: 40_000 });
  const models = [first, second, third].map((script) => h.model.requestsFor(script)[0]?.model);
  expect(models).toEqual(['claude-opus-5-5', 'claude-haiku-4-5', 'claude-haiku-4-5']);
  const { sessions } = await h.ok('claude_code_session', { action: 'get', sessionId });
  expect(sessions[0]).toMatchObject({ model: 'claude-haiku-4-5', permissionMode: 'acceptEdits' });
});

verifies('reply.switch', { when: 'and a model that is not available is refused by name' }, async (variant) => {
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
  const tools = (await h.client.listTools()).tools.map(({ name }) => name);
  for (const call of [look(sessionId), interrupt(sessionId)]) {
    const named = (await h.fails(...call, 'SESSION_NOT_FOUND')).match(/claude_\w+/g);
    expect(tools).toEqual(expect.arrayContaining(named!));
  }
});

verifies('reply.after-failure', { toolsets: ['compact'], when: 'after an error from the model' }, async (variant) => {
  const h = await variant.share();
  h.model.on('broken').always(httpError(400, { message: 'the model has had enough' }));
  h.model.on('better').reply(text('fine again'));
  const sessionId = await h.converse('broken');
  const failed = await h.finish(sessionId);
  expect(failed).toMatchObject({ status: 'error', answer: undefined, error: expect.stringContaining('had enough') });
  await h.say(sessionId, 'better');
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'fine again', error: undefined });
});

/** In the shared conversation. */
async function runEndless(h: Harness): Promise<string> {
  h.model.on('run forever').reply(tool('Bash', { command: ENDLESS, description: 'endless' }));
  const sessionId = await h.converse('run forever');
  await h.allow(sessionId);
  await waitUntilBegun(h);
  return sessionId;
}

verifies('session.interrupt', async (variant) => {
  const h = await variant.share();
  h.model.on('what now').reply(text('something else'));
  const sessionId = await runEndless(h);
  expect(await runningCommands(h)).not.toEqual([]);

  await h.interrupt(sessionId);
  expect(await h.look(sessionId)).toMatchObject({ status: 'rest', answer: undefined });
  await eventually(async () => (await runningCommands(h)).length === 0, { what: 'the command is gone' });

  await h.say(sessionId, 'what now');
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'something else', error: undefined });
});

verifies(
  ['session.interrupt', 'session.interrupt-rest'],
  { when: 'while the model has not answered' },
  async (variant) => {
    const h = await variant.share();
    const silence = gate(hang());
    h.model.on('think').reply(silence);
    h.model.on('what now').reply(text('awake'));
    const sessionId = await h.converse('think');
    await silence.arrived;
    await h.interrupt(sessionId);
    const stopped = await h.look(sessionId);
    expect(stopped).toMatchObject({ status: 'rest', answer: undefined });
    await h.interrupt(sessionId);
    expect(await h.look(sessionId)).toEqual(stopped);

    await h.say(sessionId, 'what now');
    const awake = await h.finish(sessionId);
    expect(awake).toMatchObject({ status: 'rest', answer: 'awake' });
    await h.interrupt(sessionId);
    expect(await h.look(sessionId)).toEqual(awake);
  },
);

verifies('session.interrupt-request', async (variant) => {
  const h = await variant.share();
  h.model.on('make a file').reply(tool('Bash', { command: 'touch made.txt' }));
  const sessionId = await h.converse('make a file');
  const { id } = await h.nextRequest(sessionId);
  await h.interrupt(sessionId);
  expect(await h.look(sessionId)).toMatchObject({ status: 'rest', requests: [] });
  await h.fails(...h.dialect.allow(sessionId, id), 'PERMISSION_REQUEST_NOT_FOUND');
});

verifies(
  ['request.events', 'session.interrupt-rest'],
  { when: 'with a request that an interrupt settles' },
  async (variant) => {
    const h = await variant.share();
    h.model.on('make a file').reply(tool('Bash', { command: 'touch made.txt' }));
    const sessionId = await h.converse('make a file');
    const { id: requestId } = await h.nextRequest(sessionId);
    expect(await h.interrupt(sessionId)).toMatchObject({ sessions: [{ sessionId, status: 'idle' }] });
    const outcomes = (await pollAll(h, sessionId)).filter(
      ({ type, data }) => type === 'permission_result' && data.requestId === requestId,
    );
    expect(outcomes).toMatchObject([{ data: { decision: 'deny', source: 'interrupt' } }]);
    expect(await h.interrupt(sessionId)).toMatchObject({ message: 'Nothing was running.' });
  },
);

verifies('status.interrupted', async (variant) => {
  const h = await variant.share();
  const sessionId = await runEndless(h);
  const status = (): Promise<unknown> => h.ok('claude_get_status', { sessionId });
  expect(await h.interrupt(sessionId)).toEqual({ sessionId, status: 'interrupted' });
  expect(await status()).toMatchObject({
    status: 'interrupted',
    toolUseEvents: [{ toolName: 'Bash', status: 'failed' }],
  });
  expect(await h.interrupt(sessionId)).toEqual({ sessionId, status: 'interrupted' });

  h.model.on('and ask').reply(tool('Write', { file_path: `${h.project}/a.txt`, content: 'a' }));
  expect(await h.say(sessionId, 'and ask')).toEqual({ sessionId, status: 'running' });
  await h.nextRequest(sessionId);
  await h.interrupt(sessionId);
  expect(await status()).toMatchObject({
    status: 'interrupted',
    pendingInputs: [],
    toolUseEvents: [{ toolName: 'Write', status: 'denied' }],
  });
});

verifies(['fork.new-session', 'fork.original-untouched', 'fork.while-running'], async (variant) => {
  const h = await variant.share();
  const first = gate(text('I do'));
  h.model.on('remember seven').reply(first);
  h.model.on(/^by the way/).always(text('an aside'));
  const forked = h.model.on('and eight').reply(text('both'));
  const original = h.model.on('what was it').reply(text('seven'));
  const sessionId = await start(h, { prompt: 'remember seven', maxTurns: 9 });
  // Still in its first turn.
  await first.arrived;
  const aside = { sessionId, prompt: 'by the way', forkSession: true, waitMs: 40_000 };
  const early = await h.ok('claude_code_reply', aside);
  expect(early).toMatchObject({ status: 'idle', result: { result: 'an aside' } });
  first.release();
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'I do' } });

  const before = await check(h, { action: 'poll', sessionId });
  const fork = await h.ok('claude_code_reply', { sessionId, prompt: 'and eight', forkSession: true, waitMs: 40_000 });
  expect(fork).toMatchObject({ status: 'idle', result: { result: 'both', sessionId: fork.sessionId } });
  expect(fork.sessionId).not.toBe(sessionId);
  expect(h.model.requestsFor(forked)[0]?.userTexts).toEqual(['remember seven', 'and eight']);
  expect(h.model.requestsFor(forked)[0]?.sessionId).toBe(fork.sessionId);
  const { sessions } = await h.ok('claude_code_session', { action: 'get', sessionId: fork.sessionId });
  expect(sessions[0].maxTurns).toBe(9);

  expect(await check(h, { action: 'poll', sessionId })).toEqual(before);
  const next = await h.ok('claude_code_reply', { sessionId, prompt: 'what was it', waitMs: 40_000 });
  expect(next.result.result).toBe('seven');
  expect(h.model.requestsFor(original)[0]?.userTexts).toEqual(['remember seven', 'what was it']);

  const held = gate(text('the long answer'));
  h.model.on('a long task').reply(held);
  await h.ok('claude_code_reply', { sessionId, prompt: 'a long task' });
  await held.arrived;
  expect(await h.ok('claude_code_reply', aside)).toMatchObject({ status: 'idle', result: { result: 'an aside' } });
  expect(await check(h, { action: 'poll', sessionId })).toMatchObject({ status: 'running' });
  held.release();
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'the long answer' } });
});
