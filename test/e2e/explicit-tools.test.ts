import { expect } from 'vitest';
import { test } from 'vitest';
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
