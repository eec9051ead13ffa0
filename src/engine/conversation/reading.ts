import type { RequestRecord, SessionEvent } from '../../schema/events.ts';
import type { ShownRecord } from '../../schema/records.ts';
import type { Work } from '../../schema/results.ts';
import type { ToolUse } from './activity.ts';
import type { Slice } from './event-log.ts';

/** The events of a session, wherever they are kept. */
export interface EventReader {
  readonly nextId: number;
  /** The newest event that is not kept here; 0 where none is missing. */
  readonly droppedThrough: number;
  /** From the event with this id on. */
  from(id: number): Slice;
  newestFirst(before?: number): Iterable<SessionEvent>;
  /** A reader has these: text that is still being written continues in a new event. */
  markDelivered(through: number): void;
}

/** What there is to read of a session: its record, and what is too large to be part of it. */
export interface WholeReading {
  readonly record: ShownRecord;
  /** Time of day when it was read. */
  readonly now: number;
  readonly log: EventReader;
  /** Those that are open, oldest first. */
  readonly requests: readonly RequestRecord[];
  /** What Claude is writing and has not finished; only in a session started with streaming. */
  readonly unfinishedText: string;
  /** Since the last message, or all that are kept. */
  toolUses(since: 'message' | 'all'): readonly ToolUse[];
  findToolUse(toolUseId: string): ToolUse | undefined;
  /** Evidence of what the last call did, with every file and command. */
  fullWork(): Work | undefined;
}

/** What a client gets of a session. */
export interface SessionReading extends WholeReading {
  /** Whether this request is left to a person, who has a form for it open or alone may answer it. */
  isLeftToPerson(requestId: string): boolean;
}

/** Events in a row that a store has kept. */
export interface StoredStretch {
  readonly events: readonly SessionEvent[];
  /** The newest event that the store has dropped too. */
  readonly droppedThrough: number;
}

/** A log preceded by events that it no longer has. If they do not reach up to those it has, it ends with them. */
export function precededBy({ events: earlier, droppedThrough }: StoredStretch, log: EventReader): EventReader {
  const first = earlier[0]?.id ?? 0;
  const last = earlier.at(-1)?.id ?? 0;
  const isWhole = last >= log.droppedThrough;
  return {
    nextId: isWhole ? log.nextId : last + 1,
    droppedThrough,
    from(id) {
      const wanted = earlier.filter((event) => event.id >= id);
      const resetTo = id <= droppedThrough ? (wanted[0]?.id ?? log.nextId) : undefined;
      if (!isWhole) return { events: wanted, resetTo, hasMore: true };
      return { events: [...wanted, ...log.from(Math.max(id, last + 1)).events], resetTo };
    },
    *newestFirst(before = Infinity) {
      for (const event of log.newestFirst(before)) if (event.id > last) yield event;
      for (const event of earlier.toReversed()) if (event.id < before) yield event;
      yield* log.newestFirst(Math.min(before, first));
    },
    markDelivered: (through) => log.markDelivered(through),
  };
}
