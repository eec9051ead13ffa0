import { expect, test } from 'vitest';
import { ManualClock } from '../../test/harness/manual-clock.ts';
import { Housekeeping } from './housekeeping.ts';
import { Registry } from './registry.ts';
import { SessionTimes } from './session-times.ts';
import type { Session } from './session.ts';

const MINUTE = 60_000;
const RULES = {
  parkAfterMs: 5 * MINUTE,
  sessionTtlMs: 30 * MINUTE,
  runningSessionMaxMs: 240 * MINUTE,
  cleanupIntervalMs: MINUTE,
};

type Aspect = Pick<Session, 'id' | 'atRest' | 'launching' | 'parkable' | 'backgroundTasks'>;

/** What housekeeping sees of a session, and a record of what it did to it. */
function sessionWith(aspect: Partial<Aspect>, clock: ManualClock, deeds: string[]): Session {
  const times = new SessionTimes(clock);
  const seen = {
    id: 'a',
    atRest: true,
    launching: false,
    parkable: true,
    backgroundTasks: 0,
    get restedMs() {
      return times.restedMs;
    },
    get workedMs() {
      return times.workedMs;
    },
    ...aspect,
    park: async () => void deeds.push('parked'),
    release: async () => void deeds.push('released'),
    stop: async (_reason: string, source: string) => {
      deeds.push(`stopped by ${source}`);
      seen.atRest = true;
      times.active();
    },
  };
  return seen as unknown as Session;
}

function after(ms: number, aspect: Partial<Aspect>): { deeds: Set<string>; known: boolean } {
  const clock = new ManualClock();
  const registry = new Registry(10);
  const deeds: string[] = [];
  registry.add(sessionWith(aspect, clock, deeds));
  new Housekeeping(registry, RULES, clock).wake();
  clock.advance(ms);
  return { deeds: new Set(deeds), known: registry.find('a') !== undefined };
}

test.each<[what: string, ms: number, aspect: Partial<Aspect>, deeds: string[], known: boolean]>([
  ['at rest for a little while', 4 * MINUTE, {}, [], true],
  ['at rest for the time of parking', 5 * MINUTE, {}, ['parked'], true],
  ['at rest, but not to be parked', 29 * MINUTE, { parkable: false }, [], true],
  ['at rest for its time', 30 * MINUTE, { parkable: false }, ['released'], false],
  ['at rest with a background task', 300 * MINUTE, { parkable: false, backgroundTasks: 1 }, [], true],
  ['at work', 239 * MINUTE, { atRest: false, parkable: false }, [], true],
  ['at work for too long', 240 * MINUTE, { atRest: false, parkable: false }, ['stopped by cleanup'], true],
  ['starting', 300 * MINUTE, { atRest: false, launching: true, parkable: false }, [], true],
])('%s', (_what, ms, aspect, deeds, known) => {
  const seen = after(ms, aspect);
  expect([...seen.deeds]).toEqual(deeds);
  expect(seen.known).toBe(known);
});

test('no tick while there is nothing to look after', () => {
  const clock = new ManualClock();
  const housekeeping = new Housekeeping(new Registry(10), RULES, clock);
  expect(clock.alarms).toBe(0);
  housekeeping.wake();
  housekeeping.wake();
  expect(clock.alarms).toBe(1);
  clock.advance(MINUTE);
  expect(clock.alarms).toBe(0);
});

test.each([-1, 1])('a system clock that jumps (%i × five hours) changes nothing for a session at work', (direction) => {
  const clock = new ManualClock();
  const registry = new Registry(10);
  const deeds: string[] = [];
  registry.add(sessionWith({ atRest: false, parkable: false }, clock, deeds));
  new Housekeeping(registry, RULES, clock).wake();
  clock.setWallTime(direction * 300 * MINUTE);
  clock.advance(239 * MINUTE);
  expect(deeds).toEqual([]);
  clock.advance(MINUTE);
  expect(deeds).toEqual(['stopped by cleanup']);
});
