/** A budget belongs to the session, however many processes it takes. */

import { expect, test } from 'vitest';
import { gate, text, tool, type MessageReply } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { recordingClaude, type RecordingClaude } from '../harness/recording-claude.ts';
import { DISK_RESUME } from '../harness/toolsets.ts';
import { killClaude } from './claude-process.ts';
import { auditedEntries } from './forms-support.ts';

const priced = (words: string, outputTokens: number): MessageReply =>
  text(words).usage({ input_tokens: 1000, output_tokens: outputTokens });

function budgetsOf(claude: RecordingClaude): number[] {
  return claude.starts().map(({ argv }) => {
    const given = argv.find((argument) => argument.startsWith('--max-budget-usd='));
    return Number(given?.slice('--max-budget-usd='.length));
  });
}

test('a resumed process and a fork get the remaining budget, and nothing starts once it is spent', async () => {
  const h = await startHarness({
    env: {
      ...DISK_RESUME,
      CLAUDE_CODE_PATH: './recording-claude.mjs',
      CLAUDE_CODE_MCP_MAX_BUDGET_USD: '1',
      CLAUDE_CODE_MCP_PARK_AFTER_MS: '1',
      CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '50',
    },
  });
  const claude = await recordingClaude(h.project);
  const budgets = (): number[] => budgetsOf(claude);
  const waitUntilParked = async (): Promise<void> => {
    await eventually(async () => !(await h.processes()).some(({ command }) => command.includes('stream-json')), {
      what: 'the process is parked',
    });
  };
  h.model.on('first').reply(priced('one', 1_000));
  h.model.on('in a copy').reply(priced('copied', 1_000));
  h.model.on('second').reply(priced('two', 1_000_000));
  h.model.on('third').reply(priced('three', 1_000));
  const { sessionId } = await h.ok('claude_code', { prompt: 'first' });
  await h.waitUntilRest(sessionId);
  const afterFirst = h.model.chargedUsd();
  expect(afterFirst).toBeGreaterThan(0);
  await waitUntilParked();
  const fork = await h.ok('claude_code_reply', { sessionId, prompt: 'in a copy', forkSession: true });
  await h.waitUntilRest(fork.sessionId);
  await h.ok('claude_code_reply', { sessionId, prompt: 'second' });
  await h.waitUntilRest(sessionId);
  expect(budgets()).toEqual([1, expect.closeTo(1 - afterFirst, 5), expect.closeTo(1 - afterFirst, 5)]);
  await waitUntilParked();
  const message = await h.fails('claude_code_reply', { sessionId, prompt: 'third' }, 'PERMISSION_DENIED');
  expect(message).toContain('budget of $1');
  expect((await h.waitUntilRest(sessionId)).result.errorSubtype).toBe('error_max_budget_usd');
  await h.fails('claude_code_reply', { sessionId, prompt: 'third', forkSession: true }, 'PERMISSION_DENIED');

  // What a fork took over was paid by its parent, and is known.
  await h.restartServer();
  h.model.on('from disk').reply(priced('three', 1_000));
  await h.resume(fork.sessionId, 'from disk');
  expect((await h.waitUntilRest(fork.sessionId)).result).not.toHaveProperty('costUnknown');
});

const held = (): ReturnType<typeof gate> => gate(text('never'));
const command = tool('Bash', { command: 'echo on' }).usage({ input_tokens: 1000, output_tokens: 5_000 });

test('the cost of a killed turn is reported as unknown, also after a resume from disk', async () => {
  const h = await startHarness({ env: DISK_RESUME });
  const waiting = held();
  h.model.on('first').reply(priced('one', 1_000));
  h.model.on('killed').reply(command, waiting);
  h.model.on('after the crash').reply(priced('two', 1_000));
  h.model.on('from disk').reply(priced('three', 1_000));
  const { sessionId } = await h.ok('claude_code', { prompt: 'first', waitMs: 40_000 });
  expect((await session(h, sessionId)).costUnknown).toBeUndefined();

  await h.ok('claude_code_reply', { sessionId, prompt: 'killed' });
  await waiting.arrived;
  await killClaude(h, sessionId);
  const crashed = await h.waitUntilRest(sessionId);
  expect(crashed).toMatchObject({ status: 'error', result: { costUnknown: true } });
  const [end] = await auditedEntries(h, ({ kind, details }) => kind === 'end' && details?.costUnknown);
  expect(end.what).toBe('error');

  const resumed = await h.ok('claude_code_reply', { sessionId, prompt: 'after the crash', waitMs: 40_000 });
  expect(resumed).toMatchObject({ status: 'idle', result: { costUnknown: true } });
  expect(await session(h, sessionId)).toMatchObject({ costUnknown: true });

  // Claude Code writes the cost when it exits, so a killed process never does.
  await killClaude(h, sessionId);
  await h.restartServer();
  await h.resume(sessionId, 'from disk');
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { costUnknown: true } });
});

test('the cost of a process that was killed between two turns is not forgotten when the session is resumed from disk', async () => {
  const h = await startHarness({ env: DISK_RESUME });
  for (const prompt of ['first', 'second', 'in a copy', 'third', 'and on'])
    h.model.on(prompt).reply(priced('ok', 1_000));
  const { sessionId } = await h.ok('claude_code', { prompt: 'first', waitMs: 40_000 });
  await killClaude(h, sessionId);
  const second = await h.ok('claude_code_reply', { sessionId, prompt: 'second', waitMs: 40_000 });
  expect(second.result).not.toHaveProperty('costUnknown');
  await h.restartServer();
  // The second process wrote down its own cost only.
  await h.resume(sessionId, 'third');
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { costUnknown: true } });
});

test('a session with a budget does not go on once it is unknown what is left of it', async () => {
  const h = await startHarness({ env: { CLAUDE_CODE_MCP_MAX_BUDGET_USD: '1' } });
  const waiting = held();
  h.model.on('killed').reply(command, waiting);
  const { sessionId } = await h.ok('claude_code', { prompt: 'killed' });
  await waiting.arrived;
  await killClaude(h, sessionId);
  const { result: crashed } = await h.waitUntilRest(sessionId);
  expect(crashed).toMatchObject({ errorSubtype: 'process_exited', work: { commandsRun: 1 } });
  for (const forkSession of [false, true]) {
    const reply = { sessionId, prompt: 'after the crash', forkSession };
    const message = await h.fails('claude_code_reply', reply, 'PERMISSION_DENIED');
    expect(message).toContain('budget of $1');
    expect(message).toContain('Start a new session');
  }
  // A refused reply is no turn: what the last one did can still be read.
  expect((await h.waitUntilRest(sessionId)).result).toEqual(crashed);
});

test('what a turn spent before its hub was killed counts against the budget', async () => {
  const h = await startHarness({ hub: { args: ['--max-budget-usd', '0.15'] } });
  const waiting = held();
  h.model.on('killed').reply(command, waiting);
  h.model.on('once more').reply(priced('two', 10));
  const { sessionId } = await h.ok('claude_code', { prompt: 'killed' });
  await waiting.arrived;
  await h.killHubAndKeeper();
  await h.startHub();
  const stopped = await h.ok('claude_code_check', { action: 'wait', sessionId });
  expect(stopped).toMatchObject({ status: 'error', result: { costUnknown: true } });
  // Claude Code wrote down what it had spent when the watchdog ended it.
  const more = await h.ok('claude_code_reply', { sessionId, prompt: 'once more', waitMs: 40_000 });
  expect(more).toMatchObject({ status: 'idle', result: { totalCostUsd: expect.closeTo(0.0042, 5) } });
  expect(more.result.sessionTotalCostUsd).toBeCloseTo(h.model.chargedUsd(), 5);
  expect(more.result).not.toHaveProperty('costUnknown');
});

async function session(h: Harness, sessionId: string): Promise<Json> {
  return (await h.ok('claude_code_session', { action: 'get', sessionId })).sessions[0];
}
