import { CLIENT_CAPABILITIES_META_KEY, createMcpHandler, type McpHttpHandler } from '@modelcontextprotocol/server';
import type { Settings } from '../../../config/load-settings.ts';
import type { ModernClient } from '../../../mcp/forms/call-forms.ts';
import { showsForms } from '../../../mcp/forms/client-forms.ts';
import type { Principal } from '../../../engine/rules/access.ts';
import type { Outboxes } from '../../../mcp/outbox.ts';
import type { McpAnswer, McpExchange } from './legacy-sessions.ts';
import type { McpServers } from './mcp-servers.ts';

/** A person may have a form open for ten minutes, and the call with the answer comes after that. */
const IDLE_MS = 60 * 60_000;
const SWEEP_MS = 60_000;
const MAX_SUBSCRIPTIONS = 256;

interface Endpoint {
  readonly handler: McpHttpHandler;
  /** By whether they can show forms: two programs with one token may differ. */
  readonly clients: { readonly forms: ModernClient; readonly none: ModernClient };
  readonly clientOf: WeakMap<Request, ModernClient>;
  usedAt: number;
  reading: number;
  readonly unwatch: () => void;
}

/** Clients of 2026-07-28: each request is its own connection; what lasts between them is kept per principal. */
export class ModernClients {
  readonly #servers: McpServers;
  readonly #now: () => number;
  readonly #report: (error: Error) => void;
  readonly #outboxes: Outboxes;
  readonly #endpoints = new Map<string, Endpoint>();
  readonly #timer: NodeJS.Timeout;
  readonly #unsubscribe: () => void;

  constructor(servers: McpServers, now: () => number, report: (error: Error) => void, outboxes: Outboxes) {
    this.#outboxes = outboxes;
    this.#servers = servers;
    this.#now = now;
    this.#report = report;
    this.#timer = setInterval(() => this.#dropIdle(), SWEEP_MS).unref();
    this.#unsubscribe = servers.onToolsChanged(() => {
      for (const { handler } of this.#endpoints.values()) handler.notify.toolsChanged();
    });
  }

  async handle({ request, body, principal, toolset }: McpExchange): Promise<McpAnswer> {
    const endpoint = this.#endpoint(principal, toolset);
    const { handler, clients, clientOf } = endpoint;
    clientOf.set(request, declaresForms(body) ? clients.forms : clients.none);
    endpoint.reading++;
    const done = (): void => {
      endpoint.reading--;
      endpoint.usedAt = this.#now();
    };
    try {
      const response = await handler.fetch(request, body === undefined ? {} : { parsedBody: body });
      return { response, done };
    } catch (error) {
      done();
      throw error;
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#unsubscribe();
    await Promise.all([...this.#endpoints.keys()].map((key) => this.#drop(key)));
  }

  #endpoint(principal: Principal, toolset: Settings['toolset']): Endpoint {
    // A token with a different role is a different endpoint, and so is one that became attended.
    const key = JSON.stringify([principal.id, principal.role, principal.attended, toolset]);
    const known = this.#endpoints.get(key);
    if (known) return known;
    const clientOf = new WeakMap<Request, ModernClient>();
    const outbox = this.#outboxes.of(principal.id).shared();
    const handler = createMcpHandler(
      ({ requestInfo }) => {
        const client = requestInfo && clientOf.get(requestInfo);
        return this.#servers.open({ era: 'modern', principal, toolset, outbox, ...(client && { client }) });
      },
      // Some clients give up on a call without a byte within a minute.
      { legacy: 'reject', responseMode: 'sse', maxSubscriptions: MAX_SUBSCRIPTIONS, onerror: this.#report },
    );
    const clients = {
      forms: this.#servers.newClient(principal, toolset),
      none: this.#servers.newClient(principal, toolset),
    };
    const unwatch = this.#servers.watchResources(principal, {
      updated: (uri) => handler.notify.resourceUpdated(uri),
      listChanged: () => handler.notify.resourcesChanged(),
    });
    const endpoint: Endpoint = { handler, clients, clientOf, unwatch, usedAt: this.#now(), reading: 0 };
    this.#endpoints.set(key, endpoint);
    return endpoint;
  }

  #dropIdle(): void {
    for (const [key, { reading, usedAt }] of this.#endpoints)
      if (reading === 0 && this.#now() - usedAt >= IDLE_MS) void this.#drop(key);
  }

  async #drop(key: string): Promise<void> {
    const endpoint = this.#endpoints.get(key);
    this.#endpoints.delete(key);
    if (!endpoint) return;
    endpoint.unwatch();
    await endpoint.handler.close();
    this.#servers.forget(endpoint.clients.forms);
    this.#servers.forget(endpoint.clients.none);
  }
}

/** The library refuses anything malformed afterwards. */
function declaresForms(body: unknown): boolean {
  const meta = (body as { params?: { _meta?: Record<string, unknown> | null } | null } | null)?.params?._meta;
  const declared = meta?.[CLIENT_CAPABILITIES_META_KEY];
  return typeof declared === 'object' && declared !== null && showsForms(declared);
}
