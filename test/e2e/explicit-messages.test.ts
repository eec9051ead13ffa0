import { expect, test } from 'vitest';
import { gate, hang, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';

const start = (): Promise<Harness> => startHarness({ toolset: 'explicit' });

/** Several turns one after the other, on a machine that may have other work. */
const SLOW = { timeout: 90_000 };

async function create(h: Harness, prompt: string): Promise<string> {
  const { sessionId } = await h.ok('claude_create_session', { prompt });
  return sessionId;
}

async function send(h: Harness, sessionId: string, message: string): Promise<void> {
  expect(await h.ok('claude_send_message', { sessionId, message })).toEqual({ sessionId, status: 'running' });
}

test('a session at rest goes on, in the same process', async () => {
  const h = await start();
  h.model.on('first').reply('one');
  h.model.on('second').reply('two');
  const sessionId = await create(h, 'first');
  await h.waitUntilRest(sessionId);
  const before = (await h.processes()).map(({ pid }) => pid);

  await send(h, sessionId, 'second');

  const done = await h.waitUntilRest(sessionId);
  expect(done).toMatchObject({ status: 'completed', result: 'two', recentOutput: ['one', 'two'], turnCount: 2 });
  expect((await h.processes()).map(({ pid }) => pid)).toEqual(before);
});

test('messages to a working session are handed over at once and taken up in order', async () => {
  const h = await start();
  const held = gate('first answer');
  h.model.on('first').reply(held);
  const later = h.model.on('third').reply('all heard');
  const sessionId = await create(h, 'first');
  await held.arrived;

  await send(h, sessionId, 'second');
  await send(h, sessionId, 'third');
  expect(await h.ok('claude_get_status', { sessionId })).toMatchObject({ status: 'running' });
  held.release();

  const done = await h.waitUntilRest(sessionId);
  expect(done).toMatchObject({ status: 'completed', result: 'all heard' });
  expect(h.model.requestsFor(later)[0]?.userTexts.join('\n')).toBe('first\nsecond\nthird');
});

test('a message is taken up while tools run', async () => {
  const h = await start();
  const held = gate(tool('Bash', { command: 'echo worked', description: 'work' }));
  h.model.on('work').reply(held);
  const heard = h.model.on('one more thing').reply('with that');
  const sessionId = await create(h, 'work');
  await held.arrived;

  await send(h, sessionId, 'one more thing');
  held.release();

  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'completed', result: 'with that' });
  expect(h.model.requestsFor(heard)[0]?.toolResults).toMatchObject([{ text: 'worked' }]);
});

test('a message at the moment the turn ends is not lost', SLOW, async () => {
  const h = await start();
  const sessionId = await create(h, firstPrompt(h));
  await h.waitUntilRest(sessionId);

  for (let round = 1; round <= 4; round++) {
    const held = gate(`turn ${round}`);
    h.model.on(`begin ${round}.`).reply(held);
    const late = h.model.on(`late ${round}.`).reply(`heard ${round}`);
    await send(h, sessionId, `begin ${round}.`);
    await held.arrived;

    held.release();
    await send(h, sessionId, `late ${round}.`);

    const done = await h.waitFor(sessionId, ({ result }) => result === `heard ${round}`, { what: `answer ${round}` });
    expect(done).toMatchObject({ status: 'completed' });
    expect(h.model.requestsFor(late)).toHaveLength(1);
  }
});

test('a message that waits when the turn is interrupted is taken up then, however long it takes', async () => {
  const h = await start();
  h.model.on('endless').reply(hang());
  const held = gate(tool('Bash', { command: 'touch done.txt', description: 'do it' }));
  h.model.on('instead').reply(held, 'did that instead');
  const sessionId = await create(h, 'endless');
  await eventually(() => h.model.requests.length > 0, { what: 'the model was asked' });
  await send(h, sessionId, 'instead');

  expect(await h.ok('claude_interrupt', { sessionId })).toEqual({ sessionId, status: 'running' });

  await held.arrived;
  held.release();
  await h.allow(sessionId);
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'completed', result: 'did that instead' });
});

test('a message that comes with the interrupt is not lost', SLOW, async () => {
  const h = await start();
  const sessionId = await create(h, firstPrompt(h));
  await h.waitUntilRest(sessionId);

  for (let round = 1; round <= 4; round++) {
    const held = gate('never said');
    h.model.on(`begin ${round}.`).reply(held);
    h.model.on(`late ${round}.`).always(`heard ${round}`);
    await send(h, sessionId, `begin ${round}.`);
    await held.arrived;

    const calls = [
      () => h.ok('claude_interrupt', { sessionId }),
      () => h.ok('claude_send_message', { sessionId, message: `late ${round}.` }),
    ];
    await Promise.all((round % 2 === 0 ? calls : calls.toReversed()).map((call) => call()));

    const done = await h.waitFor(sessionId, ({ result }) => result === `heard ${round}`, { what: `answer ${round}` });
    expect(done).toMatchObject({ status: 'completed' });
  }
});

test('an interrupted session stays and takes messages', async () => {
  const h = await start();
  h.model.on('endless').reply(tool('Bash', { command: 'until [ -f never ]; do sleep 1; done', description: 'wait' }));
  h.model.on('go on').reply('I am here');
  const { sessionId } = await h.ok('claude_create_session', { prompt: 'endless', allowedTools: ['Bash'] });
  await h.waitFor(sessionId, ({ toolUseEvents }) => toolUseEvents.length > 0, { what: 'the command runs' });

  expect(await h.ok('claude_interrupt', { sessionId })).toEqual({ sessionId, status: 'interrupted' });
  expect(await h.ok('claude_get_status', { sessionId })).toMatchObject({
    status: 'interrupted',
    toolUseEvents: [{ toolName: 'Bash', status: 'failed' }],
  });
  expect(await h.ok('claude_interrupt', { sessionId })).toEqual({ sessionId, status: 'interrupted' });

  await send(h, sessionId, 'go on');
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'completed', result: 'I am here' });
});

test('an interrupt settles what was asked', async () => {
  const h = await start();
  h.model.on('ask').reply(tool('Bash', { command: 'touch x', description: 'x' }));
  const sessionId = await create(h, 'ask');
  const { inputId } = await h.waitForRequest(sessionId);

  expect(await h.ok('claude_interrupt', { sessionId })).toEqual({ sessionId, status: 'interrupted' });

  expect(await h.ok('claude_get_status', { sessionId })).toMatchObject({
    status: 'interrupted',
    pendingInputs: [],
    toolUseEvents: [{ toolName: 'Bash', status: 'denied' }],
  });
  await h.fails('claude_respond', { sessionId, inputId, decision: 'allow' }, 'PERMISSION_REQUEST_NOT_FOUND');
});

test('a session whose process has died is started again and remembers', async () => {
  const h = await start();
  h.model.on('first').reply('noted');
  h.model.on('then').reply(hang());
  const second = h.model.on('second').reply('back again');
  const sessionId = await create(h, 'first');
  await h.waitUntilRest(sessionId);
  await send(h, sessionId, 'then');
  await eventually(() => h.model.requests.at(-1)?.lastUserText === 'then', { what: 'the model was asked' });
  const claude = (await h.processes()).find(({ command }) => command.includes('stream-json'));
  process.kill(claude!.pid, 'SIGKILL');
  const dead = await h.waitUntilRest(sessionId);
  expect(dead).toMatchObject({ status: 'error', error: expect.stringContaining('SIGKILL') });
  expect(dead.result).toBeUndefined();

  await send(h, sessionId, 'second');

  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'completed', result: 'back again' });
  expect(h.model.requestsFor(second)[0]?.userTexts).toContain('first');
});

function firstPrompt(h: Harness): string {
  h.model.on('hello').reply(text('hello'));
  return 'hello';
}
