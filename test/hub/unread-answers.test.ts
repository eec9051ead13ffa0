/** A caller that sends requests and does not read the answers. */

import { once } from 'node:events';
import net from 'node:net';
import os from 'node:os';
import { expect, onTestFinished, test } from 'vitest';
import { SocketClients } from '../../src/hub/socket/socket-clients.ts';
import { stateKeyIn } from '../../src/hub/http-part.ts';
import { STORES } from '../store/stores.ts';
import { placeOf } from '../../src/transports/attach/protocol.ts';
import { textEvent } from '../harness/agent-messages.ts';
import { eventually } from '../harness/eventually.ts';
import { openAccessWorld, type AccessWorld } from './access-world.ts';
import { startTestHub } from './test-hub.ts';

/** More than the buffers of a connection hold, so that it stays in the hub; half of it is as much as is in memory. */
const ANSWER_BYTES = 7_600_000;
const limits = { perCaller: 2 * ANSWER_BYTES };

/** A session of `owner` whose full poll is large, and a request for that as bytes. */
async function worldWithLargeSession(): Promise<{ world: AccessWorld; poll: string; computed: () => number }> {
  const world = await openAccessWorld({ outboxLimits: limits });
  const { sessionId } = await world.make('waiting');
  const agent = world.hub.agents[0]!;
  for (let count = 0; count < 2; count++) agent.say(textEvent('x'.repeat(ANSWER_BYTES / 4)));
  const headers = {
    ...world.token('owner'),
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  const initialize = await fetch(`${world.url}/mcp`, {
    method: 'POST',
    headers,
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
    }),
  });
  await initialize.text();
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 2,
    method: 'tools/call',
    params: { name: 'claude_code_check', arguments: { action: 'poll', sessionId, responseMode: 'full' } },
  });
  const lines = Object.entries({
    ...headers,
    host: new URL(world.url).host,
    'mcp-session-id': initialize.headers.get('mcp-session-id') ?? '',
    'content-length': String(body.length),
  }).map(([name, value]) => `${name}: ${value}`);
  const poll = `POST /mcp HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`;
  const computed = (): number => world.hub.audit.filter(({ what }) => what === 'claude_code_check poll').length;
  return { world, poll, computed };
}

async function connection({ url }: Pick<AccessWorld, 'url'>): Promise<net.Socket> {
  const { hostname, port } = new URL(url);
  const socket = net.connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  socket.on('error', () => undefined);
  return socket.pause();
}

test('requests sent without reading the responses are carried out one after another', async () => {
  const { world, poll, computed } = await worldWithLargeSession();
  const socket = await connection(world);
  socket.write(poll.repeat(5));
  await eventually(() => computed() > 0, { what: 'the first request is carried out' });
  // Everything that the hub has read from this connection came before this.
  expect((await fetch(`${world.url}/healthz`)).status).toBe(200);
  expect(computed()).toBe(1);
  let received = '';
  socket.on('data', (chunk: Buffer) => (received += chunk.toString('latin1').replaceAll('x', ''))).resume();
  await eventually(() => computed() === 5 && received.split('HTTP/1.1 200').length === 6, {
    what: 'all of them are carried out as they are read',
  });
});

test('a caller that leaves many large answers unread is refused by name until it reads, and no one else is', async () => {
  const { world, poll, computed } = await worldWithLargeSession();
  const { sessionId } = await world.make('idle');
  const sockets = await Promise.all(Array.from({ length: 60 }, () => connection(world)));
  for (const socket of sockets) socket.write(poll);
  const get = (person: 'owner' | 'viewer') => world.call('GET', `/api/v1/sessions/${sessionId}`, world.token(person));
  const refused = await eventually(
    async () => {
      const answer = await get('owner');
      return answer.status === 429 && answer;
    },
    { what: 'the caller is refused' },
  );
  expect(refused.text).toContain('TOO_MANY_REQUESTS');
  expect((await get('viewer')).status).toBe(200);
  expect(computed()).toBeLessThan(20);
  for (const socket of sockets) socket.destroy();
  await eventually(async () => (await get('owner')).status === 200, { what: 'the caller is served again' });
});

test('a client on the local socket that does not read gets its answers as it reads', async () => {
  const store = await STORES.sqlite();
  const { engine, agents, audit } = await startTestHub(store);
  onTestFinished(() => engine.close());
  const host = { env: {}, cwd: os.tmpdir(), homedir: os.tmpdir(), platform: process.platform, log: () => undefined };
  const clients = new SocketClients({
    engine,
    settings: engine.settings,
    host,
    identity: { name: 'claude-code-mcp', version: '0.0.0-test' },
    stateKey: await stateKeyIn(store),
    serveApi: () => undefined,
  });
  const request = {
    kind: 'attach',
    version: '1',
    toolset: 'compact',
    cwd: host.cwd,
    given: {},
    env: {},
    rules: engine.settings,
    place: placeOf(engine.settings, host),
  } as const;
  const { takeOver } = await clients.attach(request, { kind: 'outside', isInteractive: false });
  const server = net.createServer((accepted) => takeOver?.(accepted)).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  const socket = await connection({ url: `http://127.0.0.1:${port}` });

  const { id: sessionId } = await engine.start({ prompt: 'go', options: {} });
  await eventually(() => agents[0], { what: 'the agent is running' });
  for (let count = 0; count < 3; count++) agents[0]!.say(textEvent('x'.repeat(ANSWER_BYTES / 6)));
  const send = (message: object): boolean => socket.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  send({
    id: 'first',
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
  });
  send({ method: 'notifications/initialized' });
  const poll = { name: 'claude_code_check', arguments: { action: 'poll', sessionId, responseMode: 'full' } };
  for (let id = 0; id < 20; id++) send({ id, method: 'tools/call', params: poll });
  const computed = (): number => audit.filter(({ what }) => what === 'claude_code_check poll').length;
  await eventually(() => computed() > 0, { what: 'the first poll is answered' });
  // They arrived together: without a bound, all of them are put together in the same turn of the event loop.
  expect(computed()).toBeLessThanOrEqual(8);
  let lines = 0;
  socket.on('data', (chunk: Buffer) => (lines += chunk.toString('latin1').split('\n').length - 1)).resume();
  await eventually(() => lines === 21, { what: 'every request is answered as the client reads' });
});
