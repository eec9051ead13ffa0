import { McpServer } from '@modelcontextprotocol/server';
import { expect, test } from 'vitest';
import type { Role } from '../../src/schema/enums.ts';
import type { AccessTokens } from '../../src/hub/auth/authenticate.ts';
import type { McpServers } from '../../src/hub/http/mcp/mcp-servers.ts';
import { keptParams, newSessionKey, SessionIds } from '../../src/hub/http/mcp/kept-sessions.ts';
import { ModernClient } from '../../src/mcp/forms/call-forms.ts';
import { openHttpHub, type HttpHub } from './http-hub.ts';

/** MCP servers whose tools show a form, except for `wait`, which never returns. */
class Servers implements McpServers {
  readonly opened: McpServer[] = [];
  /** The subscriptions of each server. */
  readonly subscribed: Set<string>[] = [];
  readonly newClient = (principal: ConstructorParameters<typeof ModernClient>[0]): ModernClient =>
    new ModernClient(principal);
  readonly forget = (): void => undefined;
  readonly onToolsChanged = (): (() => void) => () => undefined;
  readonly watchResources = (): (() => void) => () => undefined;

  open(): McpServer {
    const capabilities = { tools: {}, resources: { subscribe: true } };
    const connection = new McpServer({ name: 'test', version: '1' }, { capabilities });
    const { server } = connection;
    const subscribed = new Set<string>();
    server.setRequestHandler('resources/subscribe', async ({ params: { uri } }) => {
      if (uri === 'test://refused') throw new Error('no');
      subscribed.add(uri);
      return {};
    });
    server.setRequestHandler('resources/unsubscribe', async ({ params: { uri } }) => {
      subscribed.delete(uri);
      return {};
    });
    this.subscribed.push(subscribed);
    server.setRequestHandler('tools/list', async () => ({ tools: [] }));
    server.setRequestHandler('tools/call', async ({ params }) => {
      if (params.name === 'wait') await new Promise(() => undefined);
      const answer = await server.request({
        method: 'elicitation/create',
        params: { mode: 'form', message: params.name, requestedSchema: { type: 'object', properties: {} } },
      });
      return { content: [{ type: 'text', text: JSON.stringify(answer) }] };
    });
    this.opened.push(connection);
    return connection;
  }
}

const HEADERS = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 'init',
  method: 'initialize',
  params: {
    protocolVersion: '2025-06-18',
    capabilities: { elicitation: {}, experimental: { big: { text: 'x'.repeat(10_000) } } },
    clientInfo: { name: 'older', version: '1' },
  },
};

class OlderClient {
  readonly hub: HttpHub;
  readonly token: string;
  id: string | undefined;

  constructor(hub: HttpHub, token: string) {
    this.hub = hub;
    this.token = token;
  }

  get headers(): Record<string, string> {
    return {
      ...HEADERS,
      authorization: `Bearer ${this.token}`,
      ...(this.id !== undefined && { 'mcp-session-id': this.id }),
    };
  }

  async open(): Promise<this> {
    const response = await this.post(INITIALIZE);
    this.id = response.headers.get('mcp-session-id') ?? undefined;
    await response.text();
    await this.post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return this;
  }

  post(message: object): Promise<Response> {
    return fetch(`${this.hub.url}/mcp`, { method: 'POST', headers: this.headers, body: JSON.stringify(message) });
  }

  async subscribe(id: number, uri: string, how: 'subscribe' | 'unsubscribe' = 'subscribe'): Promise<void> {
    await (await this.post({ jsonrpc: '2.0', id, method: `resources/${how}`, params: { uri } })).text();
  }

  list(id: number): Promise<Response> {
    return this.post({ jsonrpc: '2.0', id, method: 'tools/list' });
  }

  end(): Promise<Response> {
    return fetch(`${this.hub.url}/mcp`, { method: 'DELETE', headers: this.headers });
  }
}

/** Reads messages from an SSE stream, one by one. */
function messagesOf(response: Response): () => Promise<Record<string, unknown>> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return async () => {
    for (;;) {
      const [, data] = /data: (.*)\n\n/.exec(text) ?? [];
      if (data !== undefined) {
        text = text.slice(text.indexOf('\n\n') + 2);
        return JSON.parse(data) as Record<string, unknown>;
      }
      const { value, done } = await reader.read();
      if (done) throw new Error(`the stream ended: ${text}`);
      text += value.replace(/: keepalive\n\n/g, '');
    }
  };
}

test('a session the hub has forgotten is reopened once, even for concurrent calls', async () => {
  const servers = new Servers();
  const hub = await openHttpHub({ mcp: servers });
  const client = await new OlderClient(hub, await hub.token()).open();
  expect(client.id!.length).toBeLessThan(1_000);
  expect(servers.opened).toHaveLength(1);
  await hub.restart();
  const answers = await Promise.all([1, 2, 3, 4, 5].map((id) => client.list(id)));
  for (const answer of answers) expect(await answer.text()).toContain('"tools":[]');
  expect(servers.opened).toHaveLength(2);
});

test('a reopened session keeps its client’s subscriptions, and no others', async () => {
  const servers = new Servers();
  const hub = await openHttpHub({ mcp: servers });
  const token = await hub.token();
  const [client, other] = [await new OlderClient(hub, token).open(), await new OlderClient(hub, token).open()];
  for (const [id, uri] of ['test://kept', 'test://left', 'test://refused', 'test://late'].entries())
    await client.subscribe(id, uri);
  await client.subscribe(10, 'test://left', 'unsubscribe');
  await other.subscribe(11, 'test://other');
  await hub.restart();
  // Reopening the stream may be all the client does.
  const stream = await fetch(`${hub.url}/mcp`, { headers: client.headers });
  expect([...servers.subscribed[2]!]).toEqual(['test://kept', 'test://late']);
  await stream.body!.cancel();
  await client.subscribe(12, 'test://late', 'unsubscribe');
  await client.subscribe(13, 'test://new');
  await hub.restart();
  await (await client.list(14)).text();
  expect([...servers.subscribed[3]!]).toEqual(['test://kept', 'test://new']);
  await client.end();
  const left = await hub.store.setting('mcp-subscriptions');
  expect(left).toContain('test://other');
  expect(left).not.toContain('test://kept');
});

test('a session its client ended stays ended, even after a restart', async () => {
  const hub = await openHttpHub({ mcp: new Servers() });
  const client = await new OlderClient(hub, await hub.token()).open();
  expect((await client.end()).status).toBe(200);
  expect((await client.list(1)).status).toBe(404);
  await hub.restart();
  expect((await client.list(2)).status).toBe(404);
});

test('a session id is useless to another principal, or if altered', async () => {
  const hub = await openHttpHub({ mcp: new Servers() });
  const client = await new OlderClient(hub, await hub.token('caller', { name: 'owner' })).open();
  const thief = new OlderClient(hub, await hub.token('admin', { name: 'thief' }));
  thief.id = client.id;
  for (const attempt of [
    () => thief.list(1),
    () => thief.end(),
    () => fetch(`${hub.url}/mcp`, { headers: thief.headers }),
  ])
    expect((await attempt()).status).toBe(404);
  expect((await client.list(1)).status).toBe(200);
  const [payload, signature] = client.id!.split('.') as [string, string];
  const forged = Buffer.from(Buffer.from(payload, 'base64url').toString().replace('compact', 'explicit')).toString(
    'base64url',
  );
  for (const id of [`${forged}.${signature}`, payload, `${client.id!}x`, 'a.b', '.', 'x'.repeat(5_000)]) {
    client.id = id;
    expect((await client.list(2)).status).toBe(404);
  }
  client.id = undefined;
  expect((await client.list(3)).status).toBe(400);
});

test('a form is sent on the client’s stream, or without one in the response of the waiting call', async () => {
  const hub = await openHttpHub({ mcp: new Servers() });
  const client = await new OlderClient(hub, await hub.token()).open();
  const call = (id: number, name: string): Promise<Response> =>
    client.post({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: {} } });
  const answer = (id: unknown): Promise<Response> =>
    client.post({ jsonrpc: '2.0', id, result: { action: 'accept', content: {} } });

  const first = messagesOf(await call(1, 'first'));
  const form = await first();
  expect(form).toMatchObject({ method: 'elicitation/create', params: { message: 'first' } });
  expect((await answer(form['id'])).status).toBe(202);
  expect(await first()).toMatchObject({ id: 1, result: { content: [{ text: expect.stringContaining('accept') }] } });

  const stream = messagesOf(await fetch(`${hub.url}/mcp`, { headers: client.headers }));
  const second = messagesOf(await call(2, 'second'));
  const other = await stream();
  expect(other).toMatchObject({ method: 'elicitation/create', params: { message: 'second' } });
  await answer(other['id']);
  expect(await second()).toMatchObject({ id: 2, result: expect.anything() });
});

test('a late answer to a form from before the restart does not answer a new one', async () => {
  const hub = await openHttpHub({ mcp: new Servers() });
  const client = await new OlderClient(hub, await hub.token()).open();
  const ask = async (id: number): Promise<[unknown, () => Promise<Record<string, unknown>>]> => {
    const next = messagesOf(
      await client.post({
        jsonrpc: '2.0',
        id,
        method: 'tools/call',
        params: { name: 'delete everything?', arguments: {} },
      }),
    );
    return [(await next())['id'], next];
  };
  const [oldId] = await ask(1);
  await hub.restart();
  const [newId, next] = await ask(2);
  expect(newId).not.toBe(oldId);
  const answered = (id: unknown, action: string): Promise<Response> =>
    client.post({ jsonrpc: '2.0', id, result: { action } });
  await answered(oldId, 'accept');
  await answered(0, 'accept');
  await answered(newId, 'decline');
  expect(await next()).toMatchObject({ id: 2, result: { content: [{ text: expect.stringContaining('decline') }] } });
});

test('a session cannot be continued by the same subject with another role', async () => {
  const servers = new Servers();
  // The access token itself names the role here; real ones use scopes.
  const accessTokens: AccessTokens = {
    verify: async (token) => ({
      principal: { id: 'oauth:robot', name: 'robot', kind: 'oauth', role: token as Role, attended: false },
      credential: { kind: 'oauth', expiresAt: Date.now() + 60_000 },
    }),
    routes: () => [],
  };
  const hub = await openHttpHub({ mcp: servers, accessTokens });
  const admin = await new OlderClient(hub, 'admin').open();
  const viewer = new OlderClient(hub, 'viewer');
  viewer.id = admin.id;
  expect((await viewer.list(1)).status).toBe(404);
  expect((await admin.list(2)).status).toBe(200);
  await hub.restart();
  expect((await viewer.list(3)).status).toBe(404);
});

test('a call that is waiting when the hub stops gets an error that says so', async () => {
  const hub = await openHttpHub({ mcp: new Servers() });
  const client = await new OlderClient(hub, await hub.token()).open();
  const next = messagesOf(
    await client.post({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'wait', arguments: {} } }),
  );
  const started = performance.now();
  await hub.close();
  expect(performance.now() - started).toBeLessThan(3_500);
  expect(await next()).toMatchObject({ id: 7, error: { message: expect.stringContaining('The hub is stopping') } });
});

test('a cancelled call leaves no response open', async () => {
  const hub = await openHttpHub({ mcp: new Servers() });
  const client = await new OlderClient(hub, await hub.token()).open();
  const waiting = await client.post({
    jsonrpc: '2.0',
    id: 9,
    method: 'tools/call',
    params: { name: 'wait', arguments: {} },
  });
  await client.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9 } });
  expect(await waiting.text()).not.toContain('"id":9');
});

test('the client data in a session id fits into a header', () => {
  const ids = new SessionIds(newSessionKey());
  const kept = keptParams({
    protocolVersion: '2025-11-25',
    capabilities: { elicitation: { form: {} }, roots: { listChanged: true }, huge: 'x'.repeat(100_000) },
    clientInfo: { name: 'n'.repeat(5_000), version: '1', icons: ['x'.repeat(5_000)] },
  })!;
  const { id } = ids.mint({ principal: 'token:t_1', toolset: 'explicit', ...kept });
  expect(id.length).toBeLessThan(1_000);
  expect(ids.read(id)).toMatchObject({ principal: 'token:t_1', capabilities: { elicitation: { form: {} } } });
  expect(new SessionIds(newSessionKey()).read(id)).toBeUndefined();
});
