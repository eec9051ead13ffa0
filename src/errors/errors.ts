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
    meaning:
      'A store, hub or machine that the call needs is unavailable. Unless the message says that the outcome is unknown, nothing was done.',
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

/** What the machine lacks, whatever it was asked for. */
const SHORTAGES: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full. Free some space there',
  EDQUOT: 'the disk quota is used up. Free some space there',
  EROFS: 'the file system is read-only. Make it writable, or choose another directory',
  EMFILE: 'too many files are open. Raise the limit on open files',
  ENFILE: 'too many files are open. Raise the limit on open files',
};

/** What is wrong with a file or directory of the server's own. */
const OWN_FILES: Readonly<Record<string, string>> = {
  ...SHORTAGES,
  EACCES: 'this user has no access to it. Correct its owner and its mode, or choose another directory',
  EPERM: 'this user has no access to it. Correct its owner and its mode, or choose another directory',
  ENOTDIR: 'a file is where a directory should be. Move it away, or choose another directory',
  EISDIR: 'a directory is where a file should be. Move it away, or choose another directory',
  ELOOP: 'it is a symbolic link, which is not followed. Replace it with a file of this user',
};

/** Such as a store that is away: the same call may work later. */
export function isUnavailable(error: unknown): error is DomainError {
  return error instanceof DomainError && error.code === 'UNAVAILABLE';
}

/** A failed call is not a bug where the machine is short of something: it works again once that is fixed. */
export function shortageOf(error: unknown): DomainError | undefined {
  return describe(error, SHORTAGES);
}

/** The same for the server's own files, whose state only the operator can correct. */
export function ownFileProblem(error: unknown): DomainError | undefined {
  return describe(error, OWN_FILES);
}

/** For `catch`: an error from writing to an open file does not say which file that was. */
export function naming(file: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof Error && 'code' in error && !('path' in error)) Object.assign(error, { path: file });
    throw error;
  };
}

function describe(error: unknown, problems: Readonly<Record<string, string>>): DomainError | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code: raw, path, syscall } = error as NodeJS.ErrnoException;
  // A directory that cannot be created because there is a file.
  const code = raw === 'EEXIST' && syscall === 'mkdir' ? 'ENOTDIR' : raw;
  const problem = code !== undefined && Object.hasOwn(problems, code) ? problems[code] : undefined;
  if (problem === undefined) return undefined;
  const where = path ?? 'A file of this server';
  return new DomainError('UNAVAILABLE', `${where}: ${problem}, then try again. (${String(raw)})`, { cause: error });
}

/** One line for what the operator can correct; anything else is a bug, whose stack is needed. */
export function failureLine(error: unknown): string | undefined {
  const known = error instanceof DomainError && error.code !== 'INTERNAL' ? error : ownFileProblem(error);
  return known?.message.replaceAll(/\s*\n\s*/g, ' ');
}
