import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';
import { openTerminal, runInTerminal } from './terminal-claude.ts';

/** Several processes one after the other, on a machine that may have other work. */
const SLOW = { timeout: 90_000 };

test('a session that a person made in the terminal goes on in its own directory', SLOW, async () => {
  const h = await startHarness({ toolset: 'explicit' });
  const elsewhere = path.join(path.dirname(h.project), 'elsewhere');
  await mkdir(elsewhere);
  h.model.on('remember the word').reply('noted');
  const sessionId = await runInTerminal(h, 'remember the word xylophone', { cwd: elsewhere });
  const script = h.model.on('go on').reply(tool('Bash', { command: 'touch here.txt', description: 'x' }), text('done'));

  await h.fails('claude_get_status', { sessionId }, 'SESSION_NOT_FOUND');
  expect(await h.ok('claude_send_message', { sessionId, message: 'go on' })).toEqual({ sessionId, status: 'running' });

  expect(await h.waitForRequest(sessionId)).toMatchObject({ type: 'permission', toolName: 'Bash' });
  await h.allow(sessionId);
  const done = await h.waitUntilRest(sessionId);
  expect(done).toMatchObject({ status: 'completed', result: 'done', recentOutput: ['done'] });
  expect(existsSync(path.join(elsewhere, 'here.txt'))).toBe(true);
  expect(h.model.requestsFor(script)[0]?.userTexts[0]).toContain('xylophone');
});

test('a session outlives the server that made it', SLOW, async () => {
  const h = await startHarness({ toolset: 'explicit' });
  h.model.on('first').reply('one');
  const second = h.model.on('second').reply('two');
  const { sessionId } = await h.ok('claude_create_session', { prompt: 'first' });
  await h.waitUntilRest(sessionId);
  await h.restartServer();

  await h.ok('claude_send_message', { sessionId, message: 'second' });

  const done = await h.waitUntilRest(sessionId);
  expect(done).toMatchObject({ status: 'completed', result: 'two' });
  expect(done.costUsd).toBeCloseTo(h.model.chargedUsd(), 6);
  expect(h.model.requestsFor(second)[0]?.userTexts).toEqual(['first', 'second']);
});

test('an id that Claude Code does not have is told apart', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  for (const sessionId of [randomUUID(), 'nothing', '../../etc/passwd', '*']) {
    await h.fails('claude_send_message', { sessionId, message: 'hello' }, 'SESSION_NOT_FOUND');
    await h.fails('claude_get_status', { sessionId }, 'SESSION_NOT_FOUND');
    await h.fails('claude_interrupt', { sessionId }, 'SESSION_NOT_FOUND');
  }
});

test('messages that come together start one process, and both are heard', SLOW, async () => {
  const h = await startHarness({ toolset: 'explicit' });
  h.model.on('begin').reply('begun');
  const sessionId = await runInTerminal(h, 'begin');
  h.model.on(/message [ab]/).always(text('heard'));

  await Promise.all(['message a', 'message b'].map((message) => h.ok('claude_send_message', { sessionId, message })));

  await h.waitUntilRest(sessionId);
  const heard = h.model.requests.at(-1)?.userTexts.join('\n');
  expect(heard).toContain('message a');
  expect(heard).toContain('message b');
  expect((await h.processes()).filter(({ command }) => command.includes(sessionId))).toHaveLength(1);
});

test('a session that another Claude Code has open is not opened a second time', SLOW, async () => {
  const h = await startHarness({ toolset: 'explicit' });
  h.model.on('mine').reply('yours');
  h.model.on('let me in').reply('come in');
  const terminal = await openTerminal(h, 'mine');
  const { sessionId, pid } = terminal;

  const message = await h.fails('claude_send_message', { sessionId, message: 'let me in' }, 'SESSION_BUSY');
  expect(message).toContain(`pid ${pid}`);

  await terminal.close();
  await h.ok('claude_send_message', { sessionId, message: 'let me in' });
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'completed', result: 'come in' });
});

test('a session of ours that a person has opened meanwhile is left to them', SLOW, async () => {
  const env = { CLAUDE_CODE_MCP_PARK_AFTER_MS: '1', CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '50' };
  const h = await startHarness({ toolset: 'explicit', env });
  h.model.on('ours').reply('done');
  h.model.on('theirs').reply('done');
  h.model.on('ours again').reply('back');
  const { sessionId } = await h.ok('claude_create_session', { prompt: 'ours' });
  await h.waitUntilRest(sessionId);
  const isClaude = ({ command }: { command: string }): boolean => command.includes(sessionId);
  await expect.poll(async () => (await h.processes()).some(isClaude), { timeout: 10_000 }).toBe(false);

  const terminal = await openTerminal(h, 'theirs', { resume: sessionId });
  const message = await h.fails('claude_send_message', { sessionId, message: 'ours again' }, 'SESSION_BUSY');
  expect(message).toContain(`pid ${terminal.pid}`);

  await terminal.close();
  await h.ok('claude_send_message', { sessionId, message: 'ours again' });
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'completed', result: 'back' });
});

test('a forgotten session is taken up again from disk', SLOW, async () => {
  const env = { CLAUDE_CODE_MCP_SESSION_TTL_MS: '1', CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '50' };
  const h = await startHarness({ toolset: 'explicit', env });
  h.model.on('first').reply('one');
  const held = gate(text('two'));
  const second = h.model.on('second').reply(held);
  const { sessionId } = await h.ok('claude_create_session', { prompt: 'first' });
  await expect.poll(() => isKnown(sessionId), { timeout: 20_000 }).toBe(false);

  await h.ok('claude_send_message', { sessionId, message: 'second' });
  await held.arrived;
  expect(h.model.requestsFor(second)[0]?.userTexts).toEqual(['first', 'second']);
  expect(await h.ok('claude_get_status', { sessionId })).toMatchObject({ status: 'running' });
  held.release();
  await expect.poll(() => isKnown(sessionId), { timeout: 20_000 }).toBe(false);

  async function isKnown(id: string): Promise<boolean> {
    return !(await h.call('claude_get_status', { sessionId: id })).isError;
  }
});
