/** Clients of the hub that run inside its sessions, and say something else about where they run. */

import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { builtServer } from '../harness/built-server.ts';
import { shareHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { ServerProcess } from '../harness/server-process.ts';
import { AttachedClient } from './attached-client.ts';

const shared = shareHarness({
  hub: {},
  settings: { enableAllProjectMcpServers: true, permissions: { allow: ['mcp__other', 'mcp__unknown', 'mcp__alone'] } },
});

/** Wider than the rules of any session here. */
const WIDE = {
  CLAUDE_CODE_MCP_APPROVALS: 'auto',
  CLAUDE_CODE_MCP_ALLOWED_DIRS: '/',
  CLAUDE_CODE_MCP_MAX_DEPTH: '50',
  CLAUDE_CODE_MCP_DEPTH: '0/50',
};

const server = (env: Record<string, string>): object => ({
  ...{ command: process.execPath, args: [builtServer()], alwaysLoad: true, env },
});

/** A session of the user's with a nested session of its own. */
async function sessionWithNested(h: Harness): Promise<{ sessionId: string; nestedId: string }> {
  h.model.on('nested task').reply(text('done inside'));
  const script = h.model
    .on('other task')
    .reply(tool('mcp__inner__claude_code', { prompt: 'nested task', waitMs: 30_000 }), text('ok'));
  const { sessionId } = await h.ok('claude_code', {
    prompt: 'other task',
    allowedTools: ['mcp__inner'],
    mcpServers: { inner: server({}) },
    strictMcpConfig: true,
    sessionInitTimeoutMs: 30_000,
  });
  await h.waitUntilRest(sessionId, { within: 60_000 });
  const [answer] = h.model.requestsFor(script).flatMap(({ toolResults }) => toolResults.map((result) => result.text));
  return { sessionId, nestedId: (JSON.parse(answer!) as { sessionId: string }).sessionId };
}

it.runIf(process.platform === 'linux')(
  'a project’s server that names another session, or an unknown one, has the rules and the principal of its own',
  { timeout: 120_000 },
  async () => {
    const h = shared();
    const { sessionId: otherId, nestedId } = await sessionWithNested(h);
    writeFileSync(
      join(h.project, '.mcp.json'),
      JSON.stringify({
        mcpServers: {
          other: server({ ...WIDE, CLAUDE_CODE_MCP_PARENT: otherId, CLAUDE_CODE_MCP_HUB: 'require' }),
          unknown: server({ ...WIDE, CLAUDE_CODE_MCP_PARENT: randomUUID() }),
          alone: server({ ...WIDE, CLAUDE_CODE_MCP_PARENT: '', CLAUDE_CODE_MCP_HUB: 'off' }),
        },
      }),
    );
    const careful = await AttachedClient.open(h, {
      env: { CLAUDE_CODE_MCP_APPROVALS: 'human', CLAUDE_CODE_MCP_ALLOWED_DIRS: h.project },
    });
    const elsewhere = join(h.home, 'elsewhere');
    mkdirSync(elsewhere);
    const servers = ['other', 'unknown', 'alone'];
    const script = h.model
      .on('outer task')
      .reply(
        ...servers.flatMap((name) => [
          tool(`mcp__${name}__claude_code`, { prompt: 'never', allowedTools: ['Bash'] }),
          tool(`mcp__${name}__claude_code`, { prompt: 'never', cwd: elsewhere }),
        ]),
        tool('mcp__other__claude_code_session', { action: 'list' }),
        tool('mcp__other__claude_code_check', { action: 'poll', sessionId: nestedId }),
        text('tried everything'),
      );
    const { sessionId } = await careful.ok('claude_code', { prompt: 'outer task', sessionInitTimeoutMs: 30_000 });
    expect(await careful.waitUntilRest(sessionId, { within: 90_000 })).toMatchObject({
      result: { result: 'tried everything' },
    });
    const answers = h.model.requestsFor(script).flatMap(({ toolResults }) => toolResults.map((result) => result.text));
    for (const [index, name] of servers.entries()) {
      expect(answers[2 * index], name).toMatch(/PERMISSION_DENIED.*only a person may grant/);
      expect(answers[2 * index + 1], name).toMatch(/PERMISSION_DENIED.*outside the directories/);
    }
    const [listed, polled] = answers.slice(2 * servers.length);
    expect(JSON.parse(listed!)).toMatchObject({ sessions: [] });
    expect(polled).toContain('SESSION_NOT_FOUND');
    expect(readFileSync(join(h.stateDir, 'claude-code-mcp', 'audit.jsonl'), 'utf8')).toMatch(
      new RegExp(`"attach".*"refused".*"nested:${sessionId}"|"nested:${sessionId}".*"attach".*"refused"`),
    );
  },
);

it.runIf(process.platform === 'linux')(
  'a client that names a session without a process above it has the rules of that session and sees only its own sessions; one with an unknown mark is refused',
  async () => {
    const h = shared();
    const { sessions } = (await h.ok('claude_code_session', { action: 'list' })) as {
      sessions: { sessionId: string }[];
    };
    const careful = await AttachedClient.open(h, { env: { CLAUDE_CODE_MCP_MAX_TURNS: '3' } });
    h.model.on('three turns').reply(text('ok'));
    const { sessionId } = await careful.ok('claude_code', { prompt: 'three turns', waitMs: 30_000 });
    const detached = await AttachedClient.open(h, {
      env: { ...WIDE, CLAUDE_CODE_MCP_PARENT: sessionId, CLAUDE_CODE_MCP_HUB: 'require' },
    });
    expect(await detached.ok('claude_code_session', { action: 'list' })).toMatchObject({ sessions: [] });
    for (const { sessionId: id } of [...sessions, { sessionId }])
      await detached.fails('claude_code_check', { action: 'poll', sessionId: id }, 'SESSION_NOT_FOUND');
    const overLimit = await detached.fails('claude_code', { prompt: 'never', maxTurns: 4 }, 'PERMISSION_DENIED');
    expect(overLimit).toContain('limit of 3');

    for (const [env, why] of [
      [{ CLAUDE_CODE_MCP_PARENT: randomUUID() }, /claims to run inside session .*, which this hub does not know/],
      [{ CLAUDE_CODE_MCP_DEPTH: '1/2' }, /runs inside a session that this hub does not know/],
    ] as const) {
      const refused = await ServerProcess.start({
        args: [builtServer(), '--hub', 'require'],
        cwd: h.project,
        env: h.environment(env),
      });
      await refused.drained;
      expect(refused.stderr()).toMatch(why);
    }
  },
);
