import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { verifies } from './requirements.ts';

const SECRET = { CLAUDE_CODE_MCP_RESUME_SECRET: 'a secret of the operator' };
const ON = { ...SECRET, CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: '1' };

/** A session in a directory of its own, that only the disk remembers. */
async function leftSession(h: Harness, start: { env?: Record<string, string> } = {}): Promise<Json> {
  const cwd = join(h.project, 'elsewhere');
  mkdirSync(cwd);
  h.model.on('remember seven').reply(text('I do'));
  const { sessionId, resumeToken } = await h.ok('claude_code', { prompt: 'remember seven', cwd, waitMs: 40_000 });
  await h.restartServer(start);
  return { sessionId, resumeToken, cwd };
}

verifies('disk.off', async (variant) => {
  const h = await variant.start({ env: SECRET });
  const { sessionId, resumeToken } = await leftSession(h);
  const message = await h.fails('claude_code_reply', { sessionId, prompt: 'go on', resumeToken }, 'SESSION_NOT_FOUND');
  expect(message).toContain('CLAUDE_CODE_MCP_ALLOW_DISK_RESUME=1');
  expect(message).toContain('CLAUDE_CODE_MCP_RESUME_SECRET');
});

verifies('disk.no-secret', async (variant) => {
  const h = await variant.start({ env: { CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: '1' } });
  const { sessionId, resumeToken } = await leftSession(h);
  expect(resumeToken).toBeUndefined();
  const message = await h.fails('claude_code_reply', { sessionId, prompt: 'go on' }, 'PERMISSION_DENIED');
  expect(message).toContain('CLAUDE_CODE_MCP_RESUME_SECRET');
});

verifies(['disk.token', 'disk.unknown', 'disk.resumes'], async (variant) => {
  const h = await variant.start({ env: ON });
  const { sessionId, resumeToken, cwd } = await leftSession(h);
  const prompt = 'what was it';
  await h.fails('claude_code_reply', { sessionId, prompt }, 'PERMISSION_DENIED');
  for (const wrong of ['x', resumeToken.slice(1), `${resumeToken}0`, resumeToken.toUpperCase(), 'é'.repeat(32)]) {
    await h.fails('claude_code_reply', { sessionId, prompt, resumeToken: wrong }, 'PERMISSION_DENIED');
  }
  await h.fails('claude_code_reply', { sessionId: 'another', prompt, resumeToken }, 'PERMISSION_DENIED');

  const recall = h.model.on(prompt).reply(tool('Bash', { command: 'pwd' }), text('seven'));
  const answer = await h.ok('claude_code_reply', { sessionId, prompt, resumeToken, waitMs: 40_000 });
  expect(answer).toMatchObject({ sessionId, status: 'idle', resumeToken, result: { result: 'seven' } });
  const requests = h.model.requestsFor(recall);
  expect(requests[0]?.userTexts).toEqual(['remember seven', prompt]);
  expect(requests[1]?.toolResults[0]?.text).toBe(cwd);
});

verifies('disk.unknown', { when: 'with a token of the operator' }, async (variant) => {
  const h = await variant.start({ env: ON });
  const { createHmac } = await import('node:crypto');
  for (const sessionId of ['11111111-2222-4333-8444-555555555555', '../../etc/passwd']) {
    const resumeToken = createHmac('sha256', SECRET.CLAUDE_CODE_MCP_RESUME_SECRET).update(sessionId).digest('hex');
    await h.fails('claude_code_reply', { sessionId, prompt: 'hello', resumeToken }, 'SESSION_NOT_FOUND');
  }
});

verifies('disk.vanished-directory', async (variant) => {
  const h = await variant.start({ env: ON });
  const { sessionId, resumeToken, cwd } = await leftSession(h);
  rmSync(cwd, { recursive: true });
  const { data, isError } = await h.call('claude_code_reply', { sessionId, prompt: 'go on', resumeToken });
  expect(isError).toBe(true);
  expect(data.error).toContain(cwd);
  expect(data.error).toContain('does not exist');
});

verifies('disk.resumes', { when: 'with options and as a fork' }, async (variant) => {
  const h = await variant.start({ env: ON });
  const { sessionId, resumeToken } = await leftSession(h);
  const script = h.model.on('other way').reply(text('well'));
  const fork = await h.ok('claude_code_reply', {
    sessionId,
    prompt: 'other way',
    resumeToken,
    forkSession: true,
    waitMs: 40_000,
    diskResumeConfig: { model: 'claude-sonnet-5', maxTurns: 4, advanced: { effort: 'low' } },
  });
  expect(fork.sessionId).not.toBe(sessionId);
  expect(h.model.requestsFor(script)[0]).toMatchObject({ model: 'claude-sonnet-5', sessionId: fork.sessionId });
  const { sessions } = await h.ok('claude_code_session', { action: 'get', sessionId: fork.sessionId });
  expect(sessions[0]).toMatchObject({ maxTurns: 4, effort: 'low' });
});
