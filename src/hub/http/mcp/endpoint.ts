import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  isLegacyRequest,
  type JSONRPCMessage,
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  type McpHttpHandler,
} from '@modelcontextprotocol/server';
import type { Settings } from '../../../config/load-settings.ts';
import type { Store } from '../../../store/contract.ts';
import type { Outbox, Outboxes } from '../../../mcp/outbox.ts';
import { keepProtoKey } from '../../../transports/frame-transport.ts';
import type { Principal } from '../../../engine/rules/access.ts';
import { hasBody, parseJson, type BodyReader } from '../body.ts';
import { HttpRefusal } from '../route.ts';
import type { Target } from '../gate.ts';
import { sendWebResponse, sendWhole } from '../respond.ts';
import { LegacySessions, requestIds, type McpExchange, type McpAnswer } from './legacy-sessions.ts';
import type { McpServers } from './mcp-servers.ts';
import { TOOLSET_NAMES } from '../../../schema/setting-choices.ts';
import type { ModernClient } from '../../../mcp/forms/call-forms.ts';
import { showsForms } from '../../../mcp/forms/client-forms.ts';

/** Prompts carry pictures. */
const MAX_BYTES = 16 * 1024 * 1024;
const METHODS = ['GET', 'POST', 'DELETE'];
const STOPPING = 'The hub is stopping. Reconnect, and check the session before you repeat the call.';

export interface McpCall {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly target: Target;
  readonly principal: Principal;
  /** What the principal has not read yet. */
  readonly outbox: Outbox;
  /** Aborted when the client has disconnected. */
  readonly signal: AbortSignal;
  /** Tells a client that waits to send its body to go ahead. */
  readonly invite: () => void;
  /** Takes over how the response ends when the hub stops. */
  readonly endWith: (end: () => void) => void;
}

export interface McpEndpoint {
  handle(call: McpCall): Promise<void>;
  close(): Promise<void>;
}

/** `/mcp`: both eras of the protocol on one URL. */
export async function openMcpEndpoint({
  servers,
  store,
  toolset,
  bodies,
  now,
  outboxes,
  report,
}: {
  readonly servers: McpServers;
  readonly store: Store;
  readonly toolset: Settings['toolset'];
  readonly bodies: BodyReader;
  readonly now: () => number;
  readonly outboxes: Outboxes;
  readonly report: (error: Error) => void;
}): Promise<McpEndpoint> {
  const legacy = await LegacySessions.open(servers, store, now, outboxes);
  const modern = new ModernClients(servers, now, report, outboxes);

  const handle = async (call: McpCall): Promise<void> => {
    const { request, response, target, principal, outbox, signal, invite, endWith } = call;
    if (!METHODS.includes(request.method ?? ''))
      throw new HttpRefusal(405, 'INVALID_ARGUMENT', 'Method not allowed.', { allow: METHODS.join(', ') });
    const chosen = toolsetOf(target, toolset);
    let body: unknown;
    if (hasBody(request)) {
      invite();
      body = parsedBody(await bodies.read(request, MAX_BYTES));
    }
    const webRequest = new Request(`http://hub${target.path}`, {
      method: request.method ?? 'GET',
      headers: webHeaders(request),
      signal,
    });
    const exchange: McpExchange = { request: webRequest, body, principal, toolset: chosen };
    // Unversioned requests without a body come from older clients; the library refuses all others.
    const isLegacy = request.method === 'POST' && body === undefined ? true : await isLegacyRequest(webRequest, body);
    const { response: answer, done } = await (isLegacy ? legacy : modern).handle(exchange);
    // A client reading a stream would wait for the rest of its timeout.
    endWith(() => endCalls(response, requestIds(body)));
    try {
      await sendWebResponse(response, answer, outbox);
    } finally {
      done();
    }
  };

  return {
    handle: (call) =>
      handle(call).catch((error: unknown) => {
        if (!(error instanceof HttpRefusal) || call.response.headersSent) throw error;
        const code = error.status === 400 ? -32700 : -32000;
        // The unread rest of a body would be taken for the next request.
        const closing = hasBody(call.request) && !call.request.complete ? { connection: 'close' } : {};
        sendWhole(call.response, {
          status: error.status,
          headers: { ...error.headers, ...closing },
          json: { jsonrpc: '2.0', error: { code, message: error.message }, id: null },
        });
      }),
    async close() {
      await Promise.all([legacy.close(), modern.close()]);
    },
  };
}

/** The part of the URL that the client chooses. An older session keeps the one it started with. */
function toolsetOf({ query }: Target, usual: Settings['toolset']): Settings['toolset'] {
  const given = query.get('toolset');
  if (given === null) return usual;
  const known = TOOLSET_NAMES.find((one) => one === given);
  if (!known) throw new HttpRefusal(400, 'INVALID_ARGUMENT', `toolset: ${TOOLSET_NAMES.join(' or ')}.`);
  return known;
}

function parsedBody(bytes: Buffer): unknown {
  const body = parseJson(bytes);
  for (const message of Array.isArray(body) ? body : [body])
    if (typeof message === 'object' && message !== null) keepProtoKey(message as JSONRPCMessage);
  return body;
}

/** Without credentials: nothing behind this point needs them, and errors quote headers. */
function webHeaders({ headers }: IncomingMessage): Headers {
  const kept = new Headers();
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !WITHHELD.has(name)) kept.set(name, Array.isArray(value) ? value.join(', ') : value);
  return kept;
}

const WITHHELD = new Set(['authorization', 'connection', 'content-length', 'cookie', 'expect', 'transfer-encoding']);

function endCalls(response: ServerResponse, ids: readonly (string | number)[]): void {
  const isStream = String(response.getHeader('content-type') ?? '').startsWith('text/event-stream');
  if (response.writableEnded || !response.headersSent || !isStream) return;
  const frames = ids.map((id) => {
    const message = { jsonrpc: '2.0', id, error: { code: -32000, message: STOPPING } };
    return `event: message\ndata: ${JSON.stringify(message)}\n\n`;
  });
  response.end(frames.join(''));
}

/** A person may have a form open for ten minutes, and the call with the answer comes after that. */
const IDLE_MS = 60 * 60_000;
const SWEEP_MS = 60_000;
const MAX_SUBSCRIPTIONS = 256;

interface Endpoint {
  readonly handler: McpHttpHandler;
  /** By whether they can show forms: two programs with one token may differ. */
  readonly clients: { readonly forms: ModernClient; readonly none: ModernClient };
  readonly clientOf: WeakMap<Request, ModernClient>;
  usedAt: number;
  reading: number;
  readonly unwatch: () => void;
}

/** Clients of 2026-07-28: each request is its own connection; what lasts between them is kept per principal. */
class ModernClients {
  readonly #servers: McpServers;
  readonly #now: () => number;
  readonly #report: (error: Error) => void;
  readonly #outboxes: Outboxes;
  readonly #endpoints = new Map<string, Endpoint>();
  readonly #timer: NodeJS.Timeout;
  readonly #unsubscribe: () => void;

  constructor(servers: McpServers, now: () => number, report: (error: Error) => void, outboxes: Outboxes) {
    this.#outboxes = outboxes;
    this.#servers = servers;
    this.#now = now;
    this.#report = report;
    this.#timer = setInterval(() => this.#dropIdle(), SWEEP_MS).unref();
    this.#unsubscribe = servers.onToolsChanged(() => {
      for (const { handler } of this.#endpoints.values()) handler.notify.toolsChanged();
    });
  }

  async handle({ request, body, principal, toolset }: McpExchange): Promise<McpAnswer> {
    const endpoint = this.#endpoint(principal, toolset);
    const { handler, clients, clientOf } = endpoint;
    clientOf.set(request, declaresForms(body) ? clients.forms : clients.none);
    endpoint.reading++;
    const done = (): void => {
      endpoint.reading--;
      endpoint.usedAt = this.#now();
    };
    try {
      const response = await handler.fetch(request, body === undefined ? {} : { parsedBody: body });
      return { response, done };
    } catch (error) {
      done();
      throw error;
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#unsubscribe();
    await Promise.all([...this.#endpoints.keys()].map((key) => this.#drop(key)));
  }

  #endpoint(principal: Principal, toolset: Settings['toolset']): Endpoint {
    // A token with a different role is a different endpoint, and so is one that became attended.
    const key = JSON.stringify([principal.id, principal.role, principal.attended, toolset]);
    const known = this.#endpoints.get(key);
    if (known) return known;
    const clientOf = new WeakMap<Request, ModernClient>();
    const outbox = this.#outboxes.of(principal.id).shared();
    const handler = createMcpHandler(
      ({ requestInfo }) => {
        const client = requestInfo && clientOf.get(requestInfo);
        return this.#servers.open({ era: 'modern', principal, toolset, outbox, ...(client && { client }) });
      },
      // Some clients give up on a call without a byte within a minute.
      { legacy: 'reject', responseMode: 'sse', maxSubscriptions: MAX_SUBSCRIPTIONS, onerror: this.#report },
    );
    const clients = {
      forms: this.#servers.newClient(principal, toolset),
      none: this.#servers.newClient(principal, toolset),
    };
    const unwatch = this.#servers.watchResources(principal, {
      updated: (uri) => handler.notify.resourceUpdated(uri),
      listChanged: () => handler.notify.resourcesChanged(),
    });
    const endpoint: Endpoint = { handler, clients, clientOf, unwatch, usedAt: this.#now(), reading: 0 };
    this.#endpoints.set(key, endpoint);
    return endpoint;
  }

  #dropIdle(): void {
    for (const [key, { reading, usedAt }] of this.#endpoints)
      if (reading === 0 && this.#now() - usedAt >= IDLE_MS) void this.#drop(key);
  }

  async #drop(key: string): Promise<void> {
    const endpoint = this.#endpoints.get(key);
    this.#endpoints.delete(key);
    if (!endpoint) return;
    endpoint.unwatch();
    await endpoint.handler.close();
    this.#servers.forget(endpoint.clients.forms);
    this.#servers.forget(endpoint.clients.none);
  }
}

/** The library refuses anything malformed afterwards. */
function declaresForms(body: unknown): boolean {
  const meta = (body as { params?: { _meta?: Record<string, unknown> | null } | null } | null)?.params?._meta;
  const declared = meta?.[CLIENT_CAPABILITIES_META_KEY];
  return typeof declared === 'object' && declared !== null && showsForms(declared);
}
