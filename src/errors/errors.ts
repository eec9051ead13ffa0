export const ERROR_CODES = [
  'INVALID_ARGUMENT',
  'SESSION_NOT_FOUND',
  'SESSION_BUSY',
  'PERMISSION_DENIED',
  'PERMISSION_REQUEST_NOT_FOUND',
  'TOO_MANY_SESSIONS',
  'TIMEOUT',
  'CANCELLED',
  'UNAVAILABLE',
  'INTERNAL',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

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
