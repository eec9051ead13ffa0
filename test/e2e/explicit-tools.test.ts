import { expect, test } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';
import { ERAS } from '../harness/connect-client.ts';

test.each(ERAS)('a task from its start to its answer [%s]', async (era) => {
  const h = await startHarness({ toolset: 'explicit', era });
  h.model
    .on('make a file')
    .reply(
      tool('Bash', { command: 'touch made.txt && echo done', description: 'make it' }),
      text('I made it.\nIt is empty.'),
    );
  const created = await h.ok('claude_create_session', { prompt: 'make a file', workingDirectory: h.project });
  expect(created).toEqual({ sessionId: expect.any(String), status: 'running' });
  const { sessionId } = created;

  const waiting = await h.ok('claude_get_status', { sessionId, waitMs: 15_000 });
  expect(waiting).toMatchObject({
    status: 'waiting_for_input',
    pendingInputs: [{ type: 'permission', toolName: 'Bash', toolInput: { command: 'touch made.txt && echo done' } }],
    toolUseEvents: [{ toolName: 'Bash', status: 'running' }],
  });
  const [{ inputId }] = waiting.pendingInputs;
  expect(await h.ok('claude_respond', { sessionId, inputId, decision: 'allow' })).toEqual({
    sessionId,
    status: 'running',
  });

  const done = await h.ok('claude_get_status', { sessionId, waitMs: 15_000, outputLines: 1 });
  expect(done).toEqual({
    sessionId,
    status: 'completed',
    result: 'I made it.\nIt is empty.',
    recentOutput: ['It is empty.'],
    pendingInputs: [],
    toolUseEvents: [{ toolName: 'Bash', status: 'completed' }],
    costUsd: expect.closeTo(h.model.chargedUsd(), 6),
    turnCount: 2,
  });
  const { sessions } = await h.ok('claude_list_sessions', {});
  expect(sessions).toMatchObject([
    {
      sessionId,
      projectDirectory: h.project,
      displayText: 'make a file',
      isActive: true,
      activeStatus: 'completed',
    },
  ]);
});

test('the tools are few, described truthfully and short', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  const { tools } = await h.client.listTools();
  expect(tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint, annotations?.destructiveHint])).toEqual(
    [
      ['claude_create_session', false, true],
      ['claude_send_message', false, true],
      ['claude_get_status', true, false],
      ['claude_respond', false, true],
      ['claude_interrupt', false, true],
      ['claude_list_sessions', true, false],
    ],
  );
  for (const one of tools) {
    expect(one.title).toBeTruthy();
    expect(one.outputSchema?.['type']).toBe('object');
    expect(one.annotations).toMatchObject({ idempotentHint: expect.any(Boolean), openWorldHint: expect.any(Boolean) });
  }
  const shown = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  expect(JSON.stringify(shown).length).toBeLessThan(5_000);
});

test('the other way to choose the toolset is a flag', async () => {
  const h = await startHarness({ args: ['--toolset', 'explicit'] });
  const { tools } = await h.client.listTools();
  expect(tools.map(({ name }) => name)).toContain('claude_create_session');
});

test('a bad argument is named', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  for (const [name, args, hint] of [
    ['claude_send_message', { sessionId: 'x', message: '  ' }, 'message'],
    ['claude_send_message', { sessionId: 'x' }, 'message'],
    ['claude_get_status', {}, 'sessionId'],
    ['claude_get_status', { sessionId: 'x', outputLine: 3 }, 'did you mean outputLines?'],
    ['claude_respond', { sessionId: 'x', inputId: 'y', decision: 'maybe' }, 'decision'],
    ['claude_interrupt', { sessionID: 'x' }, 'did you mean sessionId?'],
    ['claude_list_sessions', { limit: 'many' }, 'limit'],
  ] as const) {
    expect(await h.fails(name, args, 'INVALID_ARGUMENT')).toContain(hint);
  }
});
