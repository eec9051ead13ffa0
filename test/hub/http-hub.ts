/** The hub's HTTP server in this process: on its own, or over an engine that drives the real Claude Code. */

import { type Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { expect, onTestFinished } from 'vitest';
import { thisHost } from '../../src/config/host.ts';
import { loadSettings, type SettingsOverrides } from '../../src/config/load-settings.ts';
import { hostEngine } from '../../src/engine/engine-host.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { Role } from '../../src/schema/enums.ts';
import type { AuditRecord } from '../../src/engine/ports.ts';
import { mcpServersOver, type McpServers } from '../../src/hub/http/mcp/mcp-servers.ts';
import { newSessionKey } from '../../src/hub/http/mcp/kept-sessions.ts';
import { serveHttp, type HttpOptions, type HttpServer } from '../../src/hub/http/serve-http.ts';
import { SignInCodes } from '../../src/hub/auth/sign-in.ts';
import { Tokens } from '../../src/hub/auth/tokens.ts';
import type { Store } from '../../src/store/contract.ts';
import { connectClient, type ClientSetup } from '../harness/connect-client.ts';
import { createWorld, type LibraryWorld } from '../library/library-world.ts';
import { STORES } from '../store/stores.ts';

export interface HttpHub {
  readonly url: string;
  readonly store: Store;
  readonly tokens: Tokens;
  readonly codes: SignInCodes;
  readonly records: AuditRecord[];
  /** All log lines. */
  readonly lines: string[];
  token(role?: Role, more?: { attended?: boolean; expiresAt?: number; name?: string }): Promise<string>;
  connect(setup: ClientSetup & { token: string; query?: string }): Promise<Client>;
  /** Stops it and starts another on the same store and port. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export type HubSetup = Partial<Omit<HttpOptions, 'settings' | 'mcp'>> & {
  settings?: Partial<HttpOptions['settings']>;
  mcp?: McpServers | (() => McpServers);
};

export async function openHttpHub({ settings, mcp, ...setup }: HubSetup = {}): Promise<HttpHub> {
  const store = setup.store ?? (await STORES.sqlite());
  const codes = setup.codes ?? new SignInCodes(setup.now);
  const records: AuditRecord[] = [];
  const lines: string[] = [];
  const serve = (port: number): Promise<HttpServer> =>
    serveHttp({
      codes,
      record: (entry) => records.push(entry),
      log: (level, line) => lines.push(`${level} ${line}`),
      ...setup,
      store,
      mcp: typeof mcp === 'function' ? mcp() : (mcp ?? NO_TOOLS),
      settings: {
        listen: { host: '127.0.0.1', port },
        tlsCert: undefined,
        tlsKey: undefined,
        behindProxy: undefined,
        oauthIssuer: undefined,
        oauthAudience: undefined,
        toolset: 'compact',
        ...settings,
      },
    });
  let server = await serve(0);
  const { url } = server;
  const tokens = new Tokens(store, setup.now);
  const close = (): Promise<void> => server.close();
  onTestFinished(close);
  return {
    url,
    store,
    tokens,
    codes,
    records,
    lines,
    async token(role = 'caller', { name = role, attended = false, expiresAt } = {}) {
      return (await tokens.create({ name, role, attended, expiresAt })).token;
    },
    connect: ({ token, query = '', ...client }) => {
      const target = new URL(`/mcp${query}`, url);
      const transport = new StreamableHTTPClientTransport(target, {
        requestInit: { headers: { authorization: `Bearer ${token}` } },
      });
      return connectClient(transport, client);
    },
    async restart() {
      await server.close();
      server = await serve(Number(new URL(url).port));
      // Pooled connections of this process notice only a moment later that the first server has closed.
      await expect
        .poll(() =>
          fetch(`${url}/healthz`).then(
            ({ ok }) => ok,
            () => false,
          ),
        )
        .toBe(true);
    },
    close,
  };
}

/** For tests that never call a tool. */
const NO_TOOLS: McpServers = {
  open: () => {
    throw new Error('This test has no MCP server');
  },
  newClient: () => {
    throw new Error('This test has no MCP server');
  },
  forget: () => undefined,
  onToolsChanged: () => () => undefined,
  watchResources: () => () => undefined,
};

export interface EngineHub extends HttpHub {
  readonly world: LibraryWorld;
  readonly engine: Engine;
}

export async function openEngineHub(setup: HubSetup & { engine?: SettingsOverrides } = {}): Promise<EngineHub> {
  const { engine: engineSettings, ...rest } = setup;
  const world = await createWorld();
  const host = { ...thisHost(), env: world.env, cwd: world.place.project };
  const settings = loadSettings({ argv: [], ...host }, { permissionTimeoutMs: 0, ...engineSettings });
  const { engine } = hostEngine(settings, { ...host, log: () => undefined });
  onTestFinished(() => engine.close());
  const key = newSessionKey();
  const hub = await openHttpHub({
    ...rest,
    mcp: () => mcpServersOver(engine, { name: 'claude-code-mcp', version: '0.0.0-test' }, key),
  });
  return { ...hub, world, engine };
}
