/** Which rules, environment and sessions apply to a client of the hub. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { builtServer } from '../harness/built-server.ts';
import { shareHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { AttachedClient } from './attached-client.ts';

const bash = (command: string): ReturnType<typeof tool> => tool('Bash', { command, description: 'a command' });

// A hub that allows more than its clients do.
const shared = shareHarness({ hub: { env: { CLAUDE_CODE_MCP_ALLOW_BYPASS: '1', CLAUDE_CODE_MCP_MAX_TURNS: '7' } } });

it('a connection provides its directory and environment, and narrows the rules for its own calls on any session', async () => {
  const h = shared();
  // Where the hub listens concerns the hub alone.
  const clientEnv = { BROUGHT_ALONG: 'by the client', MAX_SESSIONS: '3', CLAUDE_CODE_MCP_LISTEN: '127.0.0.1:1' };
  const owner = await AttachedClient.open(h, { env: clientEnv });
  h.model.on('go').reply(bash('printf "%s" "$BROUGHT_ALONG" > seen.txt'), text('done'));
  const started = await owner.ok('claude_code', { prompt: 'go' });
  expect(started.warnings).toEqual([
    'Ignored, because the hub decides it for all its clients: CLAUDE_CODE_MCP_MAX_SESSIONS.',
  ]);
  const { sessionId } = started;
  const { requestId } = await h.waitForRequest(sessionId);
  const answer = { action: 'respond_permission', sessionId, requestId, decision: 'allow' };
  // The hub allows bypass, this client does not.
  await h.fails('claude_code', { prompt: 'go', permissionMode: 'bypassPermissions' }, 'PERMISSION_DENIED');

  const human = await AttachedClient.open(h, { env: { CLAUDE_CODE_MCP_APPROVALS: 'human' } });
  expect(await human.ok('claude_code_check', { action: 'poll', sessionId })).toMatchObject({
    actions: [{ requestId }],
  });
  await human.fails('claude_code_check', answer, 'PERMISSION_DENIED');
  const elsewhere = await AttachedClient.open(h, { env: { CLAUDE_CODE_MCP_ALLOWED_DIRS: h.home } });
  await elsewhere.fails('claude_code', { prompt: 'go', cwd: h.project }, 'PERMISSION_DENIED');

  await h.ok('claude_code_check', answer);
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle' });
  await elsewhere.fails('claude_code_reply', { sessionId, prompt: 'go' }, 'PERMISSION_DENIED');
  expect(readFileSync(join(h.project, 'seen.txt'), 'utf8')).toBe('by the client');
  const stored = readFileSync(join(h.stateDir, 'claude-code-mcp', 'hub.db'), 'latin1');
  expect(stored).not.toContain('by the client');
});

/** The tool results of a session, in order. */
function toolAnswers(h: Harness, script: Parameters<Harness['model']['requestsFor']>[0]): string[] {
  return h.model.requestsFor(script).flatMap(({ toolResults }) => toolResults.map((result) => result.text));
}

it('an agent in a hub session sees and answers only sessions it started, and cannot exceed the limits, sign in, create a token or stop the hub', async () => {
  const h = shared();
  const command = `${process.execPath} ${builtServer()}`;
  h.model.on('other task').reply(bash('touch never'), text('the other one'));
  const { sessionId: otherId, actions } = await h.ok('claude_code', { prompt: 'other task', waitMs: 45_000 });
  const answer = { action: 'respond_permission', sessionId: otherId, requestId: actions[0].requestId };
  h.model.on('inner task').reply(text('done inside'));
  const outer = h.model
    .on('outer task')
    .reply(
      tool('mcp__inner__claude_code', { prompt: 'inner task', waitMs: 30_000 }),
      tool('mcp__inner__claude_code', { prompt: 'inner task', maxTurns: 8 }),
      tool('mcp__inner__claude_code_session', { action: 'list' }),
      tool('mcp__inner__claude_code_check', { action: 'poll', sessionId: otherId }),
      tool('mcp__inner__claude_code_check', { ...answer, decision: 'allow' }),
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

  const [started, overLimit, listed, polled, answered, commands] = toolAnswers(h, outer);
  expect(started).toContain('done inside');
  expect(overLimit).toMatch(/PERMISSION_DENIED.*limit of 7/);
  const inner = (JSON.parse(listed!) as { sessions: { sessionId: string }[] }).sessions.map((one) => one.sessionId);
  expect(inner).toHaveLength(1);
  expect(inner).not.toContain(sessionId);
  for (const refused of [polled, answered]) expect(refused).toContain('SESSION_NOT_FOUND');
  expect(commands).toMatch(/hub open does not run inside a session[^]*hub stop does not[^]*token does not/);
  // The inner session belongs to the agent: the user's own clients do not see it.
  const { sessions } = (await h.ok('claude_code_session', { action: 'list' })) as {
    sessions: { sessionId: string }[];
  };
  const own = sessions.map((one) => one.sessionId);
  expect(own).toEqual(expect.arrayContaining([sessionId, otherId]));
  expect(own).not.toContain(inner[0]);
});
