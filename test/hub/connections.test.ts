/** Whose rules, environment and sessions count for a client of the hub. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { builtServer } from '../harness/built-server.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';

const bash = (command: string): ReturnType<typeof tool> => tool('Bash', { command, description: 'a command' });

describe('a connection', () => {
  it('brings the directory and the environment of its sessions, and is told what of its settings is ignored', async () => {
    const h = await startHarness({ hub: {}, env: { BROUGHT_ALONG: 'by the client', MAX_SESSIONS: '3' } });
    h.model.on('go').reply(bash('printf "%s" "$BROUGHT_ALONG" > seen.txt'), text('done'));
    const started = await h.ok('claude_code', { prompt: 'go', allowedTools: ['Bash'], waitMs: 45_000 });
    expect(started).toMatchObject({
      status: 'idle',
      warnings: ['Ignored, because the hub decides it for all its clients: CLAUDE_CODE_MCP_MAX_SESSIONS.'],
    });
    expect(readFileSync(join(h.project, 'seen.txt'), 'utf8')).toBe('by the client');
    const stored = readFileSync(join(h.stateDir, 'claude-code-mcp', 'hub.db'), 'latin1');
    expect(stored).not.toContain('by the client');
  });

  it('narrows the rules of the hub for itself, also on a session that another one started', async () => {
    const h = await startHarness({ hub: { env: { CLAUDE_CODE_MCP_ALLOW_BYPASS: '1' } } });
    h.model.on('go').reply(bash('touch made.txt'), text('done'));
    const { sessionId } = await h.ok('claude_code', { prompt: 'go' });
    await h.waitForRequest(sessionId);
    // Bypass is allowed by the hub, not by this client.
    await h.fails('claude_code', { prompt: 'go', permissionMode: 'bypassPermissions' }, 'PERMISSION_DENIED');

    await h.startServer({ env: { CLAUDE_CODE_MCP_APPROVALS: 'human' } });
    const [request] = (await h.ok('claude_code_check', { action: 'poll', sessionId })).actions as {
      requestId: string;
    }[];
    const answer = { action: 'respond_permission', sessionId, requestId: request!.requestId, decision: 'allow' };
    await h.fails('claude_code_check', answer, 'PERMISSION_DENIED');

    await h.startServer({ env: { CLAUDE_CODE_MCP_ALLOWED_DIRS: h.home } });
    await h.fails('claude_code', { prompt: 'go', cwd: h.project }, 'PERMISSION_DENIED');

    await h.startServer();
    await h.ok('claude_code_check', answer);
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle' });
    await h.startServer({ env: { CLAUDE_CODE_MCP_ALLOWED_DIRS: h.home } });
    await h.fails('claude_code_reply', { sessionId, prompt: 'go' }, 'PERMISSION_DENIED');
  });
});

/** What the tools of a session answered, in order. */
function toolAnswers(h: Harness, script: Parameters<Harness['model']['requestsFor']>[0]): string[] {
  return h.model.requestsFor(script).flatMap(({ toolResults }) => toolResults.map((result) => result.text));
}

describe('an agent in a session of the hub', () => {
  it('sees only what it starts itself, and cannot answer for, sign in as or stop anybody', async () => {
    const h = await startHarness({ hub: { env: { CLAUDE_CODE_MCP_MAX_TURNS: '7' } } });
    const command = `${process.execPath} ${builtServer()}`;
    const other = h.model.on('other task').reply(text('the other one'));
    expect(other).toBeDefined();
    const { sessionId: otherId } = await h.ok('claude_code', { prompt: 'other task', waitMs: 45_000 });
    h.model.on('inner task').reply(text('done inside'));
    const outer = h.model
      .on('outer task')
      .reply(
        tool('mcp__inner__claude_code', { prompt: 'inner task', waitMs: 30_000 }),
        tool('mcp__inner__claude_code', { prompt: 'inner task', maxTurns: 8 }),
        tool('mcp__inner__claude_code_session', { action: 'list' }),
        tool('mcp__inner__claude_code_check', { action: 'poll', sessionId: otherId }),
        bash(`${command} hub open --print; ${command} hub stop; ${command} token create me --role admin; true`),
        text('tried everything'),
      );
    const { sessionId } = await h.ok('claude_code', {
      prompt: 'outer task',
      allowedTools: ['mcp__inner', 'Bash'],
      mcpServers: { inner: { command: process.execPath, args: [builtServer()], alwaysLoad: true } },
      strictMcpConfig: true,
      sessionInitTimeoutMs: 30_000,
    });
    expect(await h.waitUntilRest(sessionId, { within: 80_000 })).toMatchObject({
      result: { result: 'tried everything' },
    });

    const [started, tooMuch, listed, looked, commands] = toolAnswers(h, outer);
    expect(started).toContain('done inside');
    expect(tooMuch).toMatch(/PERMISSION_DENIED.*limit of 7/);
    const inner = (JSON.parse(listed!) as { sessions: { sessionId: string }[] }).sessions.map((one) => one.sessionId);
    expect(inner).toHaveLength(1);
    expect(inner).not.toContain(sessionId);
    expect(looked).toContain('SESSION_NOT_FOUND');
    expect(commands).toMatch(/hub open does not run inside a session[^]*hub stop does not[^]*token does not/);
    // It is there for its agent only: the user's own clients do not see it.
    const { sessions } = (await h.ok('claude_code_session', { action: 'list' })) as {
      sessions: { sessionId: string }[];
    };
    expect(sessions.map((one) => one.sessionId).sort()).toEqual([sessionId, otherId].sort());
  });
});
