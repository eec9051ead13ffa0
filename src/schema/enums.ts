/*
 * Every set of words that more than one part of the product knows, declared once. Plain values without zod, so that the
 * dashboard can use them too. What an operator may set is in `setting-choices.ts`.
 */

/** Claude Code's settings files. */
export const SETTING_SOURCES = ['user', 'project', 'local'] as const;

/** From the least rights to the most. */
export const ROLES = ['viewer', 'caller', 'approver', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/**
 * `local`: the user this process runs as. `nested`: a client that runs inside a session. `program`: a server created by
 * an embedding program. `token`, `oauth`: the holder of the credential. `person`: someone signed in to the dashboard.
 */
export const PRINCIPAL_KINDS = ['local', 'nested', 'program', 'token', 'oauth', 'person'] as const;
export type PrincipalKind = (typeof PRINCIPAL_KINDS)[number];

/** A token is given to programs, a sign-in belongs to one browser. */
export const TOKEN_KINDS = ['token', 'sign-in'] as const;

/** Which sessions a right is for. */
export const REACHES = ['all', 'own', 'none'] as const;
export type Reach = (typeof REACHES)[number];

/** `src/engine/conversation/state.ts` has the transitions. */
export const STATES_AT_WORK = ['starting', 'running', 'waiting', 'interrupting'] as const;
export const STATES_AT_REST = ['idle', 'interrupted', 'error', 'cancelled'] as const;
export const SESSION_STATES = [...STATES_AT_WORK, ...STATES_AT_REST] as const;
export type StateAtWork = (typeof STATES_AT_WORK)[number];
export type StateAtRest = (typeof STATES_AT_REST)[number];
export type SessionState = (typeof SESSION_STATES)[number];

/** How a session comes to rest: with an answer, because it was stopped, or because it failed. */
export const RESTS_AS = ['rest', 'stop', 'fail'] as const;
export type RestsAs = (typeof RESTS_AS)[number];

/** What happens to a message while the session is working. */
export const WHEN_BUSY = ['reject', 'queue'] as const;
export type WhenBusy = (typeof WHEN_BUSY)[number];

/** When a wait for several sessions ends, unless one needs an answer: all are at rest, or one comes to rest. */
export const WAIT_FOR = ['all', 'any'] as const;
export type WaitFor = (typeof WAIT_FOR)[number];

export const EVENT_TYPES = [
  'output',
  'progress',
  'permission_request',
  'permission_result',
  'result',
  'error',
] as const;

/** Who wrote a message of a conversation. */
export const MESSAGE_ROLES = ['assistant', 'user'] as const;
export type MessageRole = (typeof MESSAGE_ROLES)[number];

export const REQUEST_KINDS = ['permission', 'plan_review', 'user_question'] as const;
export type RequestKind = (typeof REQUEST_KINDS)[number];

export const VERDICTS = ['allow', 'deny'] as const;
export type Verdict = (typeof VERDICTS)[number];

/** What a standing rule decides, the strongest first. */
export const RULE_DECISIONS = ['deny', 'ask', 'allow'] as const;
export type RuleDecision = (typeof RULE_DECISIONS)[number];

/** What Claude is told when somebody denies a request without a word. */
export const DENIED_WITHOUT_WORDS = {
  caller: 'Permission denied by caller',
  human: 'Permission denied by a person',
} as const;

/** The words that somebody wrote with a decision: empty where the message only stands in for missing ones. */
export function writtenWords(message = ''): string {
  return Object.values<string>(DENIED_WITHOUT_WORDS).includes(message) ? '' : message;
}

/** What settled a request. */
export type DecisionSource = 'caller' | 'human' | 'rule' | 'timeout' | 'cancel' | 'interrupt' | 'shutdown' | 'policy';

export const DENIED_BY = [
  'caller',
  'human',
  'rule',
  'disallowedTools',
  'settings',
  'timeout',
  'interrupt',
  'policy',
] as const;
export type DeniedBy = (typeof DENIED_BY)[number];

export const TOOL_STATUSES = ['running', 'awaiting_permission', 'completed', 'denied', 'failed'] as const;
export type ToolStatus = (typeof TOOL_STATUSES)[number];

export const FILE_STATUSES = ['added', 'modified', 'deleted', 'renamed', 'type-changed'] as const;
export type FileStatus = (typeof FILE_STATUSES)[number];

export const APPLY_MODES = ['merge', 'squash', 'patch'] as const;
export type ApplyMode = (typeof APPLY_MODES)[number];

/** The work of a session that is not applied yet, or the work that was applied last. */
export const DIFF_SUBJECTS = ['open', 'applied'] as const;

/** What a status covers: since the last message, or from the oldest event kept. */
export const STATUS_SPANS = ['last', 'all'] as const;
export type StatusSpan = (typeof STATUS_SPANS)[number];

/** How much of the events and of the evidence of work an answer shows. */
export const RESPONSE_MODES = ['minimal', 'full'] as const;
export type ResponseMode = (typeof RESPONSE_MODES)[number];
export const WORK_DETAILS = ['short', 'full'] as const;
export type WorkDetail = (typeof WORK_DETAILS)[number];

export const AUDIT_KINDS = ['tool_call', 'start', 'request', 'decision', 'end', 'server'] as const;
export type AuditKind = (typeof AUDIT_KINDS)[number];
export type AuditActor = DecisionSource | 'server' | 'claude';

/** How a client speaks MCP: one session per connection, or each request for itself. */
export type ProtocolEra = 'legacy' | 'modern';

/** What a local client may ask of the hub, besides attaching to it. */
export const HUB_REQUESTS = ['status', 'sign-in', 'stop', 'leave', 'restart', 'store'] as const;
export type HubRequestKind = (typeof HUB_REQUESTS)[number];

/** Tools of Claude Code that run a command. */
export const COMMAND_TOOLS: ReadonlySet<string> = new Set(['Bash', 'PowerShell']);
/** Tools of Claude Code that write a file. */
export const EDIT_TOOLS: ReadonlySet<string> = new Set(['Edit', 'MultiEdit', 'Write', 'NotebookEdit']);

/**
 * In the `_meta` of a tool call: a repeat with the same key gets the first call's answer, and nothing is done twice. A
 * call that changes nothing is simply repeated.
 */
export const IDEMPOTENCY_META_KEY = 'claude-code-mcp/idempotency-key';
