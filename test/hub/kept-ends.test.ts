/** How sessions end that a keeper holds, and what they may do under one, with the real Claude Code. */

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { keeperFiles } from '../../src/keeper/protocol.ts';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';

const isClaude = (command: string): boolean => /--session-id|--resume/.test(command);

const claudes = async (h: Harness): Promise<number> =>
  (await h.processes()).filter(({ command }) => isClaude(command)).length;

it('a keeper that hangs is ended with what it holds; requests stay open, and the hub goes on with another one', async () => {
  const h = await startHarness({ hub: {}, tolerate: { stderr: true } });
  h.model.on('ask').reply(tool('Bash', { command: 'touch asked.txt' }), text('asked and done'));
  h.model.on('next').reply(text('with a new keeper'));
  const { sessionId, actions } = await h.ok('claude_code', { prompt: 'ask', waitMs: 45_000 });
  const keeper = Number(h.keeperPid);
  const asked = h.model.requests.length;
  process.kill(keeper, 'SIGSTOP');
  await eventually(() => h.hub.stderr().includes('the keeper of the processes hangs'), {
    what: 'the hub notices',
    within: 40_000,
  });
  await eventually(async () => (await claudes(h)) === 0, { what: 'Claude Code is gone', within: 10_000 });
  const [{ requestId }] = actions;
  expect(await h.ok('claude_code_check', { action: 'poll', sessionId })).toMatchObject({ actions: [{ requestId }] });
  expect(await h.ok('claude_code', { prompt: 'next', waitMs: 45_000 })).toMatchObject({
    result: { result: 'with a new keeper' },
  });
  expect(h.model.requests.length).toBe(asked + 1);
  expect(h.keeperPid).not.toBe(keeper);
});

it('a keeper whose state directory is removed ends what nobody can find any more', async () => {
  const h = await startHarness({ hub: {}, tolerate: { stderr: true } });
  h.model.on('rest').reply(text('resting'));
  await h.ok('claude_code', { prompt: 'rest', waitMs: 45_000 });
  const keeper = h.keeperPid;
  expect(await claudes(h)).toBe(1);
  await h.stopHub('SIGKILL');
  await rm(join(h.stateDir, 'claude-code-mcp'), { recursive: true });
  await eventually(async () => (await h.processes()).every(({ pid }) => pid !== keeper) && (await claudes(h)) === 0, {
    what: 'everything has ended',
    within: 20_000,
  });
});

it('a process that dies while there is no hub ends its turn under the next one, and its request stays open', async () => {
  const h = await startHarness({ hub: {}, tolerate: { stderr: true } });
  const held = gate(text('never said'));
  h.model.on('work').reply(held);
  h.model.on('ask').reply(tool('Bash', { command: 'touch asked.txt' }), text('asked and done'));
  const working = await h.ok('claude_code', { prompt: 'work' });
  const asking = await h.ok('claude_code', { prompt: 'ask', waitMs: 45_000 });
  await held.arrived;
  await h.stopHub('SIGKILL');
  for (const { pid, command } of await h.processes()) if (isClaude(command)) process.kill(pid, 'SIGKILL');
  await eventually(async () => (await claudes(h)) === 0, { what: 'Claude Code is gone', within: 10_000 });
  await h.startHub();

  const ended = await h.ok('claude_code_check', {
    action: 'wait',
    sessionId: working.sessionId,
    waitMs: 45_000,
  });
  expect(ended).toMatchObject({ status: 'error', result: { isError: true } });
  const [{ requestId }] = asking.actions;
  const answered = await h.ok('claude_code_check', {
    action: 'respond_permission',
    sessionId: asking.sessionId,
    requestId,
    decision: 'deny',
    waitMs: 45_000,
  });
  expect(answered).toMatchObject({ status: 'idle', result: { result: 'asked and done' } });
});

it('a background task goes on without the hub, and what it leads to is told by the next one', async () => {
  const h = await startHarness({ hub: {}, settings: { permissions: { allow: ['Bash'] } } });
  const command = 'while [ ! -e go ]; do sleep 0.1; done; touch finished';
  h.model
    .on('start it')
    .reply(tool('Bash', { command, description: 'wait', run_in_background: true }), text('It runs.'))
    .always('It has finished.');
  const { sessionId, result } = await h.ok('claude_code', { prompt: 'start it', waitMs: 45_000 });
  expect(result.result).toBe('It runs.');
  await h.stopHub('SIGKILL');
  writeFileSync(join(h.project, 'go'), '');
  await eventually(() => existsSync(join(h.project, 'finished')), { what: 'the task has finished' });
  await h.startHub();
  await eventually(
    async () => (await h.ok('claude_code_check', { action: 'poll', sessionId })).result?.result === 'It has finished.',
    { what: 'Claude has heard of it', within: 20_000 },
  );
  expect(await claudes(h)).toBe(1);
});

it('a session without a transcript goes on too, as long as its process lives', async () => {
  const h = await startHarness({ hub: {} });
  h.model.on('rest').reply(text('resting'));
  h.model.on('again').reply(text('still there'));
  const { sessionId } = await h.ok('claude_code', {
    prompt: 'rest',
    advanced: { persistSession: false },
    waitMs: 45_000,
  });
  await h.stopHub('SIGKILL');
  await h.startHub();
  const again = await h.ok('claude_code_reply', { sessionId, prompt: 'again', waitMs: 45_000 });
  expect(again.result.result).toBe('still there');
  expect(await claudes(h)).toBe(1);
});

it('after a reboot nothing claims to be alive: the record of an earlier boot is not believed', async () => {
  const h = await startHarness({ hub: {} });
  h.model.on('rest').reply(text('resting'));
  h.model.on('again').reply(text('resumed'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'rest', waitMs: 45_000 });
  const { record } = keeperFiles(join(h.stateDir, 'claude-code-mcp'));
  const before = JSON.parse(readFileSync(record, 'utf8')) as Record<string, unknown>;
  await h.killHubAndKeeper();
  // The process that has its number now is another one.
  writeFileSync(record, JSON.stringify({ ...before, pid: process.pid, boot: 'an earlier one' }));
  await h.startHub();
  expect(h.keeperPid).not.toBe(process.pid);
  const again = await h.ok('claude_code_reply', { sessionId, prompt: 'again', waitMs: 45_000 });
  expect(again.result.result).toBe('resumed');
  expect(await claudes(h)).toBe(1);
});
