import { expect, test } from 'vitest';
import { ManualClock } from '../../../test/harness/manual-clock.ts';
import { Housekeeping } from './housekeeping.ts';
import { Registry } from './registry.ts';
import { SessionTimes } from '../conversation/conversation-types.ts';
import type { Session } from './session.ts';

const MINUTE = 60_000;
const RULES = {
  parkAfterMs: 5 * MINUTE,
  sessionTtlMs: 30 * MINUTE,
  runningSessionMaxMs: 240 * MINUTE,
  cleanupIntervalMs: MINUTE,
};

interface Aspect {
  readonly atRest: boolean;
  readonly launching: boolean;
  readonly parkable: boolean;
  readonly backgroundTasks: number;
}

/** A session as housekeeping sees it; every action on it is recorded. */
function sessionWith(aspect: Partial<Aspect>, clock: ManualClock, actions: string[]): Session {
  const times = new SessionTimes(clock);
  const seen = {
    id: 'a',
    atRest: aspect.atRest ?? true,
    parkable: aspect.parkable ?? true,
    process: { starting: aspect.launching ?? false },
    conversation: { times, backgroundTasks: aspect.backgroundTasks ?? 0 },
    park: async () => void actions.push('parked'),
    release: async () => void actions.push('released'),
    stop: async (_reason: string, source: string) => {
      actions.push(`stopped by ${source}`);
      seen.atRest = true;
      times.active();
    },
  };
  return seen as unknown as Session;
}

function after(ms: number, aspect: Partial<Aspect>): { actions: Set<string>; known: boolean } {
  const clock = new ManualClock();
  const registry = new Registry(10);
  const actions: string[] = [];
  registry.add(sessionWith(aspect, clock, actions));
  new Housekeeping(registry, RULES, clock).wake();
  clock.advance(ms);
  return { actions: new Set(actions), known: registry.find('a') !== undefined };
}

test.each<[what: string, ms: number, aspect: Partial<Aspect>, actions: string[], known: boolean]>([
  ['at rest for less than the parking time is left alone', 4 * MINUTE, {}, [], true],
  ['at rest for the parking time is parked', 5 * MINUTE, {}, ['parked'], true],
  ['at rest, but not parkable, is left alone', 29 * MINUTE, { parkable: false }, [], true],
  ['at rest for the session TTL is released and forgotten', 30 * MINUTE, { parkable: false }, ['released'], false],
  ['at rest with a background task is left alone', 300 * MINUTE, { parkable: false, backgroundTasks: 1 }, [], true],
  ['at work is left alone', 239 * MINUTE, { atRest: false, parkable: false }, [], true],
  ['at work for too long is stopped', 240 * MINUTE, { atRest: false, parkable: false }, ['stopped by cleanup'], true],
  ['that is starting is left alone', 300 * MINUTE, { atRest: false, launching: true, parkable: false }, [], true],
])('a session %s', (_what, ms, aspect, actions, known) => {
  const seen = after(ms, aspect);
  expect([...seen.actions]).toEqual(actions);
  expect(seen.known).toBe(known);
});

test('no timer runs without sessions', () => {
  const clock = new ManualClock();
  const housekeeping = new Housekeeping(new Registry(10), RULES, clock);
  expect(clock.alarms).toBe(0);
  housekeeping.wake();
  housekeeping.wake();
  expect(clock.alarms).toBe(1);
  clock.advance(MINUTE);
  expect(clock.alarms).toBe(0);
});

test.each([-1, 1])('a system clock jump (%i × five hours) does not affect a running session', (direction) => {
  const clock = new ManualClock();
  const registry = new Registry(10);
  const actions: string[] = [];
  registry.add(sessionWith({ atRest: false, parkable: false }, clock, actions));
  new Housekeeping(registry, RULES, clock).wake();
  clock.setWallTime(direction * 300 * MINUTE);
  clock.advance(239 * MINUTE);
  expect(actions).toEqual([]);
  clock.advance(MINUTE);
  expect(actions).toEqual(['stopped by cleanup']);
});
