/** What the operator bounds: programs, turns, money, what is told. Time, number and memory: `life`, `requests`, `check`. */

import { describe, expect, it } from 'vitest';
import { text } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness, ServerStart } from '../harness/open-harness.ts';
import { recordingClaude } from '../harness/recording-claude.ts';
import { promptLine, writeTranscript } from '../transcripts/written-transcript.ts';

describe('EXECUTABLE', () => {
  it('gives way to the one that the caller names', async () => {
    const h = await startHarness({ env: { CLAUDE_CODE_MCP_EXECUTABLE: '/no/such/claude' } });
    const claude = await recordingClaude(h.project);
    h.model.on('hello').reply(text('hello'));
    await h.ok('claude_code', { prompt: 'hello', pathToClaudeCodeExecutable: claude.path, waitMs: 40_000 });
    expect(claude.starts()).toHaveLength(1);
    const message = await h.fails('claude_code', { prompt: 'hello' }, 'INTERNAL');
    expect(message).toContain('CLAUDE_CODE_MCP_EXECUTABLE');
  });
});

it('EXECUTABLE names the program to run, MAX_TURNS and MAX_BUDGET_USD are the ceiling and the default', async () => {
  const { claude, h } = await withRecorder({
    args: ['--max-turns=4', '--executable=./recording-claude.mjs'],
    env: { CLAUDE_CODE_MCP_MAX_BUDGET_USD: '1.5' },
  });
  for (const [options, named] of [
    [{ maxTurns: 5 }, 'maxTurns 5'],
    [{ maxBudgetUsd: 1.6 }, 'maxBudgetUsd 1.6'],
  ] as const) {
    expect(await h.fails('claude_code', { prompt: 'much', ...options }, 'PERMISSION_DENIED')).toContain(named);
  }
  await run(h, {});
  await run(h, { maxTurns: 2, maxBudgetUsd: 0.25 });
  expect(argumentsOf(claude, '--max-turns')).toEqual(['--max-turns=4', '--max-turns=2']);
  expect(argumentsOf(claude, '--max-budget-usd')).toEqual(['--max-budget-usd=1.5', '--max-budget-usd=0.25']);
});

it('ALLOW_SENSITIVE_SESSION_DETAILS off: lists of the disk tell neither directory nor prompt', async () => {
  const off = { CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS: '0' };
  const h = await startHarness({ toolset: 'compact', env: off });
  await writeTranscript(h.configDir, (id) => promptLine(id, 'a private matter', h.project));
  const args = { action: 'list', includeSensitive: true };
  expect(await h.fails('claude_code_session', args, 'PERMISSION_DENIED')).toContain('includeSensitive');
  const lists = [await h.ok('claude_code_session', { action: 'list', scope: 'disk' })];
  await h.restartServer({ env: { CLAUDE_CODE_MCP_TOOLSET: 'explicit' } });
  lists.push(await h.ok('claude_list_sessions', {}));
  for (const { sessions } of lists) {
    expect(sessions).toHaveLength(1);
    expect(JSON.stringify(sessions)).not.toContain('a private matter');
    expect(JSON.stringify(sessions)).not.toContain(h.project);
  }
});

async function withRecorder(
  start: ServerStart,
): Promise<{ h: Harness; claude: Awaited<ReturnType<typeof recordingClaude>> }> {
  const h = await startHarness(start);
  return { h, claude: await recordingClaude(h.project) };
}

async function run(h: Harness, options: Record<string, unknown>): Promise<string> {
  h.model.on('a small task').reply(text('done'));
  const { sessionId, status } = await h.ok('claude_code', { prompt: 'a small task', waitMs: 40_000, ...options });
  expect(status).toBe('idle');
  return sessionId;
}

function argumentsOf(claude: Awaited<ReturnType<typeof recordingClaude>>, name: string): (string | undefined)[] {
  return claude.starts().map(({ argv }) => argv.find((argument) => argument.startsWith(`${name}=`)));
}
