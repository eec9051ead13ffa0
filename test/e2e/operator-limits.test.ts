/** The operator's limits on programs, turns, money and details. For others, see `life`, `requests` and `check`. */

import { expect, it } from 'vitest';
import { startHarness } from '../harness/harness.ts';
import { promptLine, writeTranscript } from '../transcripts/written-transcript.ts';
import { standIn, standInEnv } from './stand-in.ts';

it('an executable that the caller names takes precedence over EXECUTABLE', async () => {
  const h = await startHarness({ env: { CLAUDE_CODE_MCP_EXECUTABLE: '/no/such/claude' } });
  const named = await h.ok('claude_code', { prompt: 'hello', waitMs: 40_000, ...standIn('ordinary') });
  expect(named).toMatchObject({ status: 'idle', result: { result: 'answer to: hello' } });
  const message = await h.fails('claude_code', { prompt: 'hello' }, 'INTERNAL');
  expect(message).toContain('CLAUDE_CODE_MCP_EXECUTABLE');
});

it('EXECUTABLE is the program that runs; MAX_TURNS and MAX_BUDGET_USD are both maximum and default', async () => {
  const h = await startHarness({
    args: ['--max-turns=4'],
    env: { ...standInEnv('ordinary'), CLAUDE_CODE_MCP_MAX_BUDGET_USD: '1.5' },
  });
  for (const [options, named] of [
    [{ maxTurns: 5 }, 'maxTurns 5'],
    [{ maxBudgetUsd: 1.6 }, 'maxBudgetUsd 1.6'],
  ] as const) {
    expect(await h.fails('claude_code', { prompt: 'much', ...options }, 'PERMISSION_DENIED')).toContain(named);
  }
  for (const [options, turns, budget] of [
    [{}, '4', '1.5'],
    [{ maxTurns: 2, maxBudgetUsd: 0.25 }, '2', '0.25'],
  ] as const) {
    const { sessionId, result } = await h.ok('claude_code', { prompt: 'a small task', waitMs: 40_000, ...options });
    expect(result).toMatchObject({ result: 'answer to: a small task' });
    const command = (await h.processes()).find((one) => one.command.includes(sessionId))?.command;
    expect(command).toContain(`--max-turns=${turns}`);
    expect(command).toContain(`--max-budget-usd=${budget}`);
  }
});

it('with ALLOW_SENSITIVE_SESSION_DETAILS off, disk lists show neither directories nor prompts', async () => {
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
