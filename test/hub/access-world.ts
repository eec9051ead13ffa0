/** The hub's complete HTTP interface in this process, with scripted agents and a client for every kind of principal. */

import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { StreamableHTTPClientTransport, type Client } from '@modelcontextprotocol/client';
import { onTestFinished } from 'vitest';
import type { Role } from '../../src/schema/enums.ts';
import type { WorkspaceModule } from '../../src/engine/ports.ts';
import { serveHubHttp, stateKeyIn, type HttpPartOptions } from '../../src/hub/http-part.ts';
import type { Route } from '../../src/hub/http/route.ts';
import { SystemClock } from '../../src/engine/clock.ts';
import { HubMetrics } from '../../src/hub/metrics/hub-metrics.ts';
import { openPusher } from '../../src/hub/notify/pusher.ts';
import { Once } from '../../src/hub/once.ts';
import { SignInCodes } from '../../src/hub/auth/sign-in.ts';
import { Tokens } from '../../src/hub/auth/tokens.ts';
import type { TurnAnswer } from '../../src/schema/api.ts';
import { fullWork, workReport } from '../../src/workspace/report/work-report.ts';
import { Workspaces } from '../../src/workspace/workspace.ts';
import type { Store } from '../../src/store/contract.ts';
import { connectClient } from '../harness/connect-client.ts';
import type { PushService } from '../harness/push-service.ts';
import { eventually } from '../harness/eventually.ts';
import { STORES } from '../store/stores.ts';
import { startTestHub, type TestHub } from './test-hub.ts';

/** `owner` and `other` are callers; the sessions in question are the owner's. */
export const PEOPLE = ['owner', 'other', 'viewer', 'approver', 'admin'] as const;
export type Person = (typeof PEOPLE)[number];

export type Headers = Readonly<Record<string, string>>;

/** A session owned by `owner`, at rest or with an open request, and a token to revoke. */
export interface Made {
  readonly sessionId: string;
  readonly requestId: string;
  readonly tokenId: string;
}

export interface AccessWorld {
  readonly url: string;
  readonly routes: readonly Route[];
  readonly hub: TestHub;
  readonly store: Store;
  token(person: Person): Headers;
  /** The same person in a browser, with a fresh sign-in. */
  browser(person: Person): Promise<Headers>;
  /** Invalid credentials, by name. */
  readonly refused: Readonly<Record<string, Headers>>;
  make(state: 'idle' | 'waiting'): Promise<Made>;
  connect(person: Person, toolset: 'compact' | 'explicit'): Promise<Client>;
  call(method: string, where: string, headers: Headers, body?: object): Promise<{ status: number; text: string }>;
}

const ROLE: Readonly<Record<Person, Role>> = {
  owner: 'caller',
  other: 'caller',
  viewer: 'viewer',
  approver: 'approver',
  admin: 'admin',
};

async function workspacesWithoutGit(): Promise<WorkspaceModule> {
  const nowhere = path.join(tmpdir(), `ccm-no-worktrees-${randomBytes(4).toString('hex')}`);
  const workspaces = new Workspaces({ env: {}, worktreesDir: nowhere, snapshotsDir: nowhere });
  return { workspaces, fullWork, workReport };
}

export interface AccessWorldOptions extends Pick<HttpPartOptions, 'outboxLimits'> {
  /** A push service of the test's own, which the hub then knows and sends to. */
  readonly pushService?: Pick<PushService, 'host' | 'ca'>;
}

export async function openAccessWorld({ outboxLimits, pushService }: AccessWorldOptions = {}): Promise<AccessWorld> {
  const store = await STORES.sqlite();
  const auditLog = path.join(tmpdir(), `ccm-no-audit-${randomBytes(4).toString('hex')}.jsonl`);
  const argv = ['--max-sessions', '1000', '--audit-log', auditLog];
  const hub = await startTestHub(store, { argv, workspaces: workspacesWithoutGit });
  const { engine, by } = hub;
  const push = await openPusher({ ...engine.settings, pushHosts: pushService ? [pushService.host] : [] }, store, {
    clock: new SystemClock(),
    audit: engine.audit,
    warn: () => undefined,
    ...(pushService && { ca: pushService.ca }),
  });
  if (pushService) push.start();
  const server = await serveHubHttp({
    engine,
    store,
    hub: by,
    once: new Once({ store, hub: by, now: Date.now }),
    settings: { ...engine.settings, listen: { host: '127.0.0.1', port: 0 } },
    identity: { name: 'claude-code-mcp', version: '0.0.0-test' },
    codes: new SignInCodes(),
    dashboardDir: tmpdir(),
    stateKey: await stateKeyIn(store),
    metrics: new HubMetrics({ engine, store, version: '0.0.0-test' }),
    push,
    log: () => undefined,
    slowDown: () => Promise.resolve(),
    ...(outboxLimits && { outboxLimits }),
  });
  onTestFinished(async () => {
    await server.close();
    await push.close();
    await engine.close();
  });
  const { url } = server;
  const tokens = new Tokens(store);
  const made = await Promise.all(
    PEOPLE.map(async (person) => {
      const { token } = await tokens.create({ name: person, role: ROLE[person], attended: false });
      return [person, token] as const;
    }),
  );
  const secrets = Object.fromEntries(made) as Record<Person, string>;

  const call: AccessWorld['call'] = async (method, where, headers, body) => {
    const response = await fetch(url + where, {
      method,
      headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    if (response.headers.get('content-type')?.startsWith('text/event-stream') === true) {
      await response.body?.cancel();
      return { status: response.status, text: '' };
    }
    return { status: response.status, text: await response.text() };
  };
  const signIn = async (token: string): Promise<{ cookie: string; 'x-claude-code-key': string }> => {
    const response = await fetch(`${url}/api/v1/sign-in`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token }),
    });
    const [cookie = ''] = (response.headers.get('set-cookie') ?? '').split(';');
    return { cookie, 'x-claude-code-key': ((await response.json()) as { key: string }).key };
  };

  let count = 0;
  const make: AccessWorld['make'] = async (state) => {
    const name = `made-${count++}`;
    const body = { prompt: name, cwd: process.cwd() };
    const started = await call('POST', '/api/v1/sessions', bearer(secrets.owner), body);
    const { sessionId } = (JSON.parse(started.text) as TurnAnswer).session;
    const agent = hub.agents.find(({ launch }) => launch.sessionId === sessionId)!;
    if (state === 'idle') agent.answer('done');
    else void agent.ask(name, 'Bash', { command: 'ls' });
    await eventually(async () => (await store.session(sessionId))?.state.tag === state, {
      what: `session ${name} is ${state}`,
    });
    const { row } = await tokens.create({ name, role: 'viewer', attended: false });
    return { sessionId, requestId: state === 'waiting' ? name : 'none', tokenId: row.id };
  };

  return {
    url,
    routes: server.routes,
    hub,
    store,
    token: (person) => bearer(secrets[person]),
    browser: async (person) => ({ ...(await signIn(secrets[person])) }),
    refused: await refusedCredentials(store, tokens, secrets.admin, signIn),
    make,
    connect: (person, toolset) =>
      connectClient(
        new StreamableHTTPClientTransport(new URL(`/mcp?toolset=${toolset}`, url), {
          requestInit: { headers: bearer(secrets[person]) },
        }),
        // Roles mean the same in both eras, so each toolset is tested in only one.
        { era: toolset === 'compact' ? 'modern' : 'legacy' },
      ),
    call,
  };
}

function bearer(token: string): Headers {
  return { authorization: `Bearer ${token}` };
}

async function refusedCredentials(
  store: Store,
  tokens: Tokens,
  good: string,
  signIn: (token: string) => Promise<{ cookie: string; 'x-claude-code-key': string }>,
): Promise<Record<string, Headers>> {
  const anHourAgo = Date.now() - 3_600_000;
  const tokensThen = new Tokens(store, () => anHourAgo);
  const expired = await tokensThen.create({
    name: 'expired',
    role: 'admin',
    attended: false,
    expiresAt: anHourAgo + 60_000,
  });
  const revoked = await tokens.create({ name: 'revoked', role: 'admin', attended: false });
  const signedInBefore = await signIn(revoked.token);
  await tokens.revoke(revoked.row.id);
  const [one, two] = [await signIn(good), await signIn(good)];
  return {
    none: {},
    'another scheme': { authorization: `Basic ${Buffer.from(`a:${good}`).toString('base64')}` },
    unknown: bearer(`ccmcp_${'A'.repeat(43)}`),
    shortened: bearer(good.slice(0, -1)),
    'other letters': bearer(good.toLowerCase()),
    expired: bearer(expired.token),
    revoked: bearer(revoked.token),
    'signed in with a revoked token': { ...signedInBefore },
    'an unsigned JWT': bearer('eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.'),
    'a cookie alone': { cookie: one.cookie },
    'a key alone': { 'x-claude-code-key': one['x-claude-code-key'] },
    'the key of another browser': { cookie: one.cookie, 'x-claude-code-key': two['x-claude-code-key'] },
  };
}
