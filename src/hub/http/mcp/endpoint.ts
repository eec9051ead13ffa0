import type { IncomingMessage, ServerResponse } from 'node:http';
import { isLegacyRequest, type JSONRPCMessage } from '@modelcontextprotocol/server';
import type { Settings } from '../../../config/load-settings.ts';
import type { Store } from '../../../store/contract.ts';
import type { Outbox, Outboxes } from '../../../mcp/outbox.ts';
import { keepProtoKey } from '../../../transports/frame-transport.ts';
import type { Principal } from '../../../engine/rules/access.ts';
import { hasBody, parseJson, type BodyReader } from '../body.ts';
import { HttpRefusal } from '../error-response.ts';
import type { Target } from '../gate.ts';
import { sendWebResponse, sendWhole } from '../respond.ts';
import { LegacySessions, requestIds, type McpExchange } from './legacy-sessions.ts';
import type { McpServers } from './mcp-servers.ts';
import { ModernClients } from './modern-clients.ts';
import { TOOLSET_NAMES } from '../../../schema/setting-choices.ts';

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
