/** Nested sessions: how deep they may go, and what they see of the server's environment. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import type { Script } from '../../src/scripted-model/scripted-model.ts';
import { builtServer } from '../harness/built-server.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { recordingClaude } from '../harness/recording-claude.ts';

/** These tests run a server and a Claude Code inside another one. */
const TIMEOUT = 90_000;

/** This server, as an MCP server of the session. `alwaysLoad` holds the first turn until it is connected. */
function innerServer(...args: string[]): Record<string, unknown> {
  return { command: process.execPath, args: [builtServer(), ...args], alwaysLoad: true };
}

/** Starts a session that starts another one through each of these servers. Returns what those starts answered. */
async function startNested(
  h: Harness,
  servers: readonly string[],
  options: Record<string, unknown>,
): Promise<string[]> {
  const deeper = servers.map((name) => tool(`mcp__${name}__claude_code`, { prompt: 'the inner task', waitMs: 30_000 }));
  const outer: Script = h.model.on('the outer task').reply(...deeper, text('went deeper'));
  const { sessionId } = await h.ok('claude_code', {
    prompt: 'the outer task',
    allowedTools: servers.map((name) => `mcp__${name}`),
    sessionInitTimeoutMs: 30_000,
    ...options,
  });
  await h.waitUntilRest(sessionId, { within: 60_000 });
  const asked = h.model.requestsFor(outer).slice(1);
  return servers.map((_, index) => asked[index]?.toolResults.at(-1)?.text ?? 'nothing');
}

describe('MAX_DEPTH', () => {
  it('lets a session start another by default', { timeout: TIMEOUT }, async () => {
    const h = await startHarness();
    h.model.on('the inner task').reply(text('done inside'));
    const options = { mcpServers: { inner: innerServer() }, strictMcpConfig: true };
    expect(await startNested(h, ['inner'], options)).toEqual([expect.stringContaining('done inside')]);
  });

  const isLinux = process.platform === 'linux';

  it(
    'of 1 refuses nested sessions, names the setting, and cannot be raised by an inner server; on Linux, nor by one that the project configures with its own depth',
    { timeout: TIMEOUT },
    async () => {
      const h = await startHarness({ args: ['--max-depth', '1'] });
      const env = { CLAUDE_CODE_MCP_DEPTH: '0/50', CLAUDE_CODE_MCP_MAX_DEPTH: '50' };
      const mcpServers = { configured: { ...innerServer(), env } };
      await writeFile(join(h.project, '.mcp.json'), JSON.stringify({ mcpServers }));
      await writeFile(join(h.configDir, 'settings.json'), JSON.stringify({ enableAllProjectMcpServers: true }));
      const options = { mcpServers: { inner: innerServer('--max-depth', '50') } };
      const answers = await startNested(h, ['inner', ...(isLinux ? ['configured'] : [])], options);
      expect(answers[0]).toContain('CLAUDE_CODE_MCP_MAX_DEPTH');
      for (const answer of answers) expect(answer).toContain('PERMISSION_DENIED');
    },
  );

  it('of 0 refuses every session', async () => {
    const h = await startHarness({ args: ['--max-depth', '0'] });
    const message = await h.fails('claude_code', { prompt: 'never' }, 'PERMISSION_DENIED');
    expect(message).toContain('CLAUDE_CODE_MCP_MAX_DEPTH');
  });
});

describe('the environment of a session', () => {
  const SECRET = 'the-secret-of-the-operator';
  /** As if Claude Code had started the server. */
  const OUTER = {
    CLAUDECODE: '1',
    CLAUDE_CODE_SESSION_ID: '11111111-1111-4111-8111-111111111111',
    CLAUDE_CODE_SSE_PORT: '4711',
    CLAUDE_CODE_CHILD_SESSION: '1',
  };

  it('has neither the server’s secrets nor the marks of an outer Claude Code, but has its rules', async () => {
    const h = await startHarness({
      args: ['--resume-secret', `${SECRET}-2`, '--allowed-dirs', '.', '--max-turns', '9', '--allow-bypass=off'],
      env: { ...OUTER, CLAUDE_CODE_MCP_RESUME_SECRET: SECRET, CLAUDE_CODE_PATH: './recording-claude.mjs', KEPT: 'yes' },
    });
    const claude = await recordingClaude(h.project);
    const printed = h.model.on('print it').reply(tool('Bash', { command: 'env', description: 'print' }), text('ok'));
    await h.ok('claude_code', { prompt: 'print it', allowedTools: ['Bash'], waitMs: 40_000 });

    const [start] = claude.starts();
    for (const name of Object.keys(OUTER)) expect(start?.env).not.toHaveProperty(name);
    expect(start?.env).toMatchObject({
      KEPT: 'yes',
      HOME: h.home,
      CLAUDE_CODE_MCP_ALLOWED_DIRS: h.project,
      CLAUDE_CODE_MCP_MAX_TURNS: '9',
      CLAUDE_CODE_MCP_ALLOW_BYPASS: 'off',
    });
    expect(JSON.stringify(claude.starts())).not.toContain(SECRET);

    const output = h.model.requestsFor(printed).at(-1)?.toolResults[0]?.text ?? '';
    expect(output).toContain('KEPT=yes');
    expect(output).not.toContain(SECRET);
    expect(output).not.toContain(OUTER.CLAUDE_CODE_SESSION_ID);
  });
});
