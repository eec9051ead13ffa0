import { expect } from 'vitest';
import { text, tool, type MessageReply } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { DISK_RESUME, type SessionView } from '../harness/toolsets.ts';
import { claudePid, killClaude } from './claude-process.ts';
import { verifies } from './requirements.ts';
import { check } from './steps.ts';

/** Different prices for different turns, so that no sum is right by chance. */
const priced = (words: string, outputTokens: number): MessageReply =>
  text(words).usage({ input_tokens: 1000, output_tokens: outputTokens });
const step = (outputTokens: number): MessageReply =>
  tool('Bash', { command: 'echo on' }).usage({ input_tokens: 2000, output_tokens: outputTokens });

/** Keeps track of what the model has charged. */
class Bill {
  readonly #h: Harness;
  #seenUsd = 0;

  constructor(h: Harness) {
    this.#h = h;
  }

  /** Since the last call. */
  takeUsd(): number {
    const charged = this.#h.model.chargedUsd();
    const since = charged - this.#seenUsd;
    this.#seenUsd = charged;
    return since;
  }
}

function expectSums(state: SessionView, turns: number, usd: number): void {
  expect(state).toMatchObject({ status: 'rest', turns });
  expect(state.costUsd).toBeCloseTo(usd, 5);
}

function expectFigures(
  answer: Json,
  call: readonly [turns: number, usd: number],
  session: readonly [number, number],
): void {
  expect(answer.status).toBe('idle');
  const { numTurns, totalCostUsd, sessionTotalTurns, sessionTotalCostUsd } = answer.result;
  expect([numTurns, sessionTotalTurns]).toEqual([call[0], session[0]]);
  expect(totalCostUsd).toBeCloseTo(call[1], 5);
  expect(sessionTotalCostUsd).toBeCloseTo(session[1], 5);
  expect(call[1]).toBeGreaterThan(0.001);
}

const reply = (h: Harness, sessionId: string, prompt: string, more: object = {}): Promise<Json> =>
  h.ok('claude_code_reply', { sessionId, prompt, waitMs: 40_000, ...more });

async function listed(h: Harness, sessionId: string): Promise<Json> {
  return (await h.ok('claude_code_session', { action: 'get', sessionId })).sessions[0];
}

async function sayAndFinish(h: Harness, sessionId: string, prompt: string): Promise<SessionView> {
  await h.say(sessionId, prompt);
  return h.finish(sessionId);
}

verifies(['totals.parked', 'life.park', 'totals.disk'], async (variant) => {
  const h = await variant.start({
    env: { ...DISK_RESUME, CLAUDE_CODE_MCP_PARK_AFTER_MS: '100', CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '100' },
  });
  h.model.on('one').reply(priced('1', 500));
  h.model.on('two').reply(step(20), priced('2', 900));
  const last = h.model.on('three').reply(priced('3', 70));
  const sessionId = await h.begin('one', { systemPrompt: 'Be a parrot.' });
  expectSums(await h.finish(sessionId), 1, h.model.chargedUsd());
  for (const [prompt, turns] of [
    ['two', 3],
    ['three', 4],
  ] as const) {
    await eventually(async () => (await claudePid(h, sessionId)) === undefined, { what: 'the session is parked' });
    expect(await h.look(sessionId)).toMatchObject({ status: 'rest', turns: turns - (prompt === 'two' ? 2 : 1) });
    expectSums(await sayAndFinish(h, sessionId, prompt), turns, h.model.chargedUsd());
  }
  const [request] = h.model.requestsFor(last);
  expect(request?.userTexts).toEqual(['one', 'two', 'three']);
  expect(request?.system).toContain('Be a parrot.');

  h.model.on('four').reply(priced('4', 210));
  await h.restartServer();
  await h.resume(sessionId, 'four');
  expect((await h.finish(sessionId)).costUsd).toBeCloseTo(h.model.chargedUsd(), 5);
  expect(JSON.stringify(await h.waitUntilRest(sessionId))).not.toContain('costUnknown');
});

verifies(['totals.call', 'totals.hot-replies', 'totals.killed', 'totals.fork'], async (variant) => {
  const h = await variant.start();
  h.model.on('one').reply(step(300), priced('1', 500));
  h.model.on('two').reply(priced('2', 900));
  h.model.on('three').reply(step(70), priced('3', 110));
  const bill = new Bill(h);
  const first = await h.ok('claude_code', { prompt: 'one', waitMs: 40_000 });
  const a = bill.takeUsd();
  expectFigures(first, [2, a], [2, a]);
  const second = await reply(h, first.sessionId, 'two');
  const b = bill.takeUsd();
  expectFigures(second, [1, b], [3, a + b]);
  await killClaude(h, first.sessionId);
  const third = await reply(h, first.sessionId, 'three');
  const c = bill.takeUsd();
  expectFigures(third, [2, c], [5, a + b + c]);
  const session = await listed(h, first.sessionId);
  expect(session.totalTurns).toBe(5);
  const sum = a + b + c;
  expect(session.totalCostUsd).toBeCloseTo(sum, 5);

  h.model.on('other way').reply(priced('4', 900));
  h.model.on('and on').reply(priced('5', 30));
  h.model.on('same way').reply(priced('6', 70));
  const fork = await reply(h, first.sessionId, 'other way', { forkSession: true });
  const d = bill.takeUsd();
  expectFigures(fork, [1, d], [6, sum + d]);
  expect((await listed(h, first.sessionId)).totalCostUsd).toBeCloseTo(sum, 5);
  const forkAgain = await reply(h, fork.sessionId, 'and on');
  const e = bill.takeUsd();
  expectFigures(forkAgain, [1, e], [7, sum + d + e]);
  const original = await reply(h, first.sessionId, 'same way');
  const f = bill.takeUsd();
  expectFigures(original, [1, f], [6, sum + f]);
  expect(await check(h, { action: 'poll', sessionId: fork.sessionId })).toMatchObject({
    result: { sessionTotalTurns: 7 },
  });
});
