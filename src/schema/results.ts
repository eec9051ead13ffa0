import { z } from 'zod';
import { permissionMode } from './session-options.ts';

/*
 * What the tools answer, one schema for each shape. Views return the inferred types; the tools list shows them in short,
 * the reference in words.
 */

export const DENIED_BY = ['caller', 'human', 'disallowedTools', 'settings', 'timeout', 'policy'] as const;
export const deniedBy = z.enum(DENIED_BY);
export type DeniedBy = z.infer<typeof deniedBy>;

export const toolStatus = z.enum(['running', 'awaiting_permission', 'completed', 'denied', 'failed']);
export type ToolStatus = z.infer<typeof toolStatus>;

const requestKind = z.enum(['permission', 'plan_review', 'user_question']);

/** A tool call that did not do what it was meant to do. */
export const problem = z.object({
  tool: z.string(),
  what: z.string(),
  outcome: z.enum(['failed', 'denied']),
  by: deniedBy.optional(),
  tail: z.string(),
});
export type Problem = z.infer<typeof problem>;

/** Evidence of what a call did, regardless of what the answer claims. */
export const work = z.object({
  filesChanged: z.number().optional(),
  insertions: z.number().optional(),
  deletions: z.number().optional(),
  files: z
    .array(
      z.object({
        path: z.string(),
        insertions: z.number(),
        deletions: z.number(),
        status: z.enum(['added', 'modified', 'deleted', 'renamed', 'type-changed']),
        isBinary: z.boolean().optional(),
      }),
    )
    .optional(),
  commandsRun: z.number().optional(),
  commandsFailed: z.number().optional(),
  commands: z.array(z.object({ command: z.string(), exitCode: z.number().optional(), failed: z.boolean() })).optional(),
  lastCheck: z.object({ command: z.string(), exitCode: z.number(), afterLastEdit: z.boolean() }).optional(),
  shared: z.literal(true).optional(),
  incomplete: z.string().optional(),
  problems: z.array(problem).optional(),
});
export type Work = z.infer<typeof work>;

/** Where an edit would go: the line it begins at, and up to two lines before and after it. */
export const editPlace = z.object({ line: z.number(), before: z.array(z.string()), after: z.array(z.string()) });
export type EditPlace = z.infer<typeof editPlace>;

/** What both toolsets say about a request, so that it can be decided. */
const decisionAids = {
  inputTruncated: z.literal(true).optional(),
  inputChars: z.number().optional(),
  cwd: z.string().optional(),
  said: z.string().optional(),
  edit: editPlace.optional(),
  alwaysAllows: z.string().optional(),
  expiresAt: z.string().optional(),
  expiresInMs: z.number().optional(),
  onExpiry: z.literal('deny').optional(),
  askedPerson: z.literal(true).optional(),
};

export const toolInput = z.record(z.string(), z.unknown());

export const action = z.object({
  type: requestKind,
  requestId: z.string(),
  toolName: z.string(),
  input: toolInput,
  summary: z.string(),
  title: z.string().optional(),
  description: z.string().optional(),
  plan: z.string().optional(),
  questions: z.unknown().optional(),
  decisionReason: z.string().optional(),
  blockedPath: z.string().optional(),
  toolUseID: z.string(),
  agentID: z.string().optional(),
  suggestions: z.array(z.unknown()).optional(),
  createdAt: z.string(),
  ...decisionAids,
});
export type Action = z.infer<typeof action>;

export const event = z.object({
  id: z.number(),
  type: z.enum(['output', 'progress', 'permission_request', 'permission_result', 'result', 'error']),
  data: z.unknown(),
  timestamp: z.string(),
  toolName: z.string().optional(),
  toolUseID: z.string().optional(),
});
export type EventView = z.infer<typeof event>;

const permissionDenial = z.looseObject({
  toolName: z.string(),
  toolUseID: z.string().optional(),
  what: z.string().optional(),
  by: deniedBy.optional(),
});
export type PermissionDenial = z.infer<typeof permissionDenial>;

export const callResult = z.object({
  sessionId: z.string(),
  result: z.string(),
  resultChars: z.number().optional(),
  isError: z.boolean(),
  durationMs: z.number(),
  durationApiMs: z.number().optional(),
  numTurns: z.number(),
  totalCostUsd: z.number(),
  sessionTotalTurns: z.number(),
  sessionTotalCostUsd: z.number(),
  costUnknown: z.literal(true).optional(),
  structuredOutput: z.unknown().optional(),
  stopReason: z.string().optional(),
  errorSubtype: z.string().optional(),
  usage: z.record(z.string(), z.unknown()).optional(),
  modelUsage: z.record(z.string(), z.unknown()).optional(),
  permissionDenials: z.array(permissionDenial).optional(),
  work: work.optional(),
});
export type CallResult = z.infer<typeof callResult>;

/** One tool call whole, as `pollOptions.toolUseID` asks for it. */
export const toolCall = z.object({
  toolUseID: z.string(),
  toolName: z.string(),
  input: toolInput.optional(),
  output: z.string().optional(),
  outputChars: z.number().optional(),
  outcome: toolStatus,
  exitCode: z.number().optional(),
  deniedBy: deniedBy.optional(),
  inputChanged: z.literal(true).optional(),
});
export type ToolCallView = z.infer<typeof toolCall>;

export const compactStatus = z.enum(['running', 'waiting_permission', 'idle', 'error', 'cancelled']);

/** What a check answers, and a start or a reply after its wait. */
export const checkAnswer = z.object({
  sessionId: z.string(),
  status: compactStatus,
  pollInterval: z.number().optional(),
  resumeToken: z.string().optional(),
  effective: z.string().optional(),
  warnings: z.array(z.string()).optional(),
  workspace: z.object({ path: z.string(), branch: z.string(), base: z.string() }).optional(),
  events: z.array(event).optional(),
  nextCursor: z.number(),
  cursorResetTo: z.number().optional(),
  truncated: z.literal(true).optional(),
  truncatedFields: z.array(z.string()).optional(),
  actions: z.array(action).optional(),
  result: callResult.optional(),
  toolCall: toolCall.optional(),
  activity: z.string().optional(),
  backgroundTasks: z.number().optional(),
  availableTools: z
    .array(z.object({ name: z.string(), category: z.string(), description: z.string().optional() }))
    .optional(),
  cancelledAt: z.string().optional(),
  cancelledReason: z.string().optional(),
  cancelledSource: z.string().optional(),
  lastEventId: z.number().optional(),
  lastToolUseId: z.string().optional(),
  quietMs: z.number().optional(),
});
export type CheckAnswer = z.infer<typeof checkAnswer>;

export const explicitStatus = z.enum(['running', 'waiting_for_input', 'completed', 'interrupted', 'error']);

export const pendingInput = z.object({
  inputId: z.string(),
  type: requestKind,
  toolName: z.string(),
  toolInput,
  description: z.string(),
  ...decisionAids,
});
export type PendingInput = z.infer<typeof pendingInput>;

export const toolUseEvent = z.object({
  toolName: z.string(),
  status: toolStatus,
  input: z.string().optional(),
  inputChanged: z.literal(true).optional(),
  error: z.string().optional(),
  deniedBy: deniedBy.optional(),
  inputId: z.string().optional(),
});
export type ToolUseEvent = z.infer<typeof toolUseEvent>;

/** What `claude_get_status` answers, and the other explicit tools after their wait. */
export const statusAnswer = z.object({
  sessionId: z.string(),
  status: explicitStatus,
  effective: z.string().optional(),
  warnings: z.array(z.string()).optional(),
  result: z.string().optional(),
  work: work.optional(),
  recentOutput: z.array(z.string()),
  pendingInputs: z.array(pendingInput),
  toolUseEvents: z.array(toolUseEvent),
  costUsd: z.number().optional(),
  costUnknown: z.literal(true).optional(),
  turnCount: z.number(),
  error: z.string().optional(),
});
export type StatusAnswer = z.infer<typeof statusAnswer>;

/** A worktree, and how far its work has been applied. */
export const worktreeShown = z.object({
  path: z.string().optional(),
  repository: z.string().optional(),
  branch: z.string().optional(),
  base: z.string().optional(),
  state: z.string(),
  uncommittedFiles: z.number().optional(),
  unmergedCommits: z.number().optional(),
});
export type WorktreeShown = z.infer<typeof worktreeShown>;

/** A session of this server, with the options that may be shown. */
export const sessionShown = z.looseObject({
  sessionId: z.string(),
  status: compactStatus,
  createdAt: z.string(),
  lastActiveAt: z.string(),
  totalTurns: z.number(),
  totalCostUsd: z.number(),
  costUnknown: z.literal(true).optional(),
  model: z.string().optional(),
  permissionMode: permissionMode.optional(),
  backgroundTasks: z.number().optional(),
  cancelledReason: z.string().optional(),
  cancelledSource: z.string().optional(),
  workspace: worktreeShown.optional(),
});
export type SessionShown = z.infer<typeof sessionShown>;

/** A session that Claude Code keeps on disk; it has a status where this server knows it. */
export const diskSessionShown = z.object({
  sessionId: z.string(),
  status: compactStatus.optional(),
  createdAt: z.string().optional(),
  lastActiveAt: z.string(),
  displayText: z.string().optional(),
  projectDirectory: z.string().optional(),
});
export type DiskSessionShown = z.infer<typeof diskSessionShown>;

const fileChange = z.object({
  path: z.string(),
  oldPath: z.string().optional(),
  status: z.enum(['added', 'modified', 'deleted', 'renamed', 'type-changed']),
  insertions: z.number(),
  deletions: z.number(),
  isBinary: z.boolean(),
});

const diffPage = z.object({
  filesChanged: z.number(),
  insertions: z.number(),
  deletions: z.number(),
  files: z.array(fileChange).readonly().optional(),
  diff: z.string(),
  totalBytes: z.number(),
  nextOffset: z.number().optional(),
});

/** What `claude_code_session` answers. */
export const sessionsAnswer = z.object({
  sessions: z.array(z.union([sessionShown, diskSessionShown])),
  worktrees: z.array(worktreeShown.extend({ sessionId: z.string() })).optional(),
  message: z.string().optional(),
  diff: diffPage.optional(),
});
export type SessionsAnswer = z.infer<typeof sessionsAnswer>;

/** A session of the machine, as `claude_list_sessions` shows it. */
export const listedSession = z.looseObject({
  sessionId: z.string(),
  projectDirectory: z.string().optional(),
  displayText: z.string(),
  timestamp: z.string(),
  isActive: z.boolean(),
  activeStatus: explicitStatus.optional(),
});
export type ListedSessionShown = z.infer<typeof listedSession>;
