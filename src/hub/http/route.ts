import type { IncomingHttpHeaders } from 'node:http';
import type { Principal } from '../../engine/rules/principal.ts';
import type { Credential } from '../auth/credential.ts';
import type { Role } from '../../schema/enums.ts';

/**
 * A route of the hub, as data. The server has checked `Host`, `Origin`, credential, role, and the size and shape of the
 * body before a handler sees the request; what a handler throws becomes a response (`error-response.ts`).
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
