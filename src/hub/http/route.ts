import type { IncomingHttpHeaders } from 'node:http';
import type { Principal } from '../../engine/rules/access.ts';
import type { Role } from '../../schema/enums.ts';
import type { Credential } from '../auth/authenticate.ts';
import type { API_ERROR_CODES } from '../../schema/api.ts';
import { DomainError, shortageOf, type ErrorCode } from '../../errors/errors.ts';

/**
 * A route of the hub, as data. The server has checked `Host`, `Origin`, credential, role, and the size and shape of the
 * body before a handler sees the request; what a handler throws becomes a response (`errorResponse`).
 */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Segments in braces are parameters: `/api/v1/sessions/{id}/events`. */
  readonly path: string;
  /**
   * `anyone` requires no credential. Which sessions a principal sees is checked not here but by the engine's client.
   */
  readonly roles: readonly Role[] | 'anyone';
  /** 1 MiB unless told otherwise; a larger body is refused before it is read to its end. */
  readonly maxBodyBytes?: number;
  handler(request: RouteRequest): Promise<RouteResponse>;
}

export interface RouteRequest {
  /** Who is asking; anonymous on a route for `anyone`. */
  readonly principal: Principal;
  /** What it presented; undefined on a route for `anyone`. */
  readonly credential?: Credential | undefined;
  /** Without the query. */
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** Parsed JSON, at most 100 levels deep and without a key `__proto__`; undefined without a body. */
  readonly body: unknown;
  /** Aborted when the client disconnects or the hub stops. */
  readonly signal: AbortSignal;
}

export type RouteResponse =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly json: unknown }
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly text: string;
      readonly contentType: string;
    }
  | {
      readonly headers?: Readonly<Record<string, string>>;
      /** An SSE stream: open until this resolves or the client disconnects. Keep-alives are sent by the server. */
      readonly events: (stream: EventStream) => Promise<void>;
    };

export interface EventStream {
  /**
   * One event or several, in wire format (`frameOf`). Resolves when the client's connection can take more: a caller
   * that awaits it keeps no more than this in memory for a slow reader. Resolves at once when the stream is closed.
   */
  send(frames: Uint8Array): Promise<void>;
  /** Resolves when the reader's principal has not left too much unread; rejects if it does not read. */
  room(): Promise<void>;
  /** The client disconnected, was too slow or lost its credential, or the hub is stopping. */
  readonly closed: AbortSignal;
}

export interface ServerSentEvent {
  readonly id?: string;
  readonly event?: string;
  /** Sent as JSON. */
  readonly data: unknown;
}

export interface Match {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/** Finds the route for a path. A literal segment takes precedence over a parameter, whatever the order of the table. */
export class Router {
  readonly #routes: readonly { readonly route: Route; readonly segments: readonly string[] }[];

  constructor(routes: readonly Route[]) {
    this.#routes = routes
      .map((route) => ({ route, segments: route.path.split('/') }))
      .sort((one, other) => parametersOf(one.segments) - parametersOf(other.segments));
    const keys = routes.map(({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, '{}')}`);
    const twice = keys.find((key, index) => keys.indexOf(key) !== index);
    if (twice !== undefined) throw new Error(`There are two routes for ${twice}`);
  }

  /** Undefined if no route has this path; a refusal if one does, with a different method. */
  match(method: string, path: string): Match | undefined {
    const given = path.split('/');
    const allowed: string[] = [];
    for (const { route, segments } of this.#routes) {
      const params = paramsOf(segments, given);
      if (!params) continue;
      if (route.method === method) return { route, params };
      allowed.push(route.method);
    }
    if (allowed.length === 0) return undefined;
    throw new HttpRefusal(405, 'INVALID_ARGUMENT', `${path} takes ${allowed.join(', ')}.`, {
      allow: allowed.join(', '),
    });
  }
}

function parametersOf(segments: readonly string[]): number {
  return segments.filter((segment) => segment.startsWith('{')).length;
}

function paramsOf(segments: readonly string[], given: readonly string[]): Record<string, string> | undefined {
  if (segments.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    const value = given[index] ?? '';
    if (segment.startsWith('{')) {
      const decoded = decode(value);
      if (decoded === undefined || decoded === '') return undefined;
      params[segment.slice(1, -1)] = decoded;
    } else if (segment !== value) return undefined;
  }
  return params;
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

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
