/** What the operator bounds: programs, time, number, memory, money. */

import { describe, expect, it } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness, ServerStart } from '../harness/open-harness.ts';
import { recordingClaude } from '../harness/recording-claude.ts';

const touch = tool('Bash', { command: 'touch asked.txt', description: 'touch a file' });

/** One of the names of a setting; that all of them count is shown in test/config. */
function named(way: 'variable' | 'flag', name: string, value: string): [string, ServerStart][] {
  if (way === 'variable') return [['as variable', { env: { [`CLAUDE_CODE_MCP_${name}`]: value } }]];
  return [['as flag', { args: [`--${name.toLowerCase().replaceAll('_', '-')}=${value}`] }]];
}

describe('EXECUTABLE', () => {
  const NAME = 'recording-claude.mjs';

  it.each(named('flag', 'EXECUTABLE', `./${NAME}`))('%s names the program to run', async (_way, start) => {
    const h = await startHarness(start);
    const claude = await recordingClaude(h.project);
    h.model.on('hello').reply(text('hello'));
    await h.ok('claude_code', { prompt: 'hello', waitMs: 15_000 });
    expect(claude.starts()).toHaveLength(1);
  });

  it('gives way to the one that the caller names', async () => {
    const h = await startHarness({ env: { CLAUDE_CODE_MCP_EXECUTABLE: '/no/such/claude' } });
    const claude = await recordingClaude(h.project);
    h.model.on('hello').reply(text('hello'));
    await h.ok('claude_code', { prompt: 'hello', pathToClaudeCodeExecutable: claude.path, waitMs: 15_000 });
    expect(claude.starts()).toHaveLength(1);
    const message = await h.fails('claude_code', { prompt: 'hello' }, 'INTERNAL');
    expect(message).toContain('CLAUDE_CODE_MCP_EXECUTABLE');
  });
});

describe('PERMISSION_TIMEOUT_MS', () => {
  it.each(named('variable', 'PERMISSION_TIMEOUT_MS', '400'))(
    '%s ends a request that nobody answers, and Claude is told that nobody did',
    async (_way, start) => {
      const h = await startHarness(start);
      const script = h.model.on('touch it').reply(touch, text('nobody there'));
      const { sessionId } = await h.ok('claude_code', { prompt: 'touch it' });
      await h.waitUntilRest(sessionId);
      const told = h.model.requestsFor(script).at(-1)?.toolResults[0];
      expect(told).toMatchObject({ isError: true });
      expect(told?.text).toMatch(/nobody|no one|not answered|no answer/i);
    },
  );
});

describe('MAX_SESSIONS', () => {
  it.each(named('flag', 'MAX_SESSIONS', '1'))('%s bounds the sessions that work', async (_way, start) => {
    const h = await startHarness(start);
    const working = gate(text('done'));
    h.model.on('work long').reply(working);
    h.model.on('later').reply(text('done too'));
    const { sessionId } = await h.ok('claude_code', { prompt: 'work long' });
    await working.arrived;
    expect(await h.fails('claude_code', { prompt: 'too many' }, 'TOO_MANY_SESSIONS')).toContain('1');
    working.release();
    await h.waitUntilRest(sessionId);
    await h.ok('claude_code', { prompt: 'later', waitMs: 15_000 });
  });
});

describe('EVENT_BUFFER_SIZE', () => {
  it.each(named('variable', 'EVENT_BUFFER_SIZE', '3'))('%s bounds the events kept', async (_way, start) => {
    const h = await startHarness(start);
    const look = tool('Bash', { command: 'ls', description: 'look' });
    h.model.on('look around').reply(look, look, look, look, look, text('seen'));
    const { sessionId } = await h.ok('claude_code', { prompt: 'look around', allowedTools: ['Bash'] });
    await h.waitUntilRest(sessionId);
    const { events } = await h.ok('claude_code_check', {
      action: 'poll',
      sessionId,
      responseMode: 'full',
      pollOptions: { includeTerminalEvents: true, includeProgressEvents: true },
    });
    expect(events.length).toBeLessThanOrEqual(6);
    expect(events[0].id).toBeGreaterThan(1);
  });
});

describe('MAX_TURNS', () => {
  it.each(named('flag', 'MAX_TURNS', '4'))('%s is the ceiling and the default', async (_way, start) => {
    const { claude, h } = await withRecorder(start);
    expect(await h.fails('claude_code', { prompt: 'much', maxTurns: 5 }, 'PERMISSION_DENIED')).toContain('maxTurns 5');
    await run(h, {});
    await run(h, { maxTurns: 2 });
    expect(argumentsOf(claude, '--max-turns')).toEqual(['--max-turns=4', '--max-turns=2']);
  });
});

describe('MAX_BUDGET_USD', () => {
  it.each(named('variable', 'MAX_BUDGET_USD', '1.5'))('%s is the ceiling and the default', async (_way, start) => {
    const { claude, h } = await withRecorder(start);
    const message = await h.fails('claude_code', { prompt: 'much', maxBudgetUsd: 1.6 }, 'PERMISSION_DENIED');
    expect(message).toContain('maxBudgetUsd 1.6');
    await run(h, {});
    await run(h, { maxBudgetUsd: 0.25 });
    expect(argumentsOf(claude, '--max-budget-usd')).toEqual(['--max-budget-usd=1.5', '--max-budget-usd=0.25']);
  });
});

describe('ALLOW_SENSITIVE_SESSION_DETAILS', () => {
  const secretEnv = { COLOUR_OF_THE_SAFE: 'a-secret-in-env' };
  const options = {
    systemPrompt: 'a prompt of my own',
    agents: { helper: { description: 'helps', prompt: 'help' } },
    env: secretEnv,
    settings: { env: { OTHER: 'a-secret-in-settings' } },
    mcpServers: { s: { command: 'a-secret-in-mcp-servers' } },
    strictMcpConfig: false,
  };

  it('on: they are shown on request only, and secrets never', async () => {
    const h = await startHarness();
    const sessionId = await run(h, options);
    const shown = async (includeSensitive: boolean): Promise<Record<string, unknown>> =>
      (await h.ok('claude_code_session', { action: 'get', sessionId, includeSensitive })).sessions[0];
    expect(await shown(false)).toMatchObject({ permissionMode: 'default', strictMcpConfig: false });
    expect(Object.keys(await shown(false))).not.toEqual(expect.arrayContaining(['cwd']));
    for (const name of ['cwd', 'systemPrompt', 'agents']) expect(await shown(false)).not.toHaveProperty(name);
    const { systemPrompt, agents } = options;
    expect(await shown(true)).toMatchObject({ cwd: h.project, systemPrompt, agents });
    expect(JSON.stringify(await shown(true))).not.toContain('a-secret-in');
  });

  it.each(named('flag', 'ALLOW_SENSITIVE_SESSION_DETAILS', '0'))(
    'off %s: asking for them is refused',
    async (_way, start) => {
      const h = await startHarness(start);
      const args = { action: 'list', includeSensitive: true };
      expect(await h.fails('claude_code_session', args, 'PERMISSION_DENIED')).toContain('includeSensitive');
      await h.ok('claude_code_session', { action: 'list' });
    },
  );

  it.each(['compact', 'explicit'] as const)(
    'off: lists of the disk in %s tell neither directory nor prompt',
    async (toolset) => {
      const h = await startHarness({ toolset, env: { CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS: '0' } });
      h.model.on('a private matter').reply(text('done'));
      await h.finish(await h.begin('a private matter'));
      const { sessions } =
        toolset === 'compact'
          ? await h.ok('claude_code_session', { action: 'list', scope: 'disk' })
          : await h.ok('claude_list_sessions', {});
      expect(sessions).toHaveLength(1);
      expect(JSON.stringify(sessions)).not.toContain('a private matter');
      expect(JSON.stringify(sessions)).not.toContain(h.project);
    },
  );
});

async function withRecorder(
  start: ServerStart,
): Promise<{ h: Harness; claude: Awaited<ReturnType<typeof recordingClaude>> }> {
  const h = await startHarness({ ...start, env: { ...start.env, CLAUDE_CODE_PATH: './recording-claude.mjs' } });
  return { h, claude: await recordingClaude(h.project) };
}

async function run(h: Harness, options: Record<string, unknown>): Promise<string> {
  h.model.on('a small task').reply(text('done'));
  const { sessionId, status } = await h.ok('claude_code', { prompt: 'a small task', waitMs: 15_000, ...options });
  expect(status).toBe('idle');
  return sessionId;
}

function argumentsOf(claude: Awaited<ReturnType<typeof recordingClaude>>, name: string): (string | undefined)[] {
  return claude.starts().map(({ argv }) => argv.find((argument) => argument.startsWith(`${name}=`)));
}
