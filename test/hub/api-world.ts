/** The API's routes over a real store, with an engine scripted by the test. */

import { onTestFinished } from 'vitest';
import { EngineClient } from '../../src/engine/client.ts';
import { DomainError } from '../../src/errors/errors.ts';
import type { ApiContext } from '../../src/hub/api/define-route.ts';
import { apiRoutes } from '../../src/hub/api/routes.ts';
import {
  errorResponse,
  type EventStream,
  type Route,
  type RouteResponse,
  type ServerSentEvent,
} from '../../src/hub/http/route.ts';
import type { Command } from '../../src/schema/commands.ts';
import type { Principal } from '../../src/engine/rules/access.ts';
import type { Role } from '../../src/schema/enums.ts';
import { Once } from '../../src/hub/once.ts';
import { Tokens } from '../../src/hub/auth/tokens.ts';
import type { EventBody } from '../../src/schema/events.ts';
import type { Change, HubRef } from '../../src/schema/store.ts';
import type { Store } from '../../src/store/contract.ts';
import { append, event, T0 } from '../store/rows.ts';
import { STORES } from '../store/stores.ts';
import type { TestHub } from './test-hub.ts';

export function principalNamed(id: string, role: Role, more: Partial<Principal> = {}): Principal {
  return { id, name: id, kind: 'token', role, attended: false, ...more };
}

export const ADMIN = principalNamed('anna', 'admin');
export const APPROVER = principalNamed('paul', 'approver');
export const VIEWER = principalNamed('vera', 'viewer');
export const CALLER = principalNamed('carl', 'caller');
export const OTHER = principalNamed('olga', 'caller');

/** A call that reached the engine. */
export type Reached = readonly [principal: string, what: string, ...details: unknown[]];

export interface ApiCallOptions {
  readonly body?: unknown;
  readonly key?: string;
  readonly headers?: Record<string, string>;
}

export interface ApiAnswer {
  readonly status: number;
  readonly json: never;
}

export function assistantMessage(sessionId: string, id: number): Change {
  const body: EventBody = { kind: 'message', role: 'assistant', blocks: [{ kind: 'text', text: `word ${id}` }] };
  return append(event(sessionId, id, { data: { body, original: { message: 'as it came' } } }));
}

export interface ApiWorld {
  readonly store: Store;
  readonly hub: HubRef;
  readonly reached: Reached[];
  readonly context: ApiContext;
  readonly routes: Route[];
  /** The engine's reaction to each call. */
  engine: Record<string, (principal: Principal, ...args: unknown[]) => unknown>;
  call(principal: Principal, method: string, path: string, options?: ApiCallOptions): Promise<ApiAnswer>;
  stream(principal: Principal, path: string, headers?: Record<string, string>): Promise<Reader>;
  write(...changes: Change[]): Promise<void>;
}

export interface Reader {
  readonly events: readonly ServerSentEvent[];
  /** Stops reading until `resume`. */
  pause(): void;
  resume(): void;
  close(): Promise<void>;
}

export interface WorldOptions {
  readonly store?: Store;
  readonly settings?: Partial<ApiContext['settings']>;
  readonly hubName?: string;
  /** A real engine instead of the scripted one. */
  readonly hub?: TestHub;
}

export async function openApi({ settings, hubName = 'hub-1', hub, ...given }: WorldOptions = {}): Promise<ApiWorld> {
  const store = given.store ?? (await STORES.sqlite());
  const { hub: id, fence } = hub?.by ?? (await store.acquireLease(hubName, 60_000, {}));
  const by: HubRef = { hub: id, fence };
  const reached: Reached[] = [];
  const engine: ApiWorld['engine'] = {};
  const context: ApiContext = {
    store,
    hub: by,
    once: new Once({ store, hub: by, now: () => T0 + 1000 }),
    version: '1.2.3',
    settings: { approvals: 'auto', auditLog: 'off', allowSensitiveSessionDetails: true, ...settings },
    push: pushUnused,
    tokens: new Tokens(store, () => T0),
    clientFor: (principal) => {
      if (!hub) return scriptedClient(principal, reached, engine);
      const rules = hub.engine.rulesFor({ settings: hub.engine.settings, cwd: undefined });
      return new EngineClient(hub.engine, { principal, rules, showsForms: false });
    },
    signInCode: () => 'code',
    stored: async () => hub?.engine.stored(),
    now: () => T0 + 1000,
    report: (error) => {
      throw error;
    },
  };
  const routes = apiRoutes(context);
  const dispatch = async (
    principal: Principal,
    method: string,
    url: string,
    { body, key, headers = {} }: ApiCallOptions,
  ): Promise<RouteResponse> => {
    const { pathname, searchParams } = new URL(url, 'http://hub');
    const found = routes.map((route) => ({ route, params: match(route, method, pathname) })).find((one) => one.params);
    if (!found?.params) throw new Error(`no route ${method} ${url}`);
    if (found.route.roles !== 'anyone' && !found.route.roles.includes(principal.role))
      return { status: 403, json: { error: { code: 'PERMISSION_DENIED', message: 'role' } } };
    try {
      return await found.route.handler({
        principal,
        path: pathname,
        params: found.params,
        query: searchParams,
        headers: { ...headers, ...(key !== undefined && { 'idempotency-key': key }) },
        body,
        signal: new AbortController().signal,
      });
    } catch (error) {
      return errorResponse(error, (unforeseen) => {
        throw unforeseen;
      });
    }
  };
  const world: ApiWorld = {
    store,
    hub: by,
    reached,
    context,
    routes,
    engine,
    async call(principal, method, path, options = {}) {
      const response = await dispatch(principal, method, path, options);
      if (!('status' in response)) throw new Error('the route returned a stream');
      return { status: response.status, json: ('json' in response ? response.json : undefined) as never };
    },
    async stream(principal, path, headers = {}) {
      const response = await dispatch(principal, 'GET', path, { headers });
      if (!('events' in response)) throw new Error(JSON.stringify(response));
      return readerOf(response.events);
    },
    write: (...changes) => store.write(changes, by),
  };
  return world;
}

const pushUnused: ApiContext['push'] = {
  publicKey: 'the hub’s key',
  subscribe: () => Promise.resolve(),
  test: () => Promise.resolve({ outcome: 'delivered' }),
};

function match({ method, path }: Route, requestMethod: string, pathname: string): Record<string, string> | undefined {
  if (method !== requestMethod) return undefined;
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '');
  const found = new RegExp(`^${path.replace(/\{\w+\}/g, '([^/]+)').replaceAll('.', '\\.')}$`).exec(pathname);
  return found
    ? Object.fromEntries(names.map((name, index) => [name, decodeURIComponent(found[index + 1] ?? '')]))
    : undefined;
}

/** An engine client that records its calls. */
function scriptedClient(principal: Principal, reached: Reached[], engine: ApiWorld['engine']): EngineClient {
  const plain: Partial<EngineClient> = { permittedModes: ['default'], writing: () => undefined };
  return new Proxy(plain as EngineClient, {
    get: (target, name) =>
      name === 'then' || name === 'allowedDirectories' || name in target
        ? Reflect.get(target, name)
        : (...args: unknown[]) => {
            if (name === 'record') return undefined;
            const what = name === 'execute' ? (args[0] as Command).kind : String(name);
            reached.push([principal.id, what, ...args]);
            const react = engine[what];
            if (!react) throw new DomainError('INTERNAL', `the test did not expect ${what}`);
            return react(principal, ...args);
          },
  });
}

function eventsIn(text: string): ServerSentEvent[] {
  return text
    .split('\n\n')
    .slice(0, -1)
    .map((frame) => {
      const { id, event, data } = Object.fromEntries(
        frame.split('\n').map((line) => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]),
      );
      return { ...(id !== undefined && { id }), ...(event !== undefined && { event }), data: JSON.parse(data ?? '') };
    });
}

function readerOf(run: (stream: EventStream) => Promise<void>): Reader {
  const closed = new AbortController();
  const events: ServerSentEvent[] = [];
  let gate: Promise<void> = Promise.resolve();
  let open = (): void => {};
  const running = run({
    closed: closed.signal,
    room: () => Promise.resolve(),
    async send(frames) {
      await gate;
      if (!closed.signal.aborted) events.push(...eventsIn(Buffer.from(frames).toString()));
    },
  });
  const close = async (): Promise<void> => {
    closed.abort();
    open();
    await running;
  };
  onTestFinished(close);
  return {
    events,
    pause: () => void (gate = new Promise((resolve) => (open = resolve))),
    resume: () => open(),
    close,
  };
}
