import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Settings } from '../config/load-settings.ts';
import { EngineClient } from '../engine/client.ts';
import { OTHERS_ACCESS, type Principal } from '../engine/rules/access.ts';
import type { Engine } from '../engine/engine.ts';
import type { EngineServices } from '../engine/ports.ts';
import type { Rules } from '../engine/rules/rules.ts';
import type { ServerIdentity } from '../mcp/server.ts';
import type { HubRef } from '../schema/store.ts';
import type { Store } from '../store/contract.ts';
import type { ApiContext } from './api/define-route.ts';
import { apiRoutes } from './api/routes.ts';
import type { HubMetrics } from './metrics/hub-metrics.ts';
import { mcpServersOver } from './http/mcp/mcp-servers.ts';
import { serveHttp, type HttpOptions, type HttpServer } from './http/serve-http.ts';
import { onceForTools, type Once } from './once.ts';
import type { RuleBook } from './rules/rule-book.ts';
import type { SignInCodes } from './auth/sign-in.ts';
import { Tokens } from './auth/tokens.ts';

export interface HttpPartOptions extends Pick<HttpOptions, 'slowDown' | 'isReady' | 'outboxLimits'> {
  readonly engine: Engine;
  readonly store: Store;
  readonly hub: HubRef;
  readonly once: Once;
  readonly settings: Settings;
  readonly identity: ServerIdentity;
  readonly codes: SignInCodes;
  readonly dashboardDir: string;
  readonly stateKey: string;
  readonly rules?: Pick<RuleBook, 'look'>;
  readonly metrics: HubMetrics;
  readonly push: ApiContext['push'];
  readonly log: EngineServices['log'];
}

/** The key that signs state held by a client between two calls; it survives restarts. */
export function stateKeyIn(store: Store): Promise<string> {
  return store.ensureSetting('form-state-key', randomBytes(32).toString('base64url'));
}

/** Someone at the other end of a local connection, under the rules that it brought. */
export interface LocalCaller {
  readonly principal: Principal;
  readonly rules: Rules;
}

export interface HubHttp extends Omit<HttpServer, 'serve'> {
  /** Serves the API over a connection whose other end is known. */
  serveApi(socket: Socket, caller: LocalCaller): void;
}

/** Everything the hub does over HTTP, put together: MCP, the API, the dashboard. */
export async function serveHubHttp(options: HttpPartOptions): Promise<HubHttp> {
  const { engine, store, hub, once, settings, identity, codes, dashboardDir, stateKey, metrics, rules, push, log } =
    options;
  const { slowDown, isReady, outboxLimits } = options;
  // HTTP callers name the directory to work in: there is no default on this machine.
  const httpRules = engine.rulesFor({ settings, cwd: undefined, access: OTHERS_ACCESS });
  const ownRules = new WeakMap<Principal, Rules>();
  const { serve, ...server } = await serveHttp({
    settings,
    store,
    mcp: mcpServersOver(engine, identity, stateKey, metrics.observer('tcp'), onceForTools(once)),
    codes,
    record: (entry) => engine.audit.record(entry),
    log,
    dashboardDir,
    ...(slowDown && { slowDown }),
    ...(isReady && { isReady }),
    ...(outboxLimits && { outboxLimits }),
    routes: [
      metrics.route(),
      ...apiRoutes({
        store,
        hub,
        once,
        version: identity.version,
        settings,
        push,
        tokens: new Tokens(store),
        clientFor: (principal) =>
          new EngineClient(engine, { principal, rules: ownRules.get(principal) ?? httpRules, showsForms: false }),
        stored: async () => engine.stored(),
        signInCode: () => codes.issue(),
        rulesChanged: async () => rules?.look(),
        now: Date.now,
        served: (...call) => metrics.requestServed(...call),
        report: (error) =>
          log('error', `api: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`),
      }),
    ],
  });
  return {
    ...server,
    serveApi(socket, caller) {
      ownRules.set(caller.principal, caller.rules);
      serve(socket, caller.principal);
    },
  };
}
