import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP, type Socket } from 'node:net';
import type { Principal } from '../../engine/rules/access.ts';
import type { Outbox, Outboxes } from '../../mcp/outbox.ts';
import type { FailedAttempts, Authenticator, Authenticated, Refused } from '../auth/authenticate.ts';
import { hasBody, parseJson, refuseProtoKeys, type BodyReader } from './body.ts';
import { errorResponse, HttpRefusal, type Route, type RouteResponse, type Match, type Router } from './route.ts';
import { checkRequest, type OwnNames, type Target } from './gate.ts';
import type { McpEndpoint } from './mcp/endpoint.ts';
import type { OpenResponse, OpenResponses } from './open-responses.ts';
import { sendEvents, sendWhole } from './respond.ts';
import type { StaticFiles } from './static-files.ts';

const MAX_BYTES = 1024 * 1024;
const MCP_PATH = '/mcp';
/** A caller who owns nothing. */
const NOBODY: Principal = { id: 'anyone', name: 'anyone', kind: 'token', role: 'caller', attended: false };

/** Anyone may read it: what exactly is wrong with the store is in the log. */
const NOT_READY = {
  status: 503,
  json: { status: 'unavailable', reason: 'The store cannot be written; the log of the hub says why.' },
};

export interface DispatcherOptions {
  /** Undefined until the hub listens. */
  readonly names: () => OwnNames | undefined;
  readonly isReady: () => boolean;
  readonly router: Router;
  readonly authenticator: Authenticator;
  /** Who is known to be at the other end of a connection; the API alone is served to them without a credential. */
  readonly callerAt: (connection: Socket) => Authenticated | undefined;
  readonly attempts: FailedAttempts;
  readonly open: OpenResponses;
  readonly outboxes: Outboxes;
  readonly bodies: BodyReader;
  readonly endpoint: McpEndpoint;
  readonly files: StaticFiles;
  /** Where clients learn which issuer issues access tokens. */
  readonly metadataUrl: (() => string) | undefined;
  readonly trustsProxy: boolean;
  readonly report: (error: unknown) => void;
}

/** What a request can say about its response while it is open. */
interface WhileOpen {
  /** Takes over how the response ends when the hub stops. */
  readonly endWith: (end: () => void) => void;
  /** Throws if its principal has too many streams. */
  readonly becomesStream: () => void;
}

/** One request, from its headers to its response: authentication comes before its content. */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #pipelines = new Pipelines();

  constructor(options: DispatcherOptions) {
    this.#options = options;
  }

  /** Never rejects. `waits`: the client sends its body only when told to. */
  async handle(request: IncomingMessage, response: ServerResponse, waits: boolean): Promise<void> {
    // A client that disconnects is not our error.
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    try {
      if (!(await this.#pipelines.turn(request, response))) return;
      await this.#serve(request, response, waits);
    } catch (error) {
      const answer = errorResponse(error, this.#options.report);
      if (response.headersSent) response.destroy();
      else if ('status' in answer) this.#send(request, response, answer);
    }
  }

  async #serve(request: IncomingMessage, response: ServerResponse, waits: boolean): Promise<void> {
    const { names: namesNow, isReady, router, endpoint, files } = this.#options;
    const names = namesNow();
    if (!names) throw new HttpRefusal(503, 'UNAVAILABLE', 'The hub is starting.');
    const target = checkRequest(request, names);
    const method = request.method ?? '';
    const isRead = method === 'GET' || method === 'HEAD';
    const invite = (): void => {
      if (waits) response.writeContinue();
    };
    if (target.path === '/healthz' && isRead)
      return this.#send(request, response, { status: 200, json: { status: 'ok' } });
    if (target.path === '/readyz' && isRead)
      return this.#send(request, response, isReady() ? { status: 200, json: { status: 'ready' } } : NOT_READY);

    if (target.path === MCP_PATH) {
      const authenticated = await this.#authenticate(request, false);
      await this.#whileOpen(authenticated, response, async (signal, { endWith, becomesStream }) => {
        if (method === 'GET') becomesStream();
        await endpoint.handle({
          request,
          response,
          target,
          principal: authenticated.principal,
          outbox: this.#outboxOf(authenticated.principal),
          signal,
          invite,
          endWith,
        });
      });
      return;
    }
    // Which routes exist is not a secret, what they return is.
    const match = router.match(method === 'HEAD' ? 'GET' : method, target.path);
    if (match) return this.#route(request, response, target, match, invite);
    if (isRead && !target.path.startsWith('/api/')) return files.send(request, response, target.path);
    await this.#authenticate(request, true);
    throw new HttpRefusal(404, 'NOT_FOUND', 'There is nothing here.');
  }

  async #route(
    request: IncomingMessage,
    response: ServerResponse,
    target: Target,
    { route, params }: Match,
    invite: () => void,
  ): Promise<void> {
    const { roles } = route;
    const authenticated = roles === 'anyone' ? undefined : await this.#authenticate(request, true);
    if (authenticated && roles !== 'anyone' && !roles.includes(authenticated.principal.role))
      throw new HttpRefusal(403, 'PERMISSION_DENIED', `The role ${authenticated.principal.role} may not do this.`);
    const principal = authenticated?.principal ?? NOBODY;
    const outbox = this.#outboxOf(principal);
    const work = async (signal: AbortSignal, open?: WhileOpen): Promise<void> => {
      const body = await this.#body(request, route, invite);
      const turn = outbox.answer();
      // What changes something is done even if its answer has to wait; that answer is small.
      if (route.method === 'GET') await turn.take(signal);
      let answer: RouteResponse;
      try {
        answer = await this.#answer(request, route, {
          principal,
          credential: authenticated?.credential,
          path: target.path,
          params,
          query: target.query,
          headers: request.headers,
          body,
          signal,
        });
        if (!('events' in answer)) return this.#send(request, response, answer, outbox);
      } finally {
        turn.end();
      }
      if (request.method === 'HEAD') this.#send(request, response, { status: 200 });
      else {
        open?.becomesStream();
        await sendEvents(response, answer, outbox);
      }
    };
    if (authenticated) await this.#whileOpen(authenticated, response, work);
    else await work(signalOf(response));
  }

  /** A wrong code or token at sign-in counts as a failed attempt like any other. */
  async #answer(
    request: IncomingMessage,
    route: Route,
    routeRequest: Parameters<Route['handler']>[0],
  ): Promise<RouteResponse> {
    try {
      return await route.handler(routeRequest);
    } catch (error) {
      if (error instanceof HttpRefusal && error.status === 401) await this.#slowDown(request, 'sign-in');
      throw error;
    }
  }

  async #body(request: IncomingMessage, { maxBodyBytes = MAX_BYTES }: Route, invite: () => void): Promise<unknown> {
    if (!hasBody(request)) return undefined;
    // Forms on other pages can send anything but this.
    if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? ''))
      throw new HttpRefusal(415, 'INVALID_ARGUMENT', 'Send a body as application/json.');
    invite();
    const body = parseJson(await this.#options.bodies.read(request, maxBodyBytes));
    refuseProtoKeys(body);
    return body;
  }

  async #authenticate(request: IncomingMessage, cookies: boolean): Promise<Authenticated> {
    const known = cookies ? this.#options.callerAt(request.socket) : undefined;
    const outcome = known ?? (await this.#options.authenticator.authenticate(request.headers, cookies));
    if ('principal' in outcome) return outcome;
    // Clients without a credential are looking for where to sign in, not guessing.
    if (outcome.refused === 'invalid') await this.#slowDown(request, 'credential');
    throw this.#refusal(outcome);
  }

  async #slowDown(request: IncomingMessage, reason: string): Promise<void> {
    if (await this.#options.attempts.failed(this.#addressOf(request), reason)) return;
    throw new HttpRefusal(429, 'TOO_MANY_REQUESTS', 'Too many failed attempts; try again later.', {
      'retry-after': '10',
    });
  }

  #refusal({ refused }: Refused): HttpRefusal {
    const metadata =
      this.#options.metadataUrl === undefined ? [] : [`resource_metadata="${this.#options.metadataUrl()}"`];
    const challenge = (...details: string[]): Record<string, string> => ({
      'www-authenticate': ['Bearer realm="claude-code-mcp"', ...details, ...metadata].join(', '),
    });
    switch (refused) {
      case 'missing':
        return new HttpRefusal(401, 'UNAUTHENTICATED', 'Send a token: Authorization: Bearer …', challenge());
      case 'invalid':
        return new HttpRefusal(
          401,
          'UNAUTHENTICATED',
          'The credential is unknown, expired or revoked.',
          challenge('error="invalid_token"'),
        );
      case 'scope':
        return new HttpRefusal(
          403,
          'PERMISSION_DENIED',
          'The access token has no scope that gives a role here.',
          challenge('error="insufficient_scope"', 'scope="caller"'),
        );
      case 'unavailable':
        return new HttpRefusal(503, 'UNAVAILABLE', 'The issuer of access tokens cannot be reached.', {
          'retry-after': '5',
        });
    }
  }

  /** Ends with the hub and with the credential. */
  async #whileOpen(
    authenticated: Authenticated,
    response: ServerResponse,
    work: (signal: AbortSignal, open: WhileOpen) => Promise<void>,
  ): Promise<void> {
    let endGracefully: (() => void) | undefined;
    const controller = new AbortController();
    response.once('close', () => controller.abort());
    const open: OpenResponse = {
      ...authenticated,
      response,
      end(why) {
        if (why === 'stopping') endGracefully?.();
        // Responses that have not started get to finish while the hub waits; a stream ends here.
        if (response.headersSent) {
          controller.abort();
          if (why === 'credential') response.destroy();
          else if (!response.writableEnded) response.end();
        }
      },
    };
    const remove = this.#options.open.add(open);
    try {
      await work(controller.signal, {
        endWith: (end) => (endGracefully = end),
        becomesStream: () => this.#options.open.becomesStream(open),
      });
    } finally {
      remove();
    }
  }

  /** A principal that is far behind with reading is refused before anything is done for it. */
  #outboxOf({ id }: Principal): Outbox {
    const caller = this.#options.outboxes.of(id);
    if (caller.isFull)
      throw new HttpRefusal(429, 'TOO_MANY_REQUESTS', 'Read the answers to your earlier requests first.', {
        'retry-after': '5',
      });
    return caller.shared();
  }

  #send(
    request: IncomingMessage,
    response: ServerResponse,
    answer: Exclude<RouteResponse, { events: unknown }>,
    outbox?: Outbox,
  ): void {
    // The unread rest of a body would be taken for the next request, or keep the connection busy.
    const isUnread = hasBody(request) && !request.complete;
    const closing = isUnread ? { ...answer, headers: { ...answer.headers, connection: 'close' } } : answer;
    sendWhole(response, closing, { withBody: request.method !== 'HEAD', outbox });
  }

  /** Behind a proxy, the last address, which the proxy added itself. */
  #addressOf(request: IncomingMessage): string {
    const forwarded = this.#options.trustsProxy ? request.headers['x-forwarded-for'] : undefined;
    const last =
      String(forwarded ?? '')
        .split(',')
        .at(-1)
        ?.trim() ?? '';
    return isIP(last) === 0 ? (request.socket.remoteAddress ?? 'unknown') : last;
  }
}

function signalOf(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => controller.abort());
  return controller.signal;
}

/** Requests on one connection that wait for the response before theirs. */
const MAX_WAITING = 32;

interface Pipeline {
  last: Promise<void>;
  waiting: number;
}

/**
 * Requests that a client sends without waiting for the responses are carried out one after another: their responses can
 * only be sent in this order, and would otherwise all be kept in memory until the client reads the first of them.
 */
class Pipelines {
  readonly #bySocket = new WeakMap<Socket, Pipeline>();

  /** Resolves with true when it is this request's turn; with false if its connection is gone by then. */
  async turn({ socket }: IncomingMessage, response: ServerResponse): Promise<boolean> {
    const pipeline = this.#bySocket.get(socket) ?? { last: Promise.resolve(), waiting: 0 };
    this.#bySocket.set(socket, pipeline);
    const { last } = pipeline;
    const isFirst = pipeline.waiting++ === 0;
    pipeline.last = new Promise<void>((resolve) => response.once('close', resolve)).then(() => {
      pipeline.waiting--;
    });
    if (pipeline.waiting > MAX_WAITING) socket.destroy();
    if (!isFirst) await last;
    return !socket.destroyed;
  }
}
