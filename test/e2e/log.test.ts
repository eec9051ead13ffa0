import { expect, test } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';

test('the log has a line each for start, request, decision and end, without what was said', async () => {
  const h = await startHarness();
  h.model.on('a secret plan').reply(tool('Bash', { command: 'touch hidden', description: 'x' }), text('done'));
  const sessionId = await h.begin('a secret plan');
  await h.allow(sessionId);
  await h.finish(sessionId);
  const lines = h.server
    .stderr()
    .split('\n')
    .filter((line) => line.includes(sessionId));
  expect(lines.map((line) => line.slice(line.indexOf(sessionId) + sessionId.length))).toEqual([
    ': start (new)',
    ': request: Bash',
    ': decision: Bash allow by caller',
    ': end: idle',
  ]);
  expect(h.server.stderr()).not.toMatch(/secret plan|hidden/);
});
