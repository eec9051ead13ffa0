import path from 'node:path';
import { expect, test } from 'vitest';
import { gate, httpError, text, tool } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';

test('recentOutput is the last lines of what Claude said', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  const held = gate(text('four\n\nsix\n'));
  h.model.on('count').reply(text('one\ntwo\nthree').tool('Bash', { command: 'echo not said', description: 'x' }), held);
  const { sessionId } = await h.ok('claude_create_session', { prompt: 'count' });
  await held.arrived;

  const during = await h.ok('claude_get_status', { sessionId });
  expect(during).toMatchObject({ status: 'running', recentOutput: ['one', 'two', 'three'] });
  expect(during.result).toBeUndefined();
  held.release();

  const done = await h.waitUntilRest(sessionId);
  expect(done.recentOutput).toEqual(['one', 'two', 'three', 'four', '', 'six']);
  expect((await h.ok('claude_get_status', { sessionId, outputLines: 2 })).recentOutput).toEqual(['', 'six']);
  expect((await h.ok('claude_get_status', { sessionId, outputLines: 0 })).recentOutput).toEqual([]);
});

test('long output does not fill the answer, the result comes whole', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  const long = `${'a'.repeat(5_000)}\n${`${'b'.repeat(1_999)}\n`.repeat(40)}end`;
  h.model.on('much').reply(text(long));
  const { sessionId } = await h.ok('claude_create_session', { prompt: 'much' });
  const done = await h.waitUntilRest(sessionId);
  expect(done.result).toBe(long);
  expect(done.recentOutput.at(-1)).toBe('end');
  expect(JSON.stringify(done.recentOutput).length).toBeLessThan(26_000);
});

test('toolUseEvents tell running, completed, failed and denied apart', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  h.model
    .on('use tools')
    .reply(
      tool('Bash', { command: 'echo fine', description: 'works' }),
      tool('Read', { file_path: path.join(h.project, 'missing.txt') }),
      tool('Write', { file_path: 'x.txt', content: 'x' }),
      tool('Bash', { command: 'rm -rf forbidden', description: 'refused by a rule' }),
      tool('Bash', { command: 'until [ -f go ]; do sleep 0.1; done', description: 'runs' }),
      text('done'),
    );
  const { sessionId } = await h.ok('claude_create_session', {
    prompt: 'use tools',
    allowedTools: ['Bash'],
    disallowedTools: ['Bash(rm *)'],
  });
  await h.deny(sessionId);
  const running = await h.waitFor(sessionId, ({ toolUseEvents }) => toolUseEvents.length === 5, { what: 'five tools' });
  expect(running.toolUseEvents).toEqual([
    { toolName: 'Bash', status: 'completed' },
    { toolName: 'Read', status: 'failed' },
    { toolName: 'Write', status: 'denied' },
    { toolName: 'Bash', status: 'denied' },
    { toolName: 'Bash', status: 'running' },
  ]);
  await h.ok('claude_interrupt', { sessionId });
});

test('the tools of sub-agents are told too', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  const held = gate(text('agent done'));
  h.model
    .on('delegate')
    .reply(
      tool('Agent', { description: 'look', prompt: 'sub task', subagent_type: 'general-purpose' }),
      text('The agent works.'),
      text('The agent reported.'),
    );
  h.model
    .on('sub task')
    .reply(
      tool('Read', { file_path: path.join(h.project, 'missing.txt') }),
      tool('Bash', { command: 'echo seen', description: 'look' }),
      tool('Bash', { command: 'touch allowed.txt', description: 'make' }),
      tool('Write', { file_path: 'denied.txt', content: 'x' }),
      held,
    );
  const { sessionId } = await h.ok('claude_create_session', { prompt: 'delegate' });
  expect(await h.waitForRequest(sessionId)).toMatchObject({ toolName: 'Bash' });
  await h.allow(sessionId);
  expect(await h.waitForRequest(sessionId)).toMatchObject({ toolName: 'Write' });
  const asked = await h.ok('claude_get_status', { sessionId });
  expect(asked.toolUseEvents.at(-1)).toEqual({ toolName: 'Write', status: 'running' });
  await h.deny(sessionId);
  await held.arrived;

  expect((await h.ok('claude_get_status', { sessionId })).toolUseEvents).toEqual([
    { toolName: 'Agent', status: 'completed' },
    { toolName: 'Read', status: 'failed' },
    { toolName: 'Bash', status: 'completed' },
    { toolName: 'Bash', status: 'completed' },
    { toolName: 'Write', status: 'denied' },
  ]);
  held.release();
  const done = await h.waitUntilRest(sessionId);
  expect(done).toMatchObject({ status: 'completed', result: 'The agent reported.' });
});

test('waitMs waits for a reason, with progress, and no longer than told', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  const held = gate(tool('Bash', { command: 'touch x', description: 'x' }));
  h.model.on('wait').reply(held, text('done'));
  const { sessionId } = await h.ok('claude_create_session', { prompt: 'wait' });
  await held.arrived;

  expect(await h.ok('claude_get_status', { sessionId, waitMs: 50 })).toMatchObject({ status: 'running' });

  const told: { progress: number; message?: string | undefined }[] = [];
  const waiting = h.ok('claude_get_status', { sessionId, waitMs: 15_000 }, { onProgress: (one) => told.push(one) });
  held.release();
  expect(await waiting).toMatchObject({ status: 'waiting_for_input', pendingInputs: [{ toolName: 'Bash' }] });
  expect(told.length).toBeGreaterThan(0);
  expect(told[0]?.message).toMatch(/now: .*\$\d/);
  expect(told.map(({ progress }) => progress)).toEqual(told.map((_, index) => index + 1));

  await h.allow(sessionId);
  expect(await h.ok('claude_get_status', { sessionId, waitMs: 15_000 })).toMatchObject({ status: 'completed' });
  await h.fails('claude_get_status', { sessionId, waitMs: 600_001 }, 'INVALID_ARGUMENT');
});

test('a turn that fails says why, and the session goes on', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  h.model.on('broken').always(httpError(400, { message: 'the model has had enough' }));
  h.model.on('better').reply('fine again');
  const { sessionId } = await h.ok('claude_create_session', { prompt: 'broken' });
  const failed = await h.waitUntilRest(sessionId);
  expect(failed).toMatchObject({ status: 'error', error: expect.stringContaining('had enough') });
  expect(failed.result).toBeUndefined();

  await h.ok('claude_send_message', { sessionId, message: 'better' });
  const done = await h.waitUntilRest(sessionId);
  expect(done).toMatchObject({ status: 'completed', result: 'fine again' });
  expect(done.error).toBeUndefined();
});
