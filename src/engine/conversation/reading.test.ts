import { describe, expect, test } from 'vitest';
import type { SessionEvent } from '../../schema/events.ts';
import { EventLog } from './event-log.ts';
import { precededBy, type EventReader } from './reading.ts';

const ids = (events: Iterable<SessionEvent>): number[] => [...events].map(({ id }) => id);

/** Has the last three of eight events. */
function shortLog(): { log: EventReader; all: SessionEvent[] } {
  const all: SessionEvent[] = [];
  const log = new EventLog({ maxEvents: 3, maxBytes: 100_000 }, (event) => all.push(event));
  for (let count = 1; count <= 8; count++) log.append({ kind: 'notice', name: String(count) }, count);
  return { log, all };
}

describe('a log preceded by what a store has kept', () => {
  test('has everything if both meet', () => {
    const { log, all } = shortLog();
    expect(log.droppedThrough).toBe(5);
    const whole = precededBy({ events: all.slice(1, 6), droppedThrough: 0 }, log);
    expect(whole.from(2)).toEqual({ events: all.slice(1), resetTo: undefined });
    expect(ids(whole.from(7).events)).toEqual([7, 8]);
    expect(whole.nextId).toBe(9);
    expect(ids(whole.newestFirst())).toEqual([8, 7, 6, 5, 4, 3, 2]);
    expect(ids(whole.newestFirst(4))).toEqual([3, 2]);
  });

  test('ends before a gap and says that there is more', () => {
    const { log, all } = shortLog();
    const first = precededBy({ events: all.slice(0, 3), droppedThrough: 0 }, log);
    expect(first.from(1)).toEqual({ events: all.slice(0, 3), resetTo: undefined, hasMore: true });
    expect(first.nextId).toBe(4);
  });

  test('says where it starts if the store has dropped something too', () => {
    const { log, all } = shortLog();
    expect(precededBy({ events: all.slice(2, 6), droppedThrough: 2 }, log).from(1).resetTo).toBe(3);
  });
});
