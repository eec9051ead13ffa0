import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Settings } from '../../config/load-settings.ts';
import { isLoopback } from '../../config/setting-kinds.ts';
import { SettingsError } from '../../config/bad-input.ts';
import type { AuditRecord, EngineServices } from '../../engine/ports.ts';
import type { Principal } from '../../engine/rules/access.ts';
import { messageOf } from '../../errors/errors.ts';
import { Outboxes, type OutboxLimits } from '../../mcp/outbox.ts';
import type { Store } from '../../store/contract.ts';
import { FailedAttempts, Authenticator, type AccessTokens, type Authenticated } from '../auth/authenticate.ts';
import { signInRoutes } from '../auth/sign-in-routes.ts';
import type { SignInCodes } from '../auth/sign-in.ts';
import { Tokens } from '../auth/tokens.ts';
import { BodyReader } from './body.ts';
import { Dispatcher } from './dispatch.ts';
import { ownNames, type OwnNames } from './gate.ts';
import { openMcpEndpoint } from './mcp/endpoint.ts';
import type { McpServers } from './mcp/mcp-servers.ts';
import { OpenResponses } from './open-responses.ts';
import { Router, type Route } from './route.ts';
import { staticFiles } from './static-files.ts';

export interface HttpOptions {
  readonly settings: Pick<
    Settings,
    'listen' | 'tlsCert' | 'tlsKey' | 'behindProxy' | 'oauthIssuer' | 'oauthAudience' | 'toolset'
  >;
  readonly store: Store;
  /** Whether the hub can do what a balancer would send it. */
  readonly isReady?: () => boolean;
  readonly mcp: McpServers;
  readonly codes: SignInCodes;
  readonly record: (entry: AuditRecord) => void;
  readonly log: EngineServices['log'];
  /** `/api/v1` and everything else the hub serves. */
  readonly routes?: readonly Route[];
  /** For tests: overrides the settings. */
  readonly accessTokens?: AccessTokens;
  /** Where the dashboard was built. */
  readonly dashboardDir?: string;
  readonly now?: () => number;
  /** For tests: how long failed attempts wait. */
  readonly slowDown?: (ms: number) => Promise<unknown>;
  /** For tests: shorter time-outs. */
  readonly limits?: Pick<ServerOptions, 'headersTimeout' | 'requestTimeout' | 'connectionsCheckingInterval'>;
  /** For tests: smaller bounds on what a principal may leave unread. */
  readonly outboxLimits?: Partial<OutboxLimits>;
}

export interface HttpServer {
  /** Where browsers and clients on this machine reach it. */
  readonly url: string;
  /** Everything it serves besides `/mcp`, `/healthz`, `/readyz` and the dashboard's files. */
  readonly routes: readonly Route[];
  /** Serves a connection that someone else has accepted, and whose other end is this principal. */
  readonly serve: (socket: Socket, principal: Principal) => void;
  /** Ends requests in progress cleanly, within three seconds. Idempotent. */
  close(): Promise<void>;
}

const LIMITS: ServerOptions = {
  maxHeaderSize: 32 * 1024,
  headersTimeout: 10_000,
  /** For the whole request, including the body: one that trickles in is ended. */
  requestTimeout: 60_000,
  /** Longer than proxies keep theirs, so that none writes to a closing connection. */
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 1_000,
};
const MAX_CONNECTIONS = 4096;
const CLOSE_WITHIN_MS = 3_000;

export async function serveHttp(options: HttpOptions): Promise<HttpServer> {
  const {
    settings,
    store,
    mcp,
    codes,
    record,
    log,
    routes = [],
    dashboardDir,
    now = Date.now,
    limits,
    slowDown,
    isReady = () => true,
    outboxLimits,
  } = options;
  const tls = await checkedTls(settings);
  const accessTokens = options.accessTokens ?? (await accessTokensOf(settings, log));
  const tokens = new Tokens(store, now);
  /** Known once the hub listens. */
  const bound: { port: number; names?: OwnNames } = { port: settings.listen.port };
  const isSecure = (host: string | undefined): boolean =>
    bound.names?.originOf(host ?? '').startsWith('https:') === true;
  // Cookies are shared across ports: two hubs on one host must not overwrite each other's.
  const cookieName = (host: string | undefined): string =>
    isSecure(host) ? '__Host-claude-code-hub' : `claude-code-hub-${String(bound.port)}`;
  const authenticator = new Authenticator({ tokens, accessTokens, cookieName, now });
  const bodies = new BodyReader();
  const outboxes = new Outboxes(outboxLimits);
  const endpoint = await openMcpEndpoint({
    servers: mcp,
    store,
    toolset: settings.toolset,
    bodies,
    now,
    outboxes,
    report: (error) => log('debug', `mcp: ${error.message}`),
  });
  const open = new OpenResponses((credential) => authenticator.stillHolds(credential));
  const origin = (): string => settings.behindProxy ?? urlOf(settings, bound.port, tls !== undefined);
  const answered: readonly Route[] = [
    ...signInRoutes({ tokens, codes, cookieName, isSecure, now, record }),
    ...(accessTokens?.routes(origin) ?? []),
    ...routes,
  ];
  const callers = new WeakMap<Socket, Authenticated>();
  const dispatcher = new Dispatcher({
    callerAt: (socket) => callers.get(socket),
    names: () => bound.names,
    isReady,
    router: new Router(answered),
    authenticator,
    attempts: new FailedAttempts({
      now,
      ...(slowDown && { wait: slowDown }),
      report: ({ from, reason, count }) =>
        record({
          kind: 'server',
          who: 'policy',
          what: 'authentication',
          outcome: 'refused',
          details: { from, reason, count },
        }),
    }),
    open,
    outboxes,
    bodies,
    endpoint,
    files: staticFiles(dashboardDir, tls !== undefined || settings.behindProxy !== undefined),
    metadataUrl: accessTokens && (() => `${origin()}/.well-known/oauth-protected-resource/mcp`),
    trustsProxy: settings.behindProxy !== undefined,
    report: (error) => log('error', `http: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`),
  });
  const listener: RequestListener = (request, response) => void dispatcher.handle(request, response, false);
  const server = start(tls, { ...LIMITS, ...limits }, listener);
  // Listens nowhere: it is handed connections. They are local, so they need no TLS.
  const local = createServer({ ...LIMITS, ...limits }, listener);
  // A body is requested only once the caller is known.
  server.on('checkContinue', (request: IncomingMessage, response) => void dispatcher.handle(request, response, true));
  await listening(server, settings.listen);
  const { port } = server.address() as AddressInfo;
  bound.port = port;
  bound.names = ownNames({
    host: settings.listen.host,
    port,
    isLoopback: isLoopback(settings.listen.host),
    certificate: tls?.cert,
    publicOrigin: settings.behindProxy,
  });
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    open.close();
    await endpoint.close();
    server.closeIdleConnections();
    const force = setTimeout(() => server.closeAllConnections(), CLOSE_WITHIN_MS).unref();
    const idle = setInterval(() => server.closeIdleConnections(), 50).unref();
    await closed;
    clearTimeout(force);
    clearInterval(idle);
  };
  const url = urlOf(settings, port, tls !== undefined);
  return {
    url,
    routes: answered,
    serve(socket, principal) {
      callers.set(socket, { principal, credential: { kind: 'connection', expiresAt: undefined } });
      local.emit('connection', socket);
      socket.resume();
    },
    close: () => (closing ??= close()),
  };
}

function start(
  tls: { cert: string; key: string } | undefined,
  limits: ServerOptions,
  listener: RequestListener,
): Server {
  let server: Server;
  try {
    server = tls
      ? createTlsServer({ ...limits, ...tls, minVersion: 'TLSv1.2' }, listener)
      : createServer(limits, listener);
  } catch (error) {
    throw new SettingsError(`--tls-cert and --tls-key cannot be used: ${messageOf(error)}`);
  }
  server.maxConnections = MAX_CONNECTIONS;
  return server;
}

/** Configuration errors are reported before anything listens. */
async function accessTokensOf(
  { oauthIssuer: issuer, oauthAudience: audience }: HttpOptions['settings'],
  log: HttpOptions['log'],
): Promise<AccessTokens | undefined> {
  if ((issuer === undefined) !== (audience === undefined))
    throw new SettingsError('--oauth-issuer and --oauth-audience are only valid together.');
  if (issuer === undefined || audience === undefined) return undefined;
  const { OauthTokens } = await import('../auth/oauth.ts');
  return new OauthTokens({ issuer, audience, log });
}

async function listening(server: Server, { host, port }: Settings['listen']): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'EADDRINUSE' ? 'another program uses this port. Stop it, or choose another port' : error.message;
      reject(new SettingsError(`--listen ${host}:${String(port)}: ${why}.`));
    });
    server.listen({ host, port }, resolve);
  });
  server.on('error', () => undefined);
}

/** An unspecified address is reached by name; where that matters, the operator sets the public URL. */
function urlOf({ listen: { host } }: Pick<Settings, 'listen'>, port: number, isTls: boolean): string {
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `${isTls ? 'https' : 'http'}://${name}:${String(port)}`;
}

export interface Tls {
  readonly cert: string;
  readonly key: string;
}

/** What goes over the network is encrypted, or the hub does not start. */
async function checkedTls({
  listen,
  tlsCert,
  tlsKey,
  behindProxy,
}: Pick<Settings, 'listen' | 'tlsCert' | 'tlsKey' | 'behindProxy'>): Promise<Tls | undefined> {
  if ((tlsCert === undefined) !== (tlsKey === undefined))
    throw new SettingsError('--tls-cert and --tls-key are only valid together.');
  if (tlsCert === undefined || tlsKey === undefined) {
    if (isLoopback(listen.host) || behindProxy !== undefined) return undefined;
    throw new SettingsError(
      `--listen ${listen.host} is not loopback: give --tls-cert and --tls-key, or --behind-proxy with the public URL.`,
    );
  }
  return { cert: await read('--tls-cert', tlsCert), key: await read('--tls-key', tlsKey) };
}

async function read(flag: string, file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new SettingsError(`${flag} cannot be read: ${messageOf(error)}`);
  }
}
