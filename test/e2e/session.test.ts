import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { verifies } from './requirements.ts';
import { pollAll } from './steps.ts';

const HIDDEN = 'a-value-nobody-may-see';

verifies(['session.list', 'session.sensitive'], async (variant) => {
  const h = await variant.start();
  h.model.on('hello').always(text('hi'));
  expect(await h.ok('claude_code_session', { action: 'list' })).toEqual({ sessions: [] });
  const { sessionId } = await h.ok('claude_code', {
    prompt: 'hello',
    allowedTools: ['Read'],
    disallowedTools: ['WebFetch'],
    systemPrompt: 'You are a parrot.',
    waitMs: 40_000,
    advanced: {
      env: { MY_VALUE: HIDDEN },
      mcpServers: { notes: { command: 'true', env: { KEY: HIDDEN } } },
      settings: { env: { OTHER: HIDDEN } },
    },
  });
  const { sessions } = await h.ok('claude_code_session', { action: 'list' });
  expect(sessions).toHaveLength(1);
  expect(sessions[0]).toMatchObject({
    sessionId,
    status: 'idle',
    totalTurns: 1,
    totalCostUsd: expect.any(Number),
    model: expect.any(String),
    permissionMode: 'default',
    allowedTools: ['Read'],
    disallowedTools: ['WebFetch'],
  });
  expect(Date.parse(sessions[0].createdAt)).toBeLessThanOrEqual(Date.parse(sessions[0].lastActiveAt));
  expect(sessions[0]).not.toHaveProperty('cwd');
  expect(sessions[0]).not.toHaveProperty('systemPrompt');
  expect(await h.ok('claude_code_session', { action: 'get', sessionId })).toEqual({ sessions });

  const shown = await h.ok('claude_code_session', { action: 'get', sessionId, includeSensitive: true });
  expect(shown.sessions[0]).toMatchObject({ cwd: h.project, systemPrompt: 'You are a parrot.' });
  for (const name of ['env', 'mcpServers', 'settings']) expect(shown.sessions[0]).not.toHaveProperty(name);
  expect(JSON.stringify([sessions, shown])).not.toContain(HIDDEN);
});

verifies('session.sensitive', { when: 'switched off by the operator' }, async (variant) => {
  const h = await variant.start({ env: { CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS: '0' } });
  await h.fails('claude_code_session', { action: 'list', includeSensitive: true }, 'PERMISSION_DENIED');
});

verifies('session.rewind', async (variant) => {
  const h = await variant.start();
  const file = join(h.project, 'notes.txt');
  writeFileSync(file, 'before\n');
  h.model
    .on('change it')
    .reply(
      tool('Read', { file_path: file }),
      tool('Edit', { file_path: file, old_string: 'before', new_string: 'after' }),
      text('changed'),
    );
  const { sessionId } = await h.ok('claude_code', {
    prompt: 'change it',
    permissionMode: 'acceptEdits',
    waitMs: 40_000,
    advanced: { enableFileCheckpointing: true },
  });
  expect(readFileSync(file, 'utf8')).toBe('after\n');
  const messages = await pollAll(h, sessionId, { responseMode: 'full' });
  const toUserMessage = await userMessage(h.configDir, sessionId);
  expect(messages.length).toBeGreaterThan(0);
  const would = await h.ok('claude_code_session', { action: 'rewind', sessionId, toUserMessage });
  expect(would.message).toMatch(/^Would put back 1 file/);
  expect(readFileSync(file, 'utf8')).toBe('after\n');
  const did = await h.ok('claude_code_session', { action: 'rewind', sessionId, toUserMessage, dryRun: false });
  expect(did.message).toMatch(/^Put back/);
  expect(readFileSync(file, 'utf8')).toBe('before\n');
  await h.fails('claude_code_session', { action: 'rewind', sessionId }, 'INVALID_ARGUMENT');
});

verifies('session.rewind', { when: 'of a session without checkpoints' }, async (variant) => {
  const h = await variant.start();
  h.model.on('hello').reply(text('hi'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'hello', waitMs: 40_000 });
  const rewind = { action: 'rewind', sessionId, toUserMessage: '00000000-0000-4000-8000-000000000000' };
  expect(await h.fails('claude_code_session', rewind, 'INVALID_ARGUMENT')).toContain('enableFileCheckpointing');
});

/** The uuid of the first prompt, from the transcript, as a caller would find it. */
async function userMessage(configDir: string, sessionId: string): Promise<string> {
  const { findSessionFile } = await import('../../src/transcripts/session-files.ts');
  const file = await findSessionFile(configDir, sessionId);
  if (file === undefined || !existsSync(file)) throw new Error('There is no transcript');
  const entries = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
  return entries.find(({ type }) => type === 'user').uuid;
}
