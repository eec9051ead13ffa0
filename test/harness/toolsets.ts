/** The calls and answers of each toolset, so that a test can be written once for both. */

import { createHmac } from 'node:crypto';
import type { Json } from './json.ts';

export type Toolset = 'compact' | 'explicit';

export const TOOLSETS: readonly Toolset[] = ['compact', 'explicit'];

export type ToolCall = readonly [tool: string, args: Record<string, unknown>];

/** Options of a start that both toolsets support. */
export interface StartOptions {
  readonly cwd?: string;
  readonly model?: string;
  readonly permissionMode?: 'default' | 'acceptEdits' | 'plan' | 'bypassPermissions';
  readonly allowedTools?: readonly string[];
  readonly disallowedTools?: readonly string[];
  readonly maxTurns?: number;
  /** Added to the system prompt of Claude Code. */
  readonly systemPrompt?: string;
}

export interface Allowance {
  /** By default the oldest open request. */
  readonly requestId?: string;
  readonly updatedInput?: Readonly<Record<string, unknown>>;
  readonly answers?: Readonly<Record<string, unknown>> | readonly unknown[];
  /** `compact` only. */
  readonly updatedPermissions?: readonly unknown[];
}

export interface Denial {
  /** By default the oldest open request. */
  readonly requestId?: string;
  readonly message?: string;
  /** `compact` only. */
  readonly interrupt?: boolean;
}

const RESUME_SECRET = 'a secret of the operator';

/** Settings with which `resume` works in either toolset. */
export const DISK_RESUME = {
  CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: '1',
  CLAUDE_CODE_MCP_RESUME_SECRET: RESUME_SECRET,
};

/** What both toolsets report about a session. */
export interface SessionView {
  /** A cancelled or interrupted session is at rest too. */
  readonly status: 'running' | 'waiting' | 'rest' | 'error';
  /** Of the last turn; set at rest. */
  readonly answer: string | undefined;
  /** Why there is no answer. */
  readonly error: string | undefined;
  readonly requests: readonly RequestView[];
  /** Totals of the session; set at rest. */
  readonly turns: number | undefined;
  readonly costUsd: number | undefined;
}

export interface RequestView {
  readonly id: string;
  readonly type: 'permission' | 'plan_review' | 'user_question';
  readonly toolName: string;
  readonly input: Json;
  /** The plan, or a one-line summary of the request. */
  readonly shown: string;
  readonly expiresAt: string | undefined;
}

export interface Dialect {
  start(prompt: string, options?: StartOptions): ToolCall;
  /** To a session at rest. */
  say(sessionId: string, text: string): ToolCall;
  /** To a working session, which handles the message as soon as it can. */
  queue(sessionId: string, text: string): ToolCall;
  /** To a session that exists only on disk; the server runs with `DISK_RESUME`. */
  resume(sessionId: string, text: string): ToolCall;
  interrupt(sessionId: string): ToolCall;
  /** Returns at once. */
  look(sessionId: string): ToolCall;
  /** With the fields of requests that a caller is spared. */
  lookInFull(sessionId: string): ToolCall;
  /** Returns when there is something to report, or after `waitMs`. */
  watch(sessionId: string, waitMs: number): ToolCall;
  allow(sessionId: string, requestId: string, allowance?: Omit<Allowance, 'requestId'>): ToolCall;
  deny(sessionId: string, requestId: string, denial?: Omit<Denial, 'requestId'>): ToolCall;
  /** Lists every session on the machine. */
  listMachine(args?: { readonly projectDirectory?: string; readonly limit?: number }): ToolCall;
  /** From the answer to `look` or `watch`. */
  view(state: Json): SessionView;
  /** In this toolset's own format. */
  openRequests(state: Json): Json[];
  requestView(request: Json): RequestView;
}

const compact: Dialect = {
  start: (prompt, { systemPrompt: append, ...same } = {}) => [
    'claude_code',
    {
      prompt,
      ...same,
      ...(append !== undefined && { systemPrompt: { type: 'preset', preset: 'claude_code', append } }),
    },
  ],
  say: (sessionId, prompt) => ['claude_code_reply', { sessionId, prompt }],
  queue: (sessionId, prompt) => ['claude_code_reply', { sessionId, prompt, whenBusy: 'queue' }],
  resume: (sessionId, prompt) => {
    const resumeToken = createHmac('sha256', RESUME_SECRET).update(sessionId).digest('hex');
    return ['claude_code_reply', { sessionId, prompt, resumeToken }];
  },
  interrupt: (sessionId) => ['claude_code_session', { action: 'interrupt', sessionId }],
  look: (sessionId) => ['claude_code_check', { action: 'poll', sessionId }],
  watch: (sessionId, waitMs) => ['claude_code_check', { action: 'wait', sessionId, waitMs }],
  lookInFull: (sessionId) => [
    'claude_code_check',
    { action: 'poll', sessionId, responseMode: 'full', includeEvents: false },
  ],
  allow: (sessionId, requestId, permissionOptions = {}) => [
    'claude_code_check',
    { action: 'respond_permission', sessionId, requestId, decision: 'allow', permissionOptions },
  ],
  deny: (sessionId, requestId, { message, ...rest } = {}) => [
    'claude_code_check',
    {
      action: 'respond_permission',
      sessionId,
      requestId,
      decision: 'deny',
      ...(message !== undefined && { denyMessage: message }),
      ...rest,
    },
  ],
  listMachine: (args = {}) => ['claude_code_session', { action: 'list', scope: 'disk', ...args }],
  view: ({ status, actions = [], result }) => ({
    status: COMPACT_STATUS[status] ?? status,
    answer: result?.isError === false ? result.result : undefined,
    error: result?.isError === true ? result.result : undefined,
    requests: actions.map(compact.requestView),
    turns: result?.sessionTotalTurns,
    costUsd: result?.sessionTotalCostUsd,
  }),
  openRequests: ({ actions = [] }) => actions,
  requestView: ({ requestId, type, toolName, input, plan, summary, expiresInMs }) => ({
    id: requestId,
    type,
    toolName,
    input,
    shown: plan ?? summary,
    expiresAt: expiresInMs === undefined ? undefined : new Date(Date.now() + Number(expiresInMs)).toISOString(),
  }),
};

const explicit: Dialect = {
  start: (prompt, { cwd, ...same } = {}) => [
    'claude_create_session',
    { prompt, ...same, ...(cwd !== undefined && { workingDirectory: cwd }) },
  ],
  say: (sessionId, message) => ['claude_send_message', { sessionId, message }],
  queue: (sessionId, message) => ['claude_send_message', { sessionId, message }],
  resume: (sessionId, message) => ['claude_send_message', { sessionId, message }],
  interrupt: (sessionId) => ['claude_interrupt', { sessionId }],
  look: (sessionId) => ['claude_get_status', { sessionId }],
  lookInFull: (sessionId) => ['claude_get_status', { sessionId }],
  watch: (sessionId, waitMs) => ['claude_get_status', { sessionId, waitMs }],
  allow: (sessionId, inputId, details = {}) => [
    'claude_respond',
    { sessionId, inputId, decision: 'allow', ...details },
  ],
  deny: (sessionId, inputId, { message, ...rest } = {}) => [
    'claude_respond',
    { sessionId, inputId, decision: 'deny', ...(message !== undefined && { reason: message }), ...rest },
  ],
  listMachine: (args = {}) => ['claude_list_sessions', args],
  view: ({ status, pendingInputs, result, error, turnCount, costUsd }) => ({
    status: EXPLICIT_STATUS[status] ?? status,
    answer: result,
    error,
    requests: pendingInputs.map(explicit.requestView),
    turns: turnCount,
    costUsd,
  }),
  openRequests: ({ pendingInputs }) => pendingInputs,
  requestView: ({ inputId, type, toolName, toolInput, description, expiresAt }) => ({
    id: inputId,
    type,
    toolName,
    input: toolInput,
    shown: description,
    expiresAt,
  }),
};

const COMPACT_STATUS: Readonly<Record<string, SessionView['status']>> = {
  waiting_permission: 'waiting',
  idle: 'rest',
  cancelled: 'rest',
};

const EXPLICIT_STATUS: Readonly<Record<string, SessionView['status']>> = {
  waiting_for_input: 'waiting',
  completed: 'rest',
  interrupted: 'rest',
};

export const DIALECTS: Readonly<Record<Toolset, Dialect>> = { compact, explicit };
