import type { EventBody, FileEdit, Original } from '../schema/events.ts';

/** What was in a file before a tool wrote it, as Claude Code reports it: line ends folded, left out where it is long. */
export type FileBefore = { kind: 'absent' } | { kind: 'text'; text: string } | { kind: 'unknown' };

/** What the engine has to know of a message at once, and nobody afterwards. */
export type AgentSignal =
  | { kind: 'state'; state: 'running' | 'requires_action' | 'idle' }
  | { kind: 'delivery'; messageId: string; state: 'queued' | 'started' | 'ended' }
  /** By one of Claude Code's own tools. */
  | { kind: 'file_written'; path: string; before: FileBefore }
  | { kind: 'file_edited'; toolUseId: string; edit: FileEdit }
  /** A message begins, or goes on by a piece. */
  | { kind: 'streamed'; messageId: string | undefined; text: string };

/** What one message of Claude Code becomes: at most one event for the log, and any number of signals. */
export interface Translation {
  event: { body: EventBody; original?: Original } | undefined;
  signals: AgentSignal[];
}
