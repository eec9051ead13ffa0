import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { verifies } from './requirements.ts';
import { standIn } from './stand-in.ts';

/** Not at once, so that one process can do several things. */
const PARKED = { CLAUDE_CODE_MCP_PARK_AFTER_MS: '2000', CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '50' };

/** The uuid of the message that the last turn answered, read as a caller would. */
async function lastMessage(h: Harness, sessionId: string): Promise<string> {
  const { events } = await h.ok('claude_code_check', { action: 'poll', sessionId, responseMode: 'full' });
  return events.findLast(({ type }: Json) => type === 'result').data.user_message_uuids[0];
}

async function isParked(h: Harness): Promise<boolean> {
  return !(await h.processes()).some(({ command }) => command.includes('stream-json'));
}

verifies(
  'session.rewind',
  { when: 'with a running process, and leaves what somebody else changed since' },
  async (variant) => {
    const h = await variant.start();
    const sessionId = await expectRewinds(h);
    await expectOthersKept(h, sessionId);
    await expectRefusals(h, sessionId);
  },
);

verifies('session.rewind', { when: 'with a parked process' }, async (variant) => {
  await expectRewinds(await variant.start({ env: PARKED }), isParked);
});

/** First as a dry run, then for real, one message after the other. */
async function expectRewinds(h: Harness, ready: (h: Harness) => Promise<boolean> = async () => true): Promise<string> {
  const kept = path.join(h.project, 'kept.txt');
  const made = path.join(h.project, 'made.txt');
  await writeFile(kept, 'as it was\n');
  const edit = (from: string, to: string) => tool('Edit', { file_path: kept, old_string: from, new_string: to });
  h.model.on('first change').reply(tool('Read', { file_path: kept }), edit('as it was', 'changed once'), text('ok'));
  h.model
    .on('second change')
    .reply(edit('changed once', 'changed twice'), tool('Write', { file_path: made, content: 'new\n' }), text('ok'));
  const { sessionId } = await h.ok('claude_code', {
    prompt: 'first change',
    permissionMode: 'acceptEdits',
    advanced: { enableFileCheckpointing: true },
  });
  await h.waitUntilRest(sessionId);
  const first = await lastMessage(h, sessionId);
  await h.ok('claude_code_reply', { sessionId, prompt: 'second change' });
  await h.waitUntilRest(sessionId);
  const second = await lastMessage(h, sessionId);
  expect(second).not.toBe(first);
  await eventually(() => ready(h), { what: 'the process is in the expected state' });
  const rewind = (args: object): Promise<Json> => h.ok('claude_code_session', { action: 'rewind', sessionId, ...args });

  const dry = await rewind({ toUserMessage: second });
  expect(dry).toMatchObject({ sessions: [{ sessionId, status: 'idle' }] });
  expect(dry.message).toMatch(/^Would restore 2 file\(s\)/);
  expect(await readFile(kept, 'utf8')).toBe('changed twice\n');
  expect(existsSync(made)).toBe(true);

  const { message } = await rewind({ toUserMessage: second, dryRun: false });
  expect(message).toBe(`Restored 2 file(s): ${kept}, ${made} (+1 -2).`);
  expect(await readFile(kept, 'utf8')).toBe('changed once\n');
  expect(existsSync(made)).toBe(false);

  await rewind({ toUserMessage: first, dryRun: false });
  expect(await readFile(kept, 'utf8')).toBe('as it was\n');

  h.model.on('go on').reply('still here');
  const done = await h.ok('claude_code_reply', { sessionId, prompt: 'go on', waitMs: 40_000 });
  expect(done).toMatchObject({ status: 'idle', result: { result: 'still here' } });
  return sessionId;
}

/** Leaves what somebody else changed since. */
async function expectOthersKept(h: Harness, sessionId: string): Promise<void> {
  const [own, shared, gone] = ['own.txt', 'shared.txt', 'gone.txt'].map((name) => path.join(h.project, name));
  const write = (file: string) => tool('Write', { file_path: file, content: 'by Claude\n' });
  h.model.on('write them').reply(write(own!), write(shared!), write(gone!), text('ok'));
  await h.say(sessionId, 'write them');
  await h.waitUntilRest(sessionId);
  const toUserMessage = await lastMessage(h, sessionId);
  await writeFile(shared!, 'by a person\n', { mode: 0o640 });
  await rm(gone!);
  const rewind = { action: 'rewind', sessionId, toUserMessage };
  const dry: Json = await h.ok('claude_code_session', rewind);
  expect(dry.message).toContain(`Would restore 1 file(s): ${own}. Would leave 1 unchanged: ${shared} (changed since`);
  const done: Json = await h.ok('claude_code_session', { ...rewind, dryRun: false });
  expect(done.message).toContain(`Restored 1 file(s): ${own}. Left 1 unchanged: ${shared} (changed since`);
  expect(existsSync(own!)).toBe(false);
  expect(await readFile(shared!, 'utf8')).toBe('by a person\n');
  expect(existsSync(gone!)).toBe(false);
  expect(await readdir(path.join(h.stateDir, 'claude-code-mcp', 'rewind'))).toEqual([]);
}

/** A rewind that is refused says why. */
async function expectRefusals(h: Harness, sessionId: string): Promise<void> {
  const held = gate(text('done'));
  h.model.on('with checkpoints').reply(held);
  const rewind = { action: 'rewind', toUserMessage: randomUUID() };
  const { sessionId: plain } = await h.ok('claude_code', { prompt: 'plain', ...standIn('ordinary') });
  const without = await h.fails('claude_code_session', { ...rewind, sessionId: plain }, 'INVALID_ARGUMENT');
  expect(without).toContain('enableFileCheckpointing');

  await h.say(sessionId, 'with checkpoints');
  await held.arrived;
  await h.fails('claude_code_session', { ...rewind, sessionId }, 'SESSION_BUSY');
  held.release();
  await h.waitUntilRest(sessionId);
  await h.fails('claude_code_session', { ...rewind, sessionId }, 'INVALID_ARGUMENT');
  const missing = await h.fails('claude_code_session', { action: 'rewind', sessionId }, 'INVALID_ARGUMENT');
  expect(missing).toContain('user_message_uuids');
}
