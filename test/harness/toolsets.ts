/** How each toolset is asked about a session and told a decision, so that tests can wait in either. */

import type { Json } from './json.ts';

export type Toolset = 'compact' | 'explicit';

export const TOOLSETS: readonly Toolset[] = ['compact', 'explicit'];

type ToolCall = readonly [tool: string, args: Record<string, unknown>];

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

export interface Dialect {
  /** Answers when there is reason to, at the latest after `waitMs`. */
  watch(sessionId: string, waitMs: number): ToolCall;
  isAtRest(state: Json): boolean;
  openRequests(state: Json): Json[];
  requestId(request: Json): string;
  allow(sessionId: string, requestId: string, allowance: Omit<Allowance, 'requestId'>): ToolCall;
  deny(sessionId: string, requestId: string, denial: Omit<Denial, 'requestId'>): ToolCall;
}

export const DIALECTS: Readonly<Record<Toolset, Dialect>> = {
  compact: {
    watch: (sessionId, waitMs) => ['claude_code_check', { action: 'wait', sessionId, waitMs }],
    isAtRest: ({ status }) => ['idle', 'error', 'cancelled'].includes(status),
    openRequests: ({ actions }) => actions ?? [],
    requestId: (request) => request.requestId,
    allow: (sessionId, requestId, permissionOptions) => [
      'claude_code_check',
      { action: 'respond_permission', sessionId, requestId, decision: 'allow', permissionOptions },
    ],
    deny: (sessionId, requestId, { message, ...rest }) => [
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
  },
  explicit: {
    watch: (sessionId, waitMs) => ['claude_get_status', { sessionId, waitMs }],
    isAtRest: ({ status }) => ['completed', 'error', 'interrupted'].includes(status),
    openRequests: ({ pendingInputs }) => pendingInputs,
    requestId: (request) => request.inputId,
    allow: (sessionId, inputId, details) => ['claude_respond', { sessionId, inputId, decision: 'allow', ...details }],
    deny: (sessionId, inputId, { message, ...rest }) => [
      'claude_respond',
      { sessionId, inputId, decision: 'deny', ...(message !== undefined && { reason: message }), ...rest },
    ],
  },
};
