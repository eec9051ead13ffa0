import path from 'node:path';
import { expect } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { verifies } from './requirements.ts';

verifies(['status.whole', 'list.active'], async (variant) => {
  const h = await variant.start();
  const command = 'touch made.txt && echo done';
  h.model.on('make a file').reply(tool('Bash', { command, description: 'make it' }), text('I made it.\nIt is empty.'));
  const sessionId = await h.begin('make a file');

  const asked = {
    inputId: expect.any(String),
    type: 'permission',
    toolName: 'Bash',
    toolInput: { command, description: 'make it' },
    description: `Bash: ${command}`,
    cwd: h.project,
    alwaysAllows: expect.stringMatching(/\(this session only\)$/),
    expiresAt: expect.any(String),
    expiresInMs: expect.any(Number),
    onExpiry: 'deny',
  };
  expect(await h.ok('claude_get_status', { sessionId, waitMs: 40_000 })).toEqual({
    sessionId,
    status: 'waiting_for_input',
    recentOutput: [],
    pendingInputs: [asked],
    toolUseEvents: [{ toolName: 'Bash', status: 'awaiting_permission', input: command, inputId: expect.any(String) }],
    turnCount: expect.any(Number),
  });
  expect(await h.allow(sessionId)).toEqual({ sessionId, status: 'running' });

  expect(await h.waitUntilRest(sessionId)).toEqual({
    sessionId,
    status: 'completed',
    result: 'I made it.\nIt is empty.',
    recentOutput: ['I made it.', 'It is empty.'],
    pendingInputs: [],
    work: {
      filesChanged: 0,
      insertions: 0,
      deletions: 0,
      commandsRun: 1,
      commandsFailed: 0,
      lastCheck: null,
      lastCommand: { command, exitCode: 0, tail: 'done' },
    },
    toolUseEvents: [{ toolName: 'Bash', status: 'completed', input: command }],
    costUsd: expect.closeTo(h.model.chargedUsd(), 6),
    turnCount: 2,
  });

  const listed = { sessionId, projectDirectory: h.project, displayText: 'make a file', timestamp: expect.any(String) };
  const list = (): Promise<unknown> => h.ok('claude_list_sessions', {});
  expect(await list()).toEqual({ sessions: [{ ...listed, isActive: true, activeStatus: 'completed' }] });
  await h.restartServer();
  expect(await list()).toEqual({ sessions: [{ ...listed, isActive: false }] });
});

verifies('status.output', async (variant) => {
  const h = await variant.share();
  const held = gate(text('four\n\nsix\n'));
  h.model.on('count').reply(text('one\ntwo\nthree').tool('Bash', { command: 'echo not said', description: 'x' }), held);
  const sessionId = await h.converse('count');
  await held.arrived;
  const output = async (args: object = {}): Promise<unknown> =>
    (await h.ok('claude_get_status', { sessionId, ...args })).recentOutput;
  expect(await output()).toEqual(['one', 'two', 'three']);
  held.release();
  await h.finish(sessionId);
  expect(await output()).toEqual(['one', 'two', 'three', 'four', '', 'six']);
  expect(await output({ outputLines: 2 })).toEqual(['', 'six']);
  expect(await output({ outputLines: 0 })).toEqual([]);
});

verifies('status.long-output', async (variant) => {
  const h = await variant.share();
  const long = `${'a'.repeat(5_000)}\n${`${'b'.repeat(1_999)}\n`.repeat(40)}end`;
  h.model.on('much').reply(text(long));
  const done = await h.waitUntilRest(await h.converse('much'));
  expect(done.result).toBe(long);
  expect(done.recentOutput.at(-1)).toBe('end');
  expect(JSON.stringify(done.recentOutput).length).toBeLessThan(26_000);
});

verifies('status.tool-uses', async (variant) => {
  const h = await variant.share();
  h.model
    .on('use tools')
    .reply(
      tool('Bash', { command: 'echo fine', description: 'works' }),
      tool('Read', { file_path: path.join(h.project, 'missing.txt') }),
      tool('Write', { file_path: 'x.txt', content: 'x' }),
      tool('Bash', { command: 'rm -rf forbidden', description: 'refused by a rule' }),
      tool('Bash', { command: 'until [ -f never ]; do sleep 0.1; done', description: 'runs' }),
      text('done'),
    );
  const sessionId = await h.begin('use tools', { allowedTools: ['Bash'], disallowedTools: ['Bash(rm *)'] });
  await h.deny(sessionId);
  const running = await h.waitFor(sessionId, ({ toolUseEvents }) => toolUseEvents.length === 5, {
    what: 'there are five tool uses',
  });
  expect(running.toolUseEvents).toMatchObject([
    { toolName: 'Bash', status: 'completed', input: 'echo fine' },
    { toolName: 'Read', status: 'failed', error: expect.stringContaining('does not exist') },
    { toolName: 'Write', status: 'denied', deniedBy: 'caller' },
    { toolName: 'Bash', status: 'denied', deniedBy: 'disallowedTools' },
    { toolName: 'Bash', status: 'running' },
  ]);
  await h.interrupt(sessionId);
});

verifies('status.tool-uses', { when: 'while the sub-agent runs in the background' }, async (variant) => {
  const h = await variant.share();
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
      tool('Bash', { command: 'touch allowed.txt', description: 'make' }),
      tool('Write', { file_path: 'denied.txt', content: 'x' }),
      held,
    );
  const sessionId = await h.converse('delegate');
  const toolUses = async (): Promise<unknown[]> => (await h.ok('claude_get_status', { sessionId })).toolUseEvents;
  expect(await h.nextRequest(sessionId)).toMatchObject({ toolName: 'Bash' });
  await h.allow(sessionId);
  expect(await h.nextRequest(sessionId)).toMatchObject({ toolName: 'Write' });
  expect((await toolUses()).at(-1)).toMatchObject({ toolName: 'Write', status: 'awaiting_permission' });
  await h.deny(sessionId);
  await held.arrived;

  expect(await toolUses()).toMatchObject([
    { toolName: 'Agent', status: 'completed' },
    { toolName: 'Read', status: 'failed' },
    { toolName: 'Bash', status: 'completed' },
    { toolName: 'Write', status: 'denied' },
  ]);
  held.release();
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'The agent reported.' });
});
