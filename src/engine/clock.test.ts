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
  const fired: string[] = [];
  clock.after(25_000, () => fired.push('late'));
  clock.after(0, () => fired.push('now'));
  clock.after(1_000, () => fired.push('cancelled'))();
  vi.advanceTimersByTime(24_999);
  expect(fired).toEqual(['now']);
  vi.advanceTimersByTime(1);
  expect(fired).toEqual(['now', 'late']);
});

test.each([-60, 300])('moving the system clock by %i minutes moves neither timers nor instants', (minutes) => {
  const clock = new SystemClock();
  const begin = clock.instant();
  let fired = false;
  clock.after(3_000, () => (fired = true));
  vi.setSystemTime(Date.now() + minutes * MINUTE);
  vi.advanceTimersByTime(2_999);
  expect(fired).toBe(false);
  vi.advanceTimersByTime(1);
  expect(fired).toBe(true);
  expect(msBetween(begin, clock.instant())).toBe(3_000);
});

test('time asleep does not count, even where the monotonic clock keeps running', () => {
  let sleptMs = 0;
  const clock = new SystemClock(() => performance.now() + sleptMs);
  const begin = clock.instant();
  let fired = false;
  clock.after(5 * MINUTE, () => (fired = true));
  vi.advanceTimersByTime(MINUTE);
  sleptMs = 8 * 60 * MINUTE;
  vi.advanceTimersByTime(3 * MINUTE);
  expect(fired).toBe(false);
  expect(msBetween(begin, clock.instant())).toBeLessThan(5 * MINUTE);
  vi.advanceTimersByTime(MINUTE);
  expect(fired).toBe(true);
});

test('a timer can outlast Node’s longest timeout', () => {
  const clock = new SystemClock();
  let fired = false;
  const cancel = clock.after(2 ** 31 + MINUTE, () => (fired = true));
  vi.advanceTimersByTime(MINUTE);
  expect(fired).toBe(false);
  cancel();
  expect(vi.getTimerCount()).toBe(0);
});

test('instants can be shifted and compared', () => {
  const instant = new SystemClock().instant();
  expect(msBetween(instant, later(instant, 7))).toBe(7);
});
