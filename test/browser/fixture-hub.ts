import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import type { ApiMe, ApiRequest, ApiSession, ApiSessionDetail } from '../../src/schema/api.ts';
import type { ApiEvent, DiffAnswer, StreamMessages } from '../../src/schema/api-events.ts';
import type { ApiRule, PacksAnswer, ReplayAnswer, ApiAuditEntry, ApiToken } from '../../src/schema/api-admin.ts';
import { builtServer } from '../harness/built-server.ts';

export const BUILT = path.join(path.dirname(builtServer()), 'dashboard');
const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; manifest-src 'self'; worker-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/** What the API returns. Tests change it and notify the page with `publish`. */
export interface FixtureData {
  me: ApiMe;
  sessions: ApiSession[];
  requests: ApiRequest[];
  events: Record<string, ApiEvent[]>;
  diffs: Record<string, DiffAnswer>;
  audit: ApiAuditEntry[];
  tokens: ApiToken[];
  rules: ApiRule[];
  packs: PacksAnswer['packs'];
  replay: ReplayAnswer;
  details: Record<string, Partial<ApiSessionDetail>>;
}

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly key: string | undefined;
  readonly body: unknown;
}

/** Serves the hub's API from memory, so that pages can be tested without Claude Code. */
export class FixtureHub {
  readonly data: FixtureData;
  readonly calls: Call[] = [];
  /** Responses that replace the usual ones, by method and path. */
  readonly overrides = new Map<string, (call: Call) => { status: number; json: unknown } | undefined>();
  readonly #server: Server;
  readonly #streams = new Set<ServerResponse>();
  #position = 1;

  private constructor(data: FixtureData) {
    this.data = data;
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => {
        response.writeHead(500).end(String(error));
      });
    });
  }

  static async open(data: FixtureData): Promise<FixtureHub> {
    const hub = new FixtureHub(data);
    await new Promise<void>((resolve) => hub.#server.listen(0, '127.0.0.1', resolve));
    return hub;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  publish<Name extends keyof StreamMessages>(name: Name, data: StreamMessages[Name]): void {
    this.#position++;
    for (const stream of this.#streams) this.#send(stream, name, data);
  }

  cutStreams(): void {
    for (const stream of this.#streams) stream.destroy();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #send(stream: ServerResponse, name: string, data: unknown): void {
    stream.write(`id: ${this.#position}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url);
    if (!url.pathname.startsWith('/api/v1/')) return this.#file(url.pathname, response);
    let text = '';
    for await (const piece of request) text += String(piece);
    const name = url.pathname.slice('/api/v1/'.length);
    const call: Call = {
      method: request.method ?? 'GET',
      path: name,
      key: request.headers['idempotency-key'] as string | undefined,
      body: text === '' ? undefined : JSON.parse(text),
    };
    this.calls.push(call);
    const signedIn = request.headers['x-claude-code-key'] === 'fixture-key';
    const answer =
      this.overrides.get(`${call.method} ${name}`)?.(call) ??
      (name === 'sign-in' || signedIn
        ? this.#answer(call, url.searchParams)
        : { status: 401, json: { error: { code: 'UNAUTHENTICATED', message: 'Sign in.' } } });
    if (answer === 'stream') return this.#stream(response);
    response.writeHead(answer.status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer.json));
  }

  #answer(call: Call, query: URLSearchParams): { status: number; json: unknown } | 'stream' {
    const { data } = this;
    const ok = (json: unknown) => ({ status: 200, json });
    const [root, id, part] = call.path.split('/').map(decodeURIComponent);
    if (root === 'sign-in') {
      return ok({
        key: 'fixture-key',
        principal: data.me.principal,
        expiresAt: new Date(Date.now() + 4e7).toISOString(),
      });
    }
    if (root === 'push') return ok({ publicKey: 'BA', subscriptions: [] });
    if (root === 'events') return 'stream';
    if (root === 'me') return ok(data.me);
    if (root === 'costs')
      return ok({
        totalUsd: 1.5,
        days: [{ day: '2026-11-18', costUsd: 1.5 }],
        projects: [{ directory: '/home/anna/shop', costUsd: 1.5, sessions: 2 }],
        owners: [{ id: 'local', name: 'local', costUsd: 1.5, sessions: 2 }],
        unknown: 1,
      });
    if (root === 'directories') {
      const path = (query.get('path') ?? '').replace('~', '/home/anna');
      return ok({ path, directories: [`${path}/shop`, `${path}/docs`] });
    }
    if (root === 'sign-in-codes') return ok({ code: 'another' });
    if (root === 'audit') return ok({ entries: data.audit });
    if (root === 'rules') {
      if (id === 'packs') return ok({ packs: data.packs });
      if (id === 'replay') return ok(data.replay);
      return call.method === 'GET' ? ok({ rules: data.rules }) : ok({ rule: data.rules[0] });
    }
    if (root === 'tokens') {
      return call.method === 'GET'
        ? ok({ tokens: data.tokens })
        : ok({ id: 't9', name: 'made', role: 'caller', attended: false, token: 'ccm_made' });
    }
    if (root === 'requests' && id === undefined)
      return ok({ requests: data.requests.filter(({ status }) => status === 'open') });
    if (root === 'requests') {
      const request = data.requests.find(({ requestId }) => requestId === id);
      if (!request)
        return { status: 404, json: { error: { code: 'PERMISSION_REQUEST_NOT_FOUND', message: 'No such request.' } } };
      if (call.method === 'GET') return ok(request);
      if (request.outcome) {
        return {
          status: 409,
          json: { error: { code: 'PERMISSION_REQUEST_NOT_FOUND', message: 'Settled.' }, outcome: request.outcome },
        };
      }
      const { decision, message } = call.body as { decision: 'allow' | 'deny'; message?: string };
      request.status = 'settled';
      request.outcome = {
        decision,
        by: data.me.principal.name,
        source: 'human',
        at: new Date().toISOString(),
        ...(message !== undefined && { message }),
      };
      this.publish('request', request);
      return ok({ request });
    }
    if (root === 'sessions' && id === undefined) {
      const search = (query.get('search') ?? '').toLowerCase();
      const status = query.get('status')?.split(',');
      const offset = Number(query.get('after') ?? 0);
      const limit = Number(query.get('limit') ?? 50);
      const found = data.sessions.filter(
        (one) =>
          `${one.title ?? ''} ${one.cwd}`.toLowerCase().includes(search) && (status?.includes(one.status) ?? true),
      );
      const more = found.length > offset + limit;
      return ok({ sessions: found.slice(offset, offset + limit), ...(more && { next: String(offset + limit) }) });
    }
    const session = data.sessions.find(({ sessionId }) => sessionId === id);
    if (!session) return { status: 404, json: { error: { code: 'SESSION_NOT_FOUND', message: 'No such session.' } } };
    const events = data.events[session.sessionId] ?? [];
    if (part === undefined) {
      const detail: ApiSessionDetail = {
        ...session,
        options: { cwd: session.cwd },
        needs: [],
        requests: data.requests.filter((one) => one.sessionId === id && one.status === 'open'),
        queued: [],
        lastEventId: events.at(-1)?.id ?? 0,
        ...data.details[session.sessionId],
      };
      return ok(detail);
    }
    if (part === 'events') {
      const after = Number(query.get('after') ?? 0);
      const page = events.filter((event) => event.id > after).slice(0, Number(query.get('limit') ?? 200));
      return ok({ events: page, lastId: events.at(-1)?.id ?? 0, droppedThrough: 0 });
    }
    if (part === 'diff') {
      return ok(
        data.diffs[session.sessionId] ?? { filesChanged: 0, insertions: 0, deletions: 0, diff: '', totalBytes: 0 },
      );
    }
    return ok({ session, done: true });
  }

  #stream(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    this.#streams.add(response);
    response.on('close', () => this.#streams.delete(response));
    this.#send(response, 'live', { position: this.#position, store: 'fixture' });
  }

  async #file(name: string, response: ServerResponse): Promise<void> {
    const file = path.join(BUILT, name === '/' ? 'index.html' : path.basename(name));
    const content = await readFile(file).catch(() => undefined);
    if (!content) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, {
      'content-type': TYPES[path.extname(file)] ?? 'application/octet-stream',
      'content-security-policy': POLICY,
    });
    response.end(content);
  }
}
