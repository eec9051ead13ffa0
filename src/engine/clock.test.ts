import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { later, msBetween, SystemClock } from './clock.ts';

const MINUTE = 60_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

test('a timer fires when it is due and not before, and can be cancelled', () => {
  const clock = new SystemClock();
  const rung: string[] = [];
  clock.after(25_000, () => rung.push('late'));
  clock.after(0, () => rung.push('now'));
  clock.after(1_000, () => rung.push('cancelled'))();
  vi.advanceTimersByTime(24_999);
  expect(rung).toEqual(['now']);
  vi.advanceTimersByTime(1);
  expect(rung).toEqual(['now', 'late']);
});

test.each([-60, 300])('moving the system clock by %i minutes moves neither timers nor instants', (minutes) => {
  const clock = new SystemClock();
  const begin = clock.instant();
  let rung = false;
  clock.after(3_000, () => (rung = true));
  vi.setSystemTime(Date.now() + minutes * MINUTE);
  vi.advanceTimersByTime(2_999);
  expect(rung).toBe(false);
  vi.advanceTimersByTime(1);
  expect(rung).toBe(true);
  expect(msBetween(begin, clock.instant())).toBe(3_000);
});

test('time asleep does not count, even where the monotonic clock keeps running', () => {
  let sleptMs = 0;
  const clock = new SystemClock(() => performance.now() + sleptMs);
  const begin = clock.instant();
  let rung = false;
  clock.after(5 * MINUTE, () => (rung = true));
  vi.advanceTimersByTime(MINUTE);
  sleptMs = 8 * 60 * MINUTE;
  vi.advanceTimersByTime(3 * MINUTE);
  expect(rung).toBe(false);
  expect(msBetween(begin, clock.instant())).toBeLessThan(5 * MINUTE);
  vi.advanceTimersByTime(MINUTE);
  expect(rung).toBe(true);
});

test('a timer can outlast Node’s longest timeout', () => {
  const clock = new SystemClock();
  let rung = false;
  const cancel = clock.after(2 ** 31 + MINUTE, () => (rung = true));
  vi.advanceTimersByTime(MINUTE);
  expect(rung).toBe(false);
  cancel();
  expect(vi.getTimerCount()).toBe(0);
});

test('instants can be shifted and compared', () => {
  const instant = new SystemClock().instant();
  expect(msBetween(instant, later(instant, 7))).toBe(7);
});
