/** What each code says, and what a caller can do about it; the list of codes and its documentation in one. */
export const ERRORS = {
  INVALID_ARGUMENT: {
    meaning: 'A parameter is missing, unknown, of the wrong type, or conflicts with others.',
    remedy: 'The message names it, and the nearest known name. Correct the call.',
  },
  SESSION_NOT_FOUND: {
    meaning:
      'This server does not know the session: it was dropped after being idle, the server was restarted, or the id is wrong.',
    remedy:
      'List the sessions. One that is still on disk can be resumed: `claude_send_message` does it automatically, `claude_code_reply` if the operator allows it (`ALLOW_DISK_RESUME`, `RESUME_SECRET`).',
  },
  SESSION_BUSY: {
    meaning: 'The session is working or waiting for an answer, or another Claude Code on this machine has it open.',
    remedy:
      'Wait, interrupt it, or queue the message (`whenBusy: "queue"`). If the message names a pid, close the session there, or fork it.',
  },
  PERMISSION_DENIED: {
    meaning: 'One of the operator’s rules forbids it.',
    remedy: 'The message names the rule. Omit the option, or ask the operator.',
  },
  PERMISSION_REQUEST_NOT_FOUND: {
    meaning: 'The request is settled (answered, expired, or its turn ended), or it never existed.',
    remedy: 'Check the session for its open requests.',
  },
  TOO_MANY_SESSIONS: {
    meaning: 'The maximum number of Claude Code processes (`MAX_SESSIONS`) is in use.',
    remedy: 'Wait for a session to finish, or cancel one.',
  },
  TOO_MANY_REQUESTS: {
    meaning: 'The caller has not read the answers to its earlier calls, or keeps too much under its idempotency keys.',
    remedy: 'Read the answers, or call without a key, and check the session before you call again.',
  },
  TIMEOUT: {
    meaning: 'Claude Code did not start or respond in time.',
    remedy:
      'Run `claude-code-mcp doctor`. On a slow machine raise `sessionInitTimeoutMs` or the operator’s `START_TIMEOUT_MS`.',
  },
  CANCELLED: {
    meaning: 'The session was cancelled, or the server is shutting down.',
    remedy: 'Start a new session.',
  },
  UNAVAILABLE: {
    meaning: 'A store, hub or machine that the call needs is unavailable. Nothing was done.',
    remedy: 'The message names it. Call again when it is back.',
  },
  INTERNAL: {
    meaning: 'Claude Code could not be run, or the server failed unexpectedly.',
    remedy: 'The message says what is known. Run `claude-code-mcp doctor`; if that finds nothing, report it.',
  },
} as const satisfies Record<string, { readonly meaning: string; readonly remedy: string }>;

export type ErrorCode = keyof typeof ERRORS;

export const ERROR_CODES = Object.keys(ERRORS) as readonly ErrorCode[];

/** A failure the caller can act on: `message` says what went wrong and what to do about it. */
export class DomainError extends Error {
  override readonly name = 'DomainError';
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The only wording of an error that callers see. Anything unexpected becomes INTERNAL. */
export function formatError(error: unknown): string {
  if (error instanceof DomainError) return `Error [${error.code}]: ${error.message}`;
  return `Error [INTERNAL]: ${messageOf(error)}`;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
