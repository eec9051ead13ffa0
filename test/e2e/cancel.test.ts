import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { ENDLESS, waitUntilBegun, runningCommands } from './endless-command.ts';
import { verifies } from './requirements.ts';
import { check, start } from './steps.ts';

async function claudeProcesses(h: Harness): Promise<number[]> {
  const isServerOrWatchdog = (command: string): boolean => /(^|\/)node(\s|$)/.test(command);
  return (await h.processes()).filter(({ command }) => !isServerOrWatchdog(command)).map(({ pid }) => pid);
}

verifies(['session.cancel', 'session.cancel-final'], async (variant) => {
  const h = await variant.share();
  // One command in the background, one that the turn waits for.
  h.model
    .on('serve')
    .reply(tool('Bash', { command: ENDLESS, description: 'serve', run_in_background: true }), text('it serves'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'serve', allowedTools: ['Bash'], waitMs: 40_000 });
  await waitUntilBegun(h);
  h.model.on('run forever').reply(tool('Bash', { command: ENDLESS, description: 'endless' }));
  await h.say(sessionId, 'run forever');
  await waitUntilBegun(h);
  expect((await runningCommands(h)).length).toBeGreaterThanOrEqual(2);
  const answer = await h.ok('claude_code_session', { action: 'cancel', sessionId });
  expect(answer.sessions).toMatchObject([{ sessionId, status: 'cancelled', cancelledSource: 'caller' }]);
  // Cancel answers only once everything is gone.
  expect(await claudeProcesses(h)).toEqual([]);

  const state = await check(h, { action: 'poll', sessionId });
  expect(state).toMatchObject({
    status: 'cancelled',
    cancelledAt: expect.any(String),
    cancelledReason: expect.any(String),
    cancelledSource: 'caller',
  });
  expect(state.pollInterval).toBeUndefined();
  await h.fails('claude_code_reply', { sessionId, prompt: 'go on' }, 'CANCELLED');
  await h.fails('claude_code_reply', { sessionId, prompt: 'go on', whenBusy: 'queue' }, 'CANCELLED');
  await h.fails('claude_code_reply', { sessionId, prompt: 'go on', forkSession: true }, 'CANCELLED');
  const again = await h.ok('claude_code_session', { action: 'cancel', sessionId });
  expect(again.message).toBe('It was already cancelled.');
  const after = await check(h, { action: 'poll', sessionId });
  expect(after).toMatchObject({ cancelledAt: state.cancelledAt, nextCursor: state.nextCursor, events: state.events });
});

verifies('session.cancel-final', { when: 'even if the answer is just arriving' }, async (variant) => {
  const h = await variant.share();
  const late = gate(text('too late'));
  h.model.on('answer me').reply(late);
  const sessionId = await start(h, { prompt: 'answer me' });
  await late.arrived;
  const cancelled = h.ok('claude_code_session', { action: 'cancel', sessionId });
  late.release();
  await cancelled;
  const state = await check(h, { action: 'poll', sessionId, pollOptions: { includeTerminalEvents: true } });
  expect(state.status).toBe('cancelled');
  expect(state).not.toHaveProperty('result');
  // Output from before the cancellation is part of the session, but nothing after it.
  const said: Json[] = state.events.filter(({ type }: Json) => type === 'output');
  expect(said.filter(({ timestamp }) => timestamp > state.cancelledAt)).toEqual([]);
});

verifies('session.cancel-request', async (variant) => {
  const h = await variant.share();
  h.model.on('make a file').reply(tool('Bash', { command: 'touch made.txt' }));
  const sessionId = await start(h, { prompt: 'make a file' });
  const { requestId } = await h.waitForRequest(sessionId);
  await h.ok('claude_code_session', { action: 'cancel', sessionId });
  await h.fails(
    'claude_code_check',
    { action: 'respond_permission', sessionId, requestId, decision: 'allow' },
    'PERMISSION_REQUEST_NOT_FOUND',
  );
  const state = await check(h, { action: 'poll', sessionId });
  expect(state.status).toBe('cancelled');
  expect(state.actions).toBeUndefined();
  const outcomes = state.events.filter(({ type }: { type: string }) => type === 'permission_result');
  expect(outcomes).toMatchObject([{ data: { requestId, decision: 'deny', source: 'cancel' } }]);
  expect(existsSync(join(h.project, 'made.txt'))).toBe(false);
});
