import { expect, test } from 'vitest';
import { roundUsd, Totals } from './totals.ts';

const result = (cumulativeCostUsd: number, numTurns = 1, durationApiMs = 5) => ({
  numTurns,
  cumulativeCostUsd,
  durationMs: 10,
  durationApiMs,
  usage: { output_tokens: 7, service_tier: 'standard' },
});

test('each call is charged its share of the running total', () => {
  const totals = new Totals();
  totals.beginProcess(0);
  totals.add(result(0.1, 2));
  expect(totals.call).toMatchObject({ turns: 2, costUsd: 0.1 });
  totals.beginCall();
  totals.add(result(0.25));
  expect(roundUsd(totals.call.costUsd)).toBe(0.15);
  expect(totals.session).toMatchObject({ turns: 3, costUsd: 0.25 });
});

test('several results of one call add up', () => {
  const totals = new Totals();
  totals.beginCall();
  totals.add(result(0.1, 2));
  totals.add(result(0.3, 1, 12));
  expect(totals.call).toEqual({
    results: 2,
    turns: 3,
    costUsd: 0.3,
    durationMs: 20,
    durationApiMs: 12,
    usage: { output_tokens: 14 },
  });
});

test('the cost of a killed process is missing from the transcript but stays in the total', () => {
  const totals = new Totals();
  totals.beginProcess(0);
  totals.add(result(0.4));
  totals.beginCall();
  totals.beginProcess(0);
  totals.add(result(0.1));
  expect(totals.call.costUsd).toBe(0.1);
  expect(totals.session.costUsd).toBe(0.5);
});

test('the cost a resumed process continues from is not charged again', () => {
  const totals = new Totals({ turns: 3, costUsd: 0.4 });
  totals.beginProcess(0.4);
  totals.beginCall();
  totals.add(result(0.6));
  expect(roundUsd(totals.call.costUsd)).toBe(0.2);
  expect(roundUsd(totals.session.costUsd)).toBe(0.6);
  expect(totals.session.turns).toBe(4);
});

test('inherited totals are copied, and a shrinking total charges nothing', () => {
  const inherited = { turns: 1, costUsd: 1 };
  const totals = new Totals(inherited);
  totals.beginProcess(5);
  totals.add(result(3));
  expect(totals.session).toEqual({ turns: 2, costUsd: 1 });
  expect(inherited).toEqual({ turns: 1, costUsd: 1 });
});

test('floating-point noise is rounded away', () => {
  expect(roundUsd(0.1 + 0.2)).toBe(0.3);
});

test('API time is this call’s share; the first of a resumed process cannot exceed its duration', () => {
  const totals = new Totals();
  totals.beginProcess(0);
  totals.add(result(0.1, 1, 100));
  totals.beginCall();
  totals.add(result(0.2, 1, 104));
  expect(totals.call.durationApiMs).toBe(4);
  totals.beginProcess(0.2);
  totals.beginCall();
  totals.add(result(0.3, 1, 5_000));
  expect(totals.call.durationApiMs).toBe(10);
});

test('the cost is unknown before the first result, unless inherited', () => {
  const totals = new Totals();
  expect(totals.costKnown).toBe(false);
  totals.add(result(0));
  expect(totals.costKnown).toBe(true);
  expect(new Totals({ turns: 1, costUsd: 0.1 }).costKnown).toBe(true);
});

test('a turn whose process was killed has an unknown cost', () => {
  const totals = new Totals();
  totals.beginProcess(0);
  totals.spends();
  expect(totals.session.costUnknown).toBeUndefined();
  totals.endTurn();
  expect(totals.session.costUnknown).toBe(true);
  // Nothing was written down when it ended, so it stays unknown.
  totals.beginProcess(0, true);
  totals.spends();
  totals.add(result(0.1));
  totals.endTurn();
  expect(totals.session).toEqual({ turns: 1, costUsd: 0.1, costUnknown: true });
});

test('what a process wrote down when it ended during a turn is charged', () => {
  const totals = new Totals();
  totals.beginProcess(0);
  totals.add(result(0.1));
  totals.spends();
  totals.endTurn();
  totals.beginProcess(0.4, true);
  expect(totals.session).toEqual({ turns: 1, costUsd: 0.4 });
  totals.add(result(0.6));
  expect(totals.session).toEqual({ turns: 2, costUsd: expect.closeTo(0.6, 9) });
});

test.each([
  ['killed', 0.1, { turns: 1, costUsd: 0.1, costUnknown: true }],
  ['ended', 0.4, { turns: 1, costUsd: 0.4 }],
])('the same holds if the server ended with it: %s', (_how, recordedUsd, sums) => {
  const before = new Totals();
  before.beginProcess(0);
  before.add(result(0.1));
  before.spends();
  const totals = new Totals();
  totals.restore(JSON.parse(JSON.stringify(before.record)));
  totals.endTurn();
  expect(totals.session).toMatchObject({ costUsd: 0.1, costUnknown: true });
  const again = new Totals();
  again.restore(JSON.parse(JSON.stringify(totals.record)));
  again.beginProcess(recordedUsd, true);
  expect(again.session).toEqual(sums);
});

test('a cost that was lost stays lost, also when a later turn was written down', () => {
  const totals = new Totals({ turns: 0, costUsd: 0.1, costUnknown: true });
  totals.beginProcess(0.1, true);
  totals.spends();
  totals.endTurn();
  const next = new Totals();
  next.restore(totals.record);
  next.beginProcess(0.3, true);
  expect(next.session).toEqual({ turns: 0, costUsd: expect.closeTo(0.3, 9), costUnknown: true });
});

test('a fork is not charged for what was written down by its parent', () => {
  const totals = new Totals({ turns: 2, costUsd: 0.2 });
  totals.beginProcess(0.5);
  totals.add(result(0.6));
  expect(totals.session.costUsd).toBeCloseTo(0.3, 9);
});
