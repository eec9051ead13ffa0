import type { Settings } from '../../config/load-settings.ts';
import { SettingsError } from '../../config/settings-error.ts';
import type { Engine } from '../../engine/engine.ts';
import type { EngineServices } from '../../engine/services.ts';
import type { ServerIdentity } from '../../mcp/server.ts';
import type { Store } from '../../store/contract.ts';
import type { SignInCodes } from '../sign-in.ts';
import { mcpServersOver } from './mcp/mcp-servers.ts';
import { newSessionKey } from './mcp/session-id.ts';
import type { Route } from './route.ts';
import { serveHttp, type HttpOptions, type HttpServer } from './serve-http.ts';

export interface HttpHost {
  readonly engine: Engine;
  readonly store: Store;
  readonly settings: Settings;
  readonly identity: ServerIdentity;
  readonly codes: SignInCodes;
  readonly routes: readonly Route[];
  readonly dashboardDir: string;
  readonly log: EngineServices['log'];
}

/** The hub's HTTP server as the operator has set it up. What cannot be is a `SettingsError`, before anything listens. */
export async function startHttp(host: HttpHost): Promise<HttpServer> {
  const { engine, store, settings, identity, log, ...rest } = host;
  const accessTokens = await accessTokensOf(settings, log);
  // Of the store and not of the process: a form that was shown before a restart can be answered after it.
  const stateKey = await store.ensureSetting('form-state-key', newSessionKey());
  return serveHttp({
    ...rest,
    settings,
    store,
    log,
    mcp: mcpServersOver(engine, identity, stateKey),
    record: (entry) => engine.audit.record(entry),
    ...(accessTokens && { accessTokens }),
  });
}

async function accessTokensOf(
  { oauthIssuer: issuer, oauthAudience: audience }: Settings,
  log: HttpHost['log'],
): Promise<HttpOptions['accessTokens']> {
  if ((issuer === undefined) !== (audience === undefined))
    throw new SettingsError('--oauth-issuer and --oauth-audience are only valid together.');
  if (issuer === undefined || audience === undefined) return undefined;
  const { OauthTokens } = await import('../oauth.ts');
  return new OauthTokens({ issuer, audience, log });
}
