import { randomBytes } from 'node:crypto';
import {
  isInitializeRequest,
  WebStandardStreamableHTTPServerTransport,
  type McpServer,
  type JSONRPCMessage,
  type MessageExtraInfo,
  type Transport,
  type TransportSendOptions,
} from '@modelcontextprotocol/server';
import type { Settings } from '../../../config/load-settings.ts';
import type { Store } from '../../../store/contract.ts';
import type { Principal } from '../../../engine/rules/access.ts';
import type { Outboxes } from '../../../mcp/outbox.ts';
import {
  KeptSubscriptions,
  Tombstones,
  keptParams,
  newSessionKey,
  SessionIds,
  type SessionContents,
} from './kept-sessions.ts';
import type { McpServers } from './mcp-servers.ts';

type Toolset = Settings['toolset'];

/** Clients send no DELETE. One that comes back later does not notice: its session is reopened. */
const IDLE_MS = 30 * 60_000;
const SWEEP_MS = 60_000;
const MAX_SESSIONS = 1000;

export interface McpExchange {
  readonly request: Request;
  /** Undefined without a body. */
  readonly body: unknown;
  readonly principal: Principal;
  readonly toolset: Toolset;
}

export interface McpAnswer {
  readonly response: Response;
  /** Called when the client has read all of it, or stops reading. */
  readonly done: () => void;
}

interface LegacySession {
  readonly server: McpServer;
  readonly inner: WebStandardStreamableHTTPServerTransport;
  readonly transport: SessionTransport;
  usedAt: number;
  /** Responses that are being read. */
  reading: number;
  /** Counts the GET streams, so that the end of an earlier one is not mistaken for that of a later one. */
  streams: number;
}

/** Sessions of clients up to 2025-11-25: one server and one transport each, so that they can be asked at any time. */
export class LegacySessions {
  readonly #servers: McpServers;
  readonly #ids: SessionIds;
  readonly #tombstones: Tombstones;
  readonly #subscriptions: KeptSubscriptions;
  readonly #now: () => number;
  readonly #outboxes: Outboxes;
  readonly #live = new Map<string, Promise<LegacySession>>();
  readonly #timer: NodeJS.Timeout;

  static async open(servers: McpServers, store: Store, now: () => number, outboxes: Outboxes): Promise<LegacySessions> {
    const key = await store.ensureSetting('mcp-session-key', newSessionKey());
    return new LegacySessions(servers, new SessionIds(key), store, now, outboxes);
  }

  private constructor(servers: McpServers, ids: SessionIds, store: Store, now: () => number, outboxes: Outboxes) {
    this.#outboxes = outboxes;
    this.#servers = servers;
    this.#ids = ids;
    this.#tombstones = new Tombstones(store);
    this.#subscriptions = new KeptSubscriptions(store);
    this.#now = now;
    this.#timer = setInterval(() => void this.#closeIdle(IDLE_MS), SWEEP_MS).unref();
  }

  async handle(exchange: McpExchange): Promise<McpAnswer> {
    const { request, body, principal } = exchange;
    const id = request.headers.get('mcp-session-id');
    if (id === null) return this.#begin(exchange);
    const contents = this.#ids.read(id);
    // Sessions are private: a foreign one does not exist.
    if (contents?.principal !== standing(principal)) return whole(notFound());
    if (!this.#live.has(id) && (await this.#tombstones.has(contents.nonce))) return whole(notFound());
    if (request.method === 'DELETE') {
      await this.#tombstones.add(contents.nonce);
      await this.#subscriptions.drop(contents.nonce);
      await this.#close(id);
      return whole(new Response(null, { status: 200 }));
    }
    const session = await this.#session(id, contents, principal);
    return this.#exchange(session, request, body);
  }

  /** Ends all of them; their clients reopen them with the next hub. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#live.keys()].map((id) => this.#close(id)));
  }

  async #begin({ request, body, principal, toolset }: McpExchange): Promise<McpAnswer> {
    const kept = isInitializeRequest(body) ? keptParams(body.params) : undefined;
    if (!kept || request.method !== 'POST')
      return whole(refusal(400, -32000, 'Bad Request: an Mcp-Session-Id header or an initialize request is needed'));
    await this.#makeRoom();
    const { id, nonce } = this.#ids.mint({ principal: standing(principal), toolset, ...kept });
    const opened = this.#connect(id, principal, toolset);
    const { response, done, session } = await opened.then(async (session) => ({
      session,
      ...(await this.#exchange(session, request, body)),
    }));
    if (response.ok) {
      this.#keepSubscriptions(session, nonce);
      this.#keep(id, opened);
    } else await session.server.close().catch(() => undefined);
    return { response, done };
  }

  /** The open session, or a new one that has replayed its client's `initialize`. One at a time. */
  #session(id: string, contents: SessionContents, principal: Principal): Promise<LegacySession> {
    const live = this.#live.get(id);
    if (live) return live;
    const reopened = this.#reopen(id, contents, principal);
    this.#keep(id, reopened);
    return reopened;
  }

  async #reopen(id: string, contents: SessionContents, principal: Principal): Promise<LegacySession> {
    await this.#makeRoom();
    const session = await this.#connect(id, principal, contents.toolset);
    const { protocolVersion, capabilities, clientInfo } = contents;
    const replay = async (message: object): Promise<void> => {
      const request = new Request('http://hub/mcp', {
        method: 'POST',
        headers: {
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
          'mcp-session-id': id,
        },
      });
      const response = await session.inner.handleRequest(request, { parsedBody: { jsonrpc: '2.0', ...message } });
      await response.text();
    };
    await replay({ id: 'reopen', method: 'initialize', params: { protocolVersion, capabilities, clientInfo } });
    await replay({ method: 'notifications/initialized' });
    const uris = await this.#subscriptions.of(contents.nonce).catch(() => []);
    for (const uri of uris) await replay({ id: uri, method: 'resources/subscribe', params: { uri } });
    this.#keepSubscriptions(session, contents.nonce);
    return session;
  }

  /** Without the store the client is still told, by this hub. */
  #keepSubscriptions({ transport }: LegacySession, nonce: string): void {
    transport.onsubscription = ({ uri, isWanted }) =>
      this.#subscriptions.change(nonce, uri, isWanted).catch(() => undefined);
  }

  async #connect(id: string, principal: Principal, toolset: Toolset): Promise<LegacySession> {
    const inner = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => id });
    const transport = new SessionTransport(inner);
    const server = this.#servers.open({
      era: 'legacy',
      principal,
      toolset,
      outbox: this.#outboxes.of(principal.id).shared(),
    });
    await server.connect(transport);
    return { server, inner, transport, usedAt: this.#now(), reading: 0, streams: 0 };
  }

  async #exchange(session: LegacySession, request: Request, body: unknown): Promise<McpAnswer> {
    const { inner, transport } = session;
    const isGet = request.method === 'GET';
    // The previous one may belong to a laptop that has since been closed: the newest counts.
    if (isGet) inner.closeStandaloneSSEStream();
    session.reading++;
    session.usedAt = this.#now();
    const stream = isGet ? ++session.streams : 0;
    const ids = requestIds(body);
    const done = (): void => {
      session.reading--;
      session.usedAt = this.#now();
      transport.stoppedReading(ids);
      if (isGet && session.streams === stream) transport.hasStream = false;
    };
    try {
      const response = await inner.handleRequest(request, body === undefined ? {} : { parsedBody: body });
      if (isGet && response.ok) transport.hasStream = true;
      return { response, done };
    } catch (error) {
      done();
      throw error;
    }
  }

  #keep(id: string, session: Promise<LegacySession>): void {
    this.#live.set(id, session);
    session.catch(() => this.#live.delete(id));
  }

  async #close(id: string): Promise<void> {
    const session = this.#live.get(id);
    this.#live.delete(id);
    await session?.then(({ server }) => server.close()).catch(() => undefined);
  }

  async #makeRoom(): Promise<void> {
    for (let idleMs = IDLE_MS; this.#live.size >= MAX_SESSIONS && idleMs >= 1000; idleMs /= 4)
      await this.#closeIdle(idleMs);
  }

  async #closeIdle(idleMs: number): Promise<void> {
    for (const [id, opening] of [...this.#live]) {
      const session = await opening.catch(() => undefined);
      if (session?.reading === 0 && this.#now() - session.usedAt >= idleMs) await this.#close(id);
    }
  }
}

/** Principal and role: a subject whose next access token has a different role must not keep the previous one. */
function standing({ id, role, attended }: Principal): string {
  return JSON.stringify([id, role, attended]);
}

export function requestIds(body: unknown): (string | number)[] {
  const messages: unknown[] = Array.isArray(body) ? body : [body];
  return messages.flatMap((message) => {
    if (typeof message !== 'object' || message === null || !('method' in message) || !('id' in message)) return [];
    return typeof message.id === 'string' || typeof message.id === 'number' ? [message.id] : [];
  });
}

function whole(response: Response): McpAnswer {
  return { response, done: () => undefined };
}

function notFound(): Response {
  return refusal(404, -32001, 'Session not found');
}

function refusal(status: number, code: number, message: string): Response {
  return Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status });
}

export interface Subscription {
  readonly uri: string;
  /** False if the client no longer wants to hear about it. */
  readonly isWanted: boolean;
}

const SUBSCRIPTIONS = new Map([
  ['resources/subscribe', true],
  ['resources/unsubscribe', false],
]);

/**
 * The library's transport for one older session, with two fixes (2.4.0). Its request ids start at 0 again after a
 * restart, so that a late answer to an old question was taken for the answer to a new one; here they are unique. And it
 * drops requests to the client while no GET stream is open; here they use a call in progress, or fail at once.
 */
class SessionTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage, extra?: MessageExtraInfo) => void;
  readonly #inner: WebStandardStreamableHTTPServerTransport;
  readonly #prefix = `${randomBytes(9).toString('base64url')}-`;
  /** Unanswered client requests whose response is still being read; oldest first. */
  readonly #calls = new Set<string | number>();
  readonly #subscribing = new Map<string | number, Subscription>();
  hasStream = false;
  /** Told what the server has agreed to, before the client is. */
  onsubscription?: (subscription: Subscription) => Promise<void>;

  constructor(inner: WebStandardStreamableHTTPServerTransport) {
    this.#inner = inner;
    inner.onclose = () => this.onclose?.();
    inner.onerror = (error) => this.onerror?.(error);
    inner.onmessage = (message: JSONRPCMessage, extra?: MessageExtraInfo) => this.#receive(message, extra);
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  setSupportedProtocolVersions(versions: string[]): void {
    this.#inner.setSupportedProtocolVersions(versions);
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  /** The client no longer reads the responses to these requests; their answers are lost. */
  stoppedReading(ids: readonly (string | number)[]): void {
    for (const id of ids) {
      this.#calls.delete(id);
      this.#subscribing.delete(id);
    }
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (!('method' in message)) {
      if (message.id !== undefined) {
        this.#calls.delete(message.id);
        const subscription = this.#subscribing.get(message.id);
        this.#subscribing.delete(message.id);
        if (subscription && 'result' in message) await this.onsubscription?.(subscription);
      }
      return this.#inner.send(message);
    }
    const isRequest = 'id' in message;
    const ownId = 'id' in message ? { id: this.#prefix + String(message.id) } : {};
    const outgoing = { ...this.#withOwnIds(message), ...ownId } as JSONRPCMessage;
    const related = options?.relatedRequestId;
    if (related === undefined && this.hasStream) return this.#inner.send(outgoing);
    const call = related ?? [...this.#calls].at(-1);
    if (call !== undefined) return this.#inner.send(outgoing, { relatedRequestId: call });
    if (isRequest) throw new Error('the client has no stream open on which it could be asked');
  }

  #receive(message: JSONRPCMessage, extra: MessageExtraInfo | undefined): void {
    if ('method' in message) {
      if ('id' in message) {
        this.#calls.add(message.id);
        const uri = message.params?.['uri'];
        const isWanted = SUBSCRIPTIONS.get(message.method);
        if (isWanted !== undefined && typeof uri === 'string') this.#subscribing.set(message.id, { uri, isWanted });
      }
      this.onmessage?.(message, extra);
      if (message.method === 'notifications/cancelled') this.#cancelled(message.params);
      return;
    }
    const id = String(message.id);
    // Asked by an earlier incarnation of the hub, or never.
    if (!id.startsWith(this.#prefix)) return;
    this.onmessage?.({ ...message, id: Number(id.slice(this.#prefix.length)) }, extra);
  }

  /** The library sends no response to a cancelled call, and would leave it open. */
  #cancelled(params: Record<string, unknown> | undefined): void {
    const id = params?.['requestId'];
    if ((typeof id !== 'string' && typeof id !== 'number') || !this.#calls.delete(id)) return;
    this.#inner.closeSSEStream(id);
  }

  /** A withdrawn form names the request by its id. */
  #withOwnIds<M extends JSONRPCMessage & { method: string }>(message: M): M {
    if (message.method !== 'notifications/cancelled' || !('params' in message)) return message;
    const requestId: unknown = (message.params as { requestId?: unknown } | undefined)?.requestId;
    if (typeof requestId !== 'number') return message;
    return { ...message, params: { ...message.params, requestId: this.#prefix + String(requestId) } };
  }
}
