import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { gate, hang, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Harness } from '../harness/open-harness.ts';
import { verifies } from './requirements.ts';
import { check, pollAll, start } from './steps.ts';

/** A command that runs until it is stopped, and tells when it has begun. */
const ENDLESS = 'touch begun; until [ -f never ]; do sleep 0.1; done';

async function startEndless(h: Harness): Promise<string> {
  h.model.on('run for ever').reply(tool('Bash', { command: ENDLESS, description: 'endless' }));
  const sessionId = await start(h, { prompt: 'run for ever', allowedTools: ['Bash'] });
  await eventually(() => existsSync(join(h.project, 'begun')), { what: 'the command runs' });
  return sessionId;
}

async function runningCommands(h: Harness): Promise<string[]> {
  return (await h.processes()).map(({ command }) => command).filter((command) => command.includes('until [ -f never'));
}

async function claudeProcesses(h: Harness): Promise<number[]> {
  const isServerOrWatchdog = (command: string): boolean => /(^|\/)node(\s|$)/.test(command);
  return (await h.processes()).filter(({ command }) => !isServerOrWatchdog(command)).map(({ pid }) => pid);
}

verifies('session.interrupt', async (variant) => {
  const h = await variant.start();
  h.model.on('what now').reply(text('something else'));
  const sessionId = await startEndless(h);
  expect(await runningCommands(h)).not.toEqual([]);

  const stopped = await h.ok('claude_code_session', { action: 'interrupt', sessionId });
  expect(stopped.sessions).toMatchObject([{ sessionId, status: 'idle' }]);
  await eventually(async () => (await runningCommands(h)).length === 0, { what: 'the command is gone' });

  const next = await h.ok('claude_code_reply', { sessionId, prompt: 'what now', waitMs: 40_000 });
  expect(next).toMatchObject({ status: 'idle', result: { result: 'something else', isError: false } });
});

verifies('session.interrupt', { when: 'while the model is silent' }, async (variant) => {
  const h = await variant.start();
  const silence = gate(hang());
  h.model.on('think').reply(silence);
  h.model.on('what now').reply(text('awake'));
  const sessionId = await start(h, { prompt: 'think' });
  await silence.arrived;
  await h.ok('claude_code_session', { action: 'interrupt', sessionId });
  expect(await check(h, { action: 'poll', sessionId })).toMatchObject({ status: 'idle', result: { isError: true } });
  const next = await h.ok('claude_code_reply', { sessionId, prompt: 'what now', waitMs: 40_000 });
  expect(next).toMatchObject({ status: 'idle', result: { result: 'awake' } });
});

verifies('session.interrupt-request', async (variant) => {
  const h = await variant.start();
  h.model.on('make a file').reply(tool('Bash', { command: 'touch made.txt' }));
  const sessionId = await start(h, { prompt: 'make a file' });
  const { requestId } = await h.waitForRequest(sessionId);
  await h.ok('claude_code_session', { action: 'interrupt', sessionId });
  const state = await check(h, { action: 'poll', sessionId });
  expect(state.status).toBe('idle');
  expect(state.actions).toBeUndefined();
  await h.fails(
    'claude_code_check',
    { action: 'respond_permission', sessionId, requestId, decision: 'allow' },
    'PERMISSION_REQUEST_NOT_FOUND',
  );
  const outcomes = (await pollAll(h, sessionId)).filter(({ type }) => type === 'permission_result');
  expect(outcomes).toMatchObject([{ data: { requestId, decision: 'deny', source: 'cancel' } }]);
});

verifies('session.interrupt-rest', async (variant) => {
  const h = await variant.start();
  h.model.on('hello').reply(text('hi'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'hello', waitMs: 40_000 });
  const answer = await h.ok('claude_code_session', { action: 'interrupt', sessionId });
  expect(answer).toMatchObject({ sessions: [{ status: 'idle' }], message: 'Nothing was running.' });
  expect(await check(h, { action: 'poll', sessionId })).toMatchObject({ status: 'idle', result: { result: 'hi' } });
});

verifies(['session.cancel', 'session.cancel-final'], async (variant) => {
  const h = await variant.start();
  const sessionId = await startEndless(h);
  expect(await claudeProcesses(h)).not.toEqual([]);
  const answer = await h.ok('claude_code_session', { action: 'cancel', sessionId });
  expect(answer.sessions).toMatchObject([{ sessionId, status: 'cancelled', cancelledSource: 'caller' }]);
  // Cancel has answered, so everything is gone by now.
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
  expect(again.message).toBe('It was cancelled before.');
  const after = await check(h, { action: 'poll', sessionId });
  expect(after).toMatchObject({ cancelledAt: state.cancelledAt, nextCursor: state.nextCursor, events: state.events });
});

verifies('session.cancel-final', { when: 'while the answer is on its way' }, async (variant) => {
  const h = await variant.start();
  const late = gate(text('too late'));
  h.model.on('answer me').reply(late);
  const sessionId = await start(h, { prompt: 'answer me' });
  await late.arrived;
  const cancelled = h.ok('claude_code_session', { action: 'cancel', sessionId });
  late.release();
  await cancelled;
  const state = await check(h, { action: 'poll', sessionId, pollOptions: { includeTerminalEvents: true } });
  expect(state.status).toBe('cancelled');
  expect(JSON.stringify(state)).not.toContain('too late');
});

verifies('session.cancel-request', async (variant) => {
  const h = await variant.start();
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

verifies('session.cancel', { when: 'with a background command' }, async (variant) => {
  const h = await variant.start();
  h.model
    .on('serve')
    .reply(tool('Bash', { command: ENDLESS, description: 'serve', run_in_background: true }), text('it serves'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'serve', allowedTools: ['Bash'], waitMs: 40_000 });
  await eventually(() => existsSync(join(h.project, 'begun')), { what: 'the command runs' });
  await h.ok('claude_code_session', { action: 'cancel', sessionId });
  expect(await claudeProcesses(h)).toEqual([]);
  writeFileSync(join(h.project, 'never'), '');
});
