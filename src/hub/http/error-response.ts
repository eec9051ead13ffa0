import type { API_ERROR_CODES } from '../../schema/api.ts';
import { DomainError, shortageOf, type ErrorCode } from '../../errors/errors.ts';
import type { RouteResponse } from './route.ts';

const STATUS: Readonly<Record<ErrorCode, number>> = {
  INVALID_ARGUMENT: 400,
  SESSION_NOT_FOUND: 404,
  SESSION_BUSY: 409,
  PERMISSION_DENIED: 403,
  PERMISSION_REQUEST_NOT_FOUND: 404,
  TOO_MANY_SESSIONS: 429,
  TOO_MANY_REQUESTS: 429,
  TIMEOUT: 504,
  CANCELLED: 409,
  UNAVAILABLE: 503,
  INTERNAL: 500,
};

/** A refusal that an API client can tell from others by its code. */
export class HttpRefusal extends Error {
  readonly status: number;
  readonly code: (typeof API_ERROR_CODES)[number];
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    code: (typeof API_ERROR_CODES)[number],
    message: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

/** Unexpected errors go to the log, not to the client: they may quote what the client must not see. */
export function errorResponse(thrown: unknown, report: (error: unknown) => void): RouteResponse {
  const error = shortageOf(thrown) ?? thrown;
  if (error instanceof HttpRefusal) {
    const { status, code, message, headers } = error;
    return { status, headers, json: { error: { code, message } } };
  }
  if (error instanceof DomainError && error.code !== 'INTERNAL')
    return { status: STATUS[error.code], json: { error: { code: error.code, message: error.message } } };
  report(error);
  const message = 'The hub failed unexpectedly; see its log.';
  return { status: 500, json: { error: { code: 'INTERNAL', message } } };
}
