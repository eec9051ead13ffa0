import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import type { Settings } from '../../config/load-settings.ts';
import type { EngineClient } from '../../engine/client.ts';
import type { Principal } from '../../engine/rules/access.ts';
import { DomainError } from '../../errors/errors.ts';
import { parseArguments } from '../../mcp/arguments.ts';
import { isObject } from '../../schema/json.ts';
import type { Role } from '../../schema/enums.ts';
import type { HubRef } from '../../schema/store.ts';
import type { Store } from '../../store/contract.ts';
import type { Tokens } from '../auth/tokens.ts';
import { errorResponse, type Route, type RouteRequest, type RouteResponse } from '../http/route.ts';
import type { Credential } from '../auth/authenticate.ts';
import type { Pusher } from '../notify/pusher.ts';
import type { Once } from '../once.ts';

/** What the API routes need from the hub. Reads come from the store, changes go through a client. */
export interface ApiContext {
  readonly store: Store;
  /** This incarnation of this hub. */
  readonly hub: HubRef;
  readonly version: string;
  readonly settings: Pick<Settings, 'approvals' | 'auditLog' | 'allowSensitiveSessionDetails'>;
  readonly tokens: Pick<Tokens, 'create' | 'list' | 'revoke' | 'lastUses'>;
  /** Runs each idempotency key once. */
  readonly once: Once;
  readonly push: Pick<Pusher, 'publicKey' | 'subscribe' | 'test'>;
  /** The engine as this principal may use it. */
  clientFor(principal: Principal): EngineClient;
  /** Resolves when everything so far is stored; awaited before anything is reported. */
  stored(): Promise<void>;
  /** A new code for a sign-in link. */
  signInCode(): string;
  /** Resolves when the stored rules are in force on this hub. */
  rulesChanged?(): Promise<void>;
  /** Time of day. */
  now(): number;
  /** Called for every request, for metrics. */
  served?(method: string, route: string, status: number, seconds: number): void;
  /** Unexpected failures, for the log. */
  report(error: unknown): void;
}

export interface ApiCall<Query, Body> {
  readonly context: ApiContext;
  readonly principal: Principal;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  readonly headers: IncomingHttpHeaders;
  /** What the principal has presented. */
  readonly credential: Credential | undefined;
  readonly signal: AbortSignal;
  /** A hub that stopped had begun this very call, and may have carried it out. */
  readonly isRepeat: boolean;
}

/** A route as it is served and as it appears in the OpenAPI document. */
export interface ApiRoute {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** Names the operation for clients generated from the document. */
  readonly operation: string;
  readonly summary: string;
  readonly roles: readonly Role[];
  readonly query: z.ZodObject | undefined;
  readonly body: z.ZodObject | undefined;
  /** Its responses by status; errors common to all routes are omitted. */
  readonly answers: Readonly<Record<number, ApiAnswer>>;
  /** How a repeat with the same `Idempotency-Key` is answered; `run-again` if the hub stopped before the first answer. */
  readonly repeat: 'same-answer' | 'run-again' | 'refused';
  readonly maxBodyBytes?: number | undefined;
  run(call: ApiCall<never, never>): Promise<RouteResponse>;
}

export interface ApiAnswer {
  readonly description: string;
  readonly schema?: z.ZodType;
  readonly contentType?: string;
}

type Definition<Query extends z.ZodObject, Body extends z.ZodObject> = Omit<
  ApiRoute,
  'query' | 'body' | 'repeat' | 'run'
> & {
  readonly query?: Query;
  readonly body?: Body;
  readonly repeat?: ApiRoute['repeat'];
  run(call: ApiCall<z.infer<Query>, z.infer<Body>>): Promise<RouteResponse>;
};

const nothing = z.strictObject({});
type Nothing = typeof nothing;

export function defineRoute<Query extends z.ZodObject = Nothing, Body extends z.ZodObject = Nothing>(
  definition: Definition<Query, Body>,
): ApiRoute {
  return { query: undefined, body: undefined, repeat: 'same-answer', ...definition };
}

/** The routes in the form the HTTP server expects: parsed once here, writes run once per idempotency key. */
export function served(routes: readonly ApiRoute[], context: ApiContext): Route[] {
  return routes.map((route) => ({
    method: route.method,
    path: route.path,
    roles: route.roles,
    ...(route.maxBodyBytes !== undefined && { maxBodyBytes: route.maxBodyBytes }),
    handler: (request) => measured(route, context, () => handle(route, request, context)),
  }));
}

/** A stream is measured until it starts. */
async function measured(
  { method, path }: ApiRoute,
  context: ApiContext,
  run: () => Promise<RouteResponse>,
): Promise<RouteResponse> {
  if (!context.served) return run();
  const begin = performance.now();
  const tell = (response: RouteResponse): void =>
    context.served?.(method, path, 'status' in response ? response.status : 200, (performance.now() - begin) / 1000);
  try {
    const response = await run();
    tell(response);
    return response;
  } catch (error) {
    tell(errorResponse(error, () => undefined));
    throw error;
  }
}

async function handle(route: ApiRoute, request: RouteRequest, context: ApiContext): Promise<RouteResponse> {
  const { principal, credential, params, headers, signal } = request;
  const query = parseArguments(route.query ?? nothing, asObject(request.query), []);
  const body = parseArguments(route.body ?? nothing, bodyOf(request), []);
  const call = { context, principal, credential, params, query: query as never, body: body as never, headers, signal };
  if (route.method === 'GET') return route.run({ ...call, isRepeat: false });
  const write = async (isRepeat: boolean): Promise<RouteResponse> => {
    const response = await route
      .run({ ...call, isRepeat })
      .catch((error: unknown) => errorResponse(error, (unforeseen) => context.report(unforeseen)));
    audit(route, request, context, response);
    return response;
  };
  const key = headers['idempotency-key'];
  return key === undefined ? write(false) : onceFor(context.once, route, request, String(key), write);
}

/** Every call that changes something, like the tools' calls. */
function audit(
  { operation }: ApiRoute,
  { principal, params }: RouteRequest,
  context: ApiContext,
  response: RouteResponse,
): void {
  const { error, session, request } = ('json' in response ? response.json : {}) as {
    error?: { code: string };
    session?: { sessionId: string };
    request?: { sessionId: string };
  };
  const id = session?.sessionId ?? request?.sessionId ?? (operation === 'revokeToken' ? undefined : params['id']);
  context.clientFor(principal).record({
    kind: 'tool_call',
    what: `api ${operation}`,
    outcome: error?.code ?? 'ok',
    ...(id !== undefined && { session: id.slice(0, 200) }),
  });
}

function bodyOf({ body = {} }: RouteRequest): Record<string, unknown> {
  if (isObject(body)) return body;
  throw new DomainError('INVALID_ARGUMENT', 'The body must be a JSON object.');
}

function asObject(query: URLSearchParams): Record<string, string> {
  const names = [...new Set(query.keys())];
  const twice = names.find((name) => query.getAll(name).length > 1);
  if (twice !== undefined) throw new DomainError('INVALID_ARGUMENT', `${twice.slice(0, 50)} is given twice.`);
  return Object.fromEntries(query);
}

interface Answer {
  readonly status: number;
  readonly json?: unknown;
}

/** Runs a write once per `Idempotency-Key`. */
async function onceFor(
  once: Once,
  { operation, repeat }: ApiRoute,
  { principal, path, body }: RouteRequest,
  key: string,
  run: (isRepeat: boolean) => Promise<RouteResponse>,
): Promise<RouteResponse> {
  const who = { keyName: 'Idempotency-Key', key, principal: principal.id };
  const call = { ...who, operation, path, input: body, mayRunAgain: repeat === 'run-again' };
  const { answer, isRepeat } = await once.run<Answer>(
    call,
    async ({ isRepeat }) => plain(await run(isRepeat)),
    (one) => (repeat === 'refused' && one.status < 400 ? { status: one.status } : one),
  );
  if (isRepeat && repeat === 'refused' && answer.status < 400)
    throw new DomainError('INVALID_ARGUMENT', 'This was already done, and its answer is shown only once.');
  return answer;
}

/** Only JSON responses are kept; a write returns nothing else. */
function plain(response: RouteResponse): Answer {
  if (!('status' in response)) throw new TypeError('A write cannot return a stream.');
  return { status: response.status, ...('json' in response && { json: response.json }) };
}
