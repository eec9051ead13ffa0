import type { PermissionMode } from '../schema/session-options.ts';

/** What one `result` of Claude Code says. `costUsd` counts from the start of the transcript, not of this turn. */
export interface AgentResult {
  text: string;
  isError: boolean;
  interrupted: boolean;
  errorSubtype: string | undefined;
  numTurns: number;
  cumulativeCostUsd: number;
  durationMs: number;
  durationApiMs: number;
  stopReason: string | undefined;
  usage: Record<string, unknown>;
  modelUsage: Record<string, unknown>;
  structuredOutput: unknown;
  permissionDenials: unknown[];
}

/** What was in a file before a tool wrote it, as Claude Code tells: line ends folded, left out where it is long. */
export type FileBefore = { kind: 'absent' } | { kind: 'text'; text: string } | { kind: 'unknown' };

/** What the engine has to know of a message of Claude Code, apart from the event that is kept. */
export type AgentSignal =
  | { kind: 'started'; tools: string[]; model: string; permissionMode: PermissionMode; version: string; cwd: string }
  | { kind: 'state'; state: 'running' | 'requires_action' | 'idle' }
  | { kind: 'delivery'; messageId: string; state: 'queued' | 'started' | 'ended' }
  | { kind: 'result'; result: AgentResult; answered: string[] | undefined }
  | { kind: 'model_answered' }
  | { kind: 'tool_use'; toolUseId: string; toolName: string; input: Record<string, unknown> }
  | {
      kind: 'tool_result';
      toolUseId: string;
      isError: boolean;
      output: string;
      exitCode: number | undefined;
      /** What the tool returned beside its text, in the tool's own shape. */
      returned?: unknown;
    }
  /** By one of Claude Code's own tools. */
  | { kind: 'file_written'; path: string; before: FileBefore }
  /** By a rule or a hook of the user's settings, or by what else Claude Code goes by: its mode, a classifier. */
  | { kind: 'tool_refused'; toolUseId: string; by: 'settings' | 'policy'; message: string }
  | { kind: 'background_tasks'; count: number }
  | { kind: 'permission_mode'; mode: PermissionMode }
  | { kind: 'partial'; messageId: string | undefined; text: string }
  | { kind: 'retry'; line: string; loginRefused: boolean };

export const EVENT_TYPES = [
  'output',
  'progress',
  'permission_request',
  'permission_result',
  'result',
  'error',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** What one message becomes: at most one event for the log, and any number of signals. */
export interface Translation {
  event: { type: EventType; data: unknown } | undefined;
  signals: AgentSignal[];
}
