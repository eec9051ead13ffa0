import { createHmac, randomUUID } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { reply, text, tool } from '../../src/scripted-model/reply.ts';
import type { Json } from '../harness/json.ts';
import type { Harness, ServerStart } from '../harness/open-harness.ts';
import { DISK_RESUME } from '../harness/toolsets.ts';
import { writeTranscript } from '../transcripts/written-transcript.ts';
import { verifies } from './requirements.ts';

const tokenOf = (sessionId: string, secret: string = DISK_RESUME.CLAUDE_CODE_MCP_RESUME_SECRET): string =>
  createHmac('sha256', secret).update(sessionId).digest('hex');

interface StoredSession {
  readonly sessionId: string;
  readonly resumeToken: string | undefined;
  readonly cwd: string;
  readonly turns: number;
}

async function turnsOf(h: Harness, sessionId: string): Promise<number> {
  if (h.toolset === 'explicit') return (await h.ok('claude_get_status', { sessionId })).turnCount;
  return (await h.ok('claude_code_check', { action: 'poll', sessionId })).result.sessionTotalTurns;
}

/** A session in its own directory that exists only on disk, because the server was restarted. */
async function leaveOnDisk(h: Harness, next?: ServerStart): Promise<StoredSession> {
  const cwd = join(h.project, 'elsewhere');
  mkdirSync(cwd);
  // Two calls in one message: Claude Code counts a turn for each result.
  const twoCalls = reply().tool('Bash', { command: 'echo 1' }).tool('Bash', { command: 'echo 2' });
  h.model.on('remember seven').reply(twoCalls, text('I do'));
  const { sessionId, resumeToken }: Json = await h.ok(...h.dialect.start('remember seven', { cwd }));
  await h.finish(sessionId);
  const turns = await turnsOf(h, sessionId);
  await h.restartServer(next);
  return { sessionId, resumeToken, cwd, turns };
}

verifies('disk.resumes', { toolsets: ['explicit'] }, async (variant) => {
  const h = await variant.share({ env: DISK_RESUME });
  await expectResumed(h, await leaveOnDisk(h));
});

verifies(
  ['disk.resumes', 'disk.off', 'disk.no-secret', 'disk.token', 'disk.vanished-directory', 'start.resume-token'],
  { toolsets: ['compact'], when: 'with options and as a fork' },
  async (variant) => {
    const h = await variant.share({ env: DISK_RESUME });
    const stored = await leaveOnDisk(h, { env: { CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: '' } });
    const { sessionId, resumeToken, cwd } = stored;
    expect(resumeToken).toBe(tokenOf(sessionId));

    const off = await h.fails(...h.dialect.resume(sessionId, 'go on'), 'SESSION_NOT_FOUND');
    expect(off).toContain('CLAUDE_CODE_MCP_ALLOW_DISK_RESUME=1');
    expect(off).toContain('CLAUDE_CODE_MCP_RESUME_SECRET');

    await h.restartServer({ env: { CLAUDE_CODE_MCP_RESUME_SECRET: '' } });
    const reply = { sessionId, prompt: 'go on' };
    // Neither the right token nor one that anybody could make without a secret.
    for (const token of [{}, { resumeToken }, { resumeToken: tokenOf(sessionId, '') }]) {
      const noSecret = await h.fails('claude_code_reply', { ...reply, ...token }, 'PERMISSION_DENIED');
      expect(noSecret).toContain('CLAUDE_CODE_MCP_RESUME_SECRET');
    }

    await h.restartServer();
    for (const token of [{}, { resumeToken: 'x' }, { resumeToken: tokenOf(randomUUID()) }]) {
      await h.fails('claude_code_reply', { ...reply, ...token }, 'PERMISSION_DENIED');
    }
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
    expect(fork.resumeToken).toBe(tokenOf(fork.sessionId));
    expect(h.model.requestsFor(script)[0]).toMatchObject({ model: 'claude-sonnet-5', sessionId: fork.sessionId });
    const { sessions } = await h.ok('claude_code_session', { action: 'get', sessionId: fork.sessionId });
    expect(sessions[0]).toMatchObject({ maxTurns: 4, effort: 'low' });

    await expectResumed(h, stored);
    await h.restartServer();
    rmSync(cwd, { recursive: true });
    const { data, isError } = await h.call(...h.dialect.resume(sessionId, 'go on'));
    expect(isError).toBe(true);
    expect(data.error).toContain(cwd);
    expect(data.error).toContain('does not exist');
  },
);

async function expectResumed(h: Harness, { sessionId, cwd, turns }: StoredSession): Promise<void> {
  const recall = h.model.on('what was it').reply(tool('Bash', { command: 'pwd' }), text('seven'));
  const resumed = await h.resume(sessionId, 'what was it');
  expect(resumed).toMatchObject({ sessionId, status: 'running' });
  if (h.toolset === 'compact') expect(resumed).toMatchObject({ resumeToken: tokenOf(sessionId) });
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'seven' });
  const requests = h.model.requestsFor(recall);
  expect(requests[0]?.userTexts).toEqual(['remember seven', 'what was it']);
  expect(requests[1]?.toolResults[0]?.text).toBe(cwd);
  expect(await turnsOf(h, sessionId)).toBe(turns + 2);
}

verifies(['disk.unknown', 'disk.no-directory'], async (variant) => {
  const h = await variant.share({ env: DISK_RESUME });
  for (const sessionId of [randomUUID(), 'nothing', '../../etc/passwd', '*']) {
    await h.fails(...h.dialect.resume(sessionId, 'hello'), 'SESSION_NOT_FOUND');
  }
  const line = { type: 'user', message: { role: 'user', content: 'hello' }, uuid: randomUUID() };
  const { sessionId } = await writeTranscript(h.configDir, (id) => `${JSON.stringify({ ...line, sessionId: id })}\n`);
  const message = await h.fails(...h.dialect.resume(sessionId, 'go on'), 'INVALID_ARGUMENT');
  expect(message).toContain('start a new session there');
});

verifies('disk.token', async (variant) => {
  const h = await variant.share({ env: DISK_RESUME });
  const sessionId = randomUUID();
  const prompt = 'what was it';
  const token = tokenOf(sessionId);
  await h.fails('claude_code_reply', { sessionId, prompt }, 'PERMISSION_DENIED');
  for (const resumeToken of ['x', token.slice(1), `${token}0`, token.toUpperCase(), 'é'.repeat(32)]) {
    await h.fails('claude_code_reply', { sessionId, prompt, resumeToken }, 'PERMISSION_DENIED');
  }
  await h.fails('claude_code_reply', { sessionId: 'another', prompt, resumeToken: token }, 'PERMISSION_DENIED');
  await h.fails('claude_code_reply', { sessionId, prompt, resumeToken: token }, 'SESSION_NOT_FOUND');
});
