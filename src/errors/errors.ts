/** What each code says, and what a caller can do about it; the list of codes and its documentation in one. */
export const ERRORS = {
  INVALID_ARGUMENT: {
    meaning: 'A parameter is missing, unknown, of the wrong kind, or does not fit the others.',
    remedy: 'The message names it, and the nearest known name. Correct the call.',
  },
  SESSION_NOT_FOUND: {
    meaning:
      'This server does not know the session: it was forgotten after its rest, the server was restarted, or the id is wrong.',
    remedy:
      'List the sessions. One that is still on disk can be resumed: `claude_send_message` does it by itself, `claude_code_reply` where the operator allows it (`ALLOW_DISK_RESUME`, `RESUME_SECRET`).',
  },
  SESSION_BUSY: {
    meaning: 'The session works or waits for an answer, or another Claude Code on this machine has it open.',
    remedy:
      'Wait, interrupt it, or have the message queued (`whenBusy: "queue"`). If the message names a pid, close the session there, or fork it.',
  },
  PERMISSION_DENIED: {
    meaning: 'A rule of the operator forbids it.',
    remedy: 'The message names the rule. Leave the option out, or ask the operator.',
  },
  PERMISSION_REQUEST_NOT_FOUND: {
    meaning: 'The request has its outcome: somebody answered it, it expired, or its turn ended. Or it never was.',
    remedy: 'Look at the session for what is open now.',
  },
  TOO_MANY_SESSIONS: {
    meaning: 'As many Claude Code processes as allowed (`MAX_SESSIONS`) are at work.',
    remedy: 'Wait for one to rest, or cancel one.',
  },
  TIMEOUT: {
    meaning: 'Claude Code did not start or react in time.',
    remedy:
      'Run `claude-code-mcp doctor`. On a slow machine raise `sessionInitTimeoutMs` or the operator’s `START_TIMEOUT_MS`.',
  },
  CANCELLED: {
    meaning: 'The session was cancelled for good, or the server is shutting down.',
    remedy: 'Start a new session.',
  },
  UNAVAILABLE: {
    meaning: 'Something that the call needs is away: a store, a hub or a machine. Nothing was done.',
    remedy: 'The message names it. Call again when it is back.',
  },
  INTERNAL: {
    meaning: 'Claude Code could not be run, or the server failed in a way nobody foresaw.',
    remedy: 'The message has what is known. Run `claude-code-mcp doctor`; if that finds nothing, report it.',
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

/** The one wording of an error that callers see. Anything unforeseen becomes INTERNAL. */
export function formatError(error: unknown): string {
  if (error instanceof DomainError) return `Error [${error.code}]: ${error.message}`;
  return `Error [INTERNAL]: ${messageOf(error)}`;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
