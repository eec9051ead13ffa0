import { expect, test } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';

test('a task with one approved permission', async () => {
  const h = await startHarness({});
  h.model
    .on('make a file')
    .reply(tool('Bash', { command: 'touch made.txt && echo done', description: 'make it' }), text('made it'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'make a file', cwd: h.project });
  await h.allow(sessionId);
  const done = await h.ok('claude_code_check', { action: 'wait', sessionId });
  expect(done).toMatchObject({ status: 'idle', result: { result: 'made it', isError: false } });
});
