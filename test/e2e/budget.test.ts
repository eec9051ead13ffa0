/** A budget is the session's, however many processes it takes. */

import { expect, test } from 'vitest';
import { text, type MessageReply } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import { recordingClaude } from '../harness/recording-claude.ts';

const priced = (words: string, outputTokens: number): MessageReply =>
  text(words).usage({ input_tokens: 1000, output_tokens: outputTokens });

test('a process that resumes and a fork get what is left, and nothing starts when it is spent', async () => {
  const h = await startHarness({
    env: {
      CLAUDE_CODE_PATH: './recording-claude.mjs',
      CLAUDE_CODE_MCP_MAX_BUDGET_USD: '1',
      CLAUDE_CODE_MCP_PARK_AFTER_MS: '1',
      CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '50',
    },
  });
  const claude = await recordingClaude(h.project);
  const budgets = (): number[] =>
    claude.starts().map(({ argv }) => {
      const given = argv.find((argument) => argument.startsWith('--max-budget-usd='));
      return Number(given?.slice('--max-budget-usd='.length));
    });
  const parked = async (): Promise<void> => {
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
  await parked();
  const fork = await h.ok('claude_code_reply', { sessionId, prompt: 'in a copy', forkSession: true });
  await h.waitUntilRest(fork.sessionId);
  await h.ok('claude_code_reply', { sessionId, prompt: 'second' });
  await h.waitUntilRest(sessionId);
  expect(budgets()).toEqual([1, expect.closeTo(1 - afterFirst, 5), expect.closeTo(1 - afterFirst, 5)]);
  await parked();
  const message = await h.fails('claude_code_reply', { sessionId, prompt: 'third' }, 'PERMISSION_DENIED');
  expect(message).toContain('budget of $1');
  await h.fails('claude_code_reply', { sessionId, prompt: 'third', forkSession: true }, 'PERMISSION_DENIED');
});
