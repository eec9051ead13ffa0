import type { RequestRecord, SessionEvent } from '../../schema/events.ts';
import type { ShownRecord } from '../../schema/records.ts';
import type { Work } from '../../schema/results.ts';
import type { ToolUse } from './activity.ts';
import type { Slice } from './event-log.ts';

/** The events of a session, wherever they are kept. */
export interface EventReader {
  readonly nextId: number;
  /** From the event with this id on. */
  from(id: number): Slice;
  newestFirst(before?: number): Iterable<SessionEvent>;
  /** A reader has these: text that is still being written continues in a new event. */
  markDelivered(through: number): void;
}

/** What a reader gets of a session: its record, and what is too large to be part of it. */
export interface SessionReading {
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
  /** Whether a person has a form for this request open. */
  isAskingPerson(requestId: string): boolean;
  /** Evidence of what the last call did, with every file and command. */
  fullWork(): Work | undefined;
}
