import type { EventBody, FileEdit, Original } from '../schema/events.ts';

/** A file's contents before a tool wrote it, as Claude Code reports them: line endings normalised, omitted if long. */
export type FileBefore = { kind: 'absent' } | { kind: 'text'; text: string } | { kind: 'unknown' };

/** How far Claude Code has got with a message. */
export type DeliveryState = 'queued' | 'started' | 'ended' | 'withdrawn';

/** What the engine must know about a message immediately, and no one afterwards. */
export type AgentSignal =
  | { kind: 'state'; state: 'running' | 'requires_action' | 'idle' }
  | { kind: 'delivery'; messageId: string; state: DeliveryState }
  /** By one of Claude Code's own tools. */
  | { kind: 'file_written'; path: string; before: FileBefore }
  | { kind: 'file_edited'; toolUseId: string; edit: FileEdit }
  /** A message starts, or continues with a piece. */
  | { kind: 'streamed'; messageId: string | undefined; text: string };

/** What one Claude Code message becomes: at most one event for the log, and any number of signals. */
export interface Translation {
  event: { body: EventBody; original?: Original } | undefined;
  signals: AgentSignal[];
}
