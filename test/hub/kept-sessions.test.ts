/** Sessions go on while their hub is gone, with the real Claude Code and the real keeper. */

import { join } from 'node:path';
import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';

const HUB = { git: true, hub: {} };

it('a killed hub stops nothing: work, a request and a session at rest go on under the next one', async () => {
  const h = await startHarness({ ...HUB, settings: { permissions: { allow: ['Write'] } } });
  const held = gate(text('the work is done'));
  h.model.on('work').reply(tool('Write', { file_path: join(h.project, 'a.txt'), content: 'a\n' }), held);
  h.model.on('ask').reply(tool('Bash', { command: 'echo asked > asked.txt' }), text('asked and done'));
  h.model.on('rest').reply(text('resting'));
  h.model.on('again').reply(text('still the same process'));

  const working = await h.ok('claude_code', { prompt: 'work' });
  const resting = await h.ok('claude_code', { prompt: 'rest', waitMs: 45_000 });
  const asking = await h.ok('claude_code', { prompt: 'ask', waitMs: 45_000 });
  expect(asking.actions).toHaveLength(1);
  await held.arrived;
  const before = (await h.processes()).filter(({ command }) => command.includes('--session-id')).map(({ pid }) => pid);

  await h.stopHub('SIGKILL');
  held.release();
  await h.startHub();

  const done = await h.ok('claude_code_check', { action: 'wait', sessionId: working.sessionId, waitMs: 45_000 });
  expect(done).toMatchObject({ status: 'idle', result: { result: 'the work is done', isError: false } });
  const [action] = asking.actions as Json[];
  const waiting = await h.ok('claude_code_check', { action: 'poll', sessionId: asking.sessionId });
  expect(waiting).toMatchObject({ status: 'waiting_permission', actions: [{ requestId: action.requestId }] });
  const answered = await h.ok('claude_code_check', {
    action: 'respond_permission',
    sessionId: asking.sessionId,
    requestId: action.requestId,
    decision: 'allow',
    waitMs: 45_000,
  });
  expect(answered).toMatchObject({ status: 'idle', result: { result: 'asked and done' } });
  expect(readFileSync(join(h.project, 'asked.txt'), 'utf8')).toBe('asked\n');
  expect(existsSync(join(h.project, 'a.txt'))).toBe(true);
  const again = await h.ok('claude_code_reply', { sessionId: resting.sessionId, prompt: 'again', waitMs: 45_000 });
  expect(again.result.result).toBe('still the same process');
  const after = (await h.processes()).filter(({ command }) => command.includes('--session-id')).map(({ pid }) => pid);
  expect(after.sort()).toEqual(before.sort());
});
