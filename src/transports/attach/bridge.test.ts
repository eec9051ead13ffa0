import { connect, createServer, type Server, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../../test/harness/eventually.ts';
import { Bridge } from './bridge.ts';
import type { AttachedHub } from './connect-hub.ts';

type Json = Record<string, unknown>;

/** A client and a hub played by the test, with the bridge between them. */
class World {
  /** Messages received by the client, and by the hub since it last came up. */
  readonly client: Json[] = [];
  readonly hub: Json[] = [];
  readonly #input = new PassThrough();
  readonly #server: Server;
  #socket: Socket | undefined;
  isUp = true;
  /** Whether it answers when asked outside the connection. */
  responds = true;
  questions = 0;
  version = '1';

  private constructor(server: Server, answered: ReadonlySet<unknown>) {
    this.#server = server;
    const output = new PassThrough();
    collect(output, this.client);
    server.on('connection', (socket) => {
      this.#socket = socket;
      collect(socket, this.hub);
    });
    const bridge = new Bridge({
      input: this.#input,
      output,
      toolset: 'compact',
      opening: { answered, hasListed: true },
      reattach: () => (this.isUp ? this.#attach() : Promise.reject(new Error('it is not running'))),
      responds: async () => {
        this.questions++;
        return this.responds;
      },
      quietMs: 30,
      log: () => undefined,
    });
    void this.#attach().then((hub) => bridge.start(hub));
    onTestFinished(() => {
      bridge.close();
      this.#socket?.destroy();
      server.close();
    });
  }

  static async open(answered: readonly unknown[] = []): Promise<World> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const world = new World(server, new Set(answered));
    await eventually(() => world.#socket, { what: 'the bridge is attached' });
    return world;
  }

  fromClient(...messages: Json[]): void {
    for (const message of messages) this.#input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  fromHub(...messages: Json[]): void {
    for (const message of messages) this.#socket!.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  /** Drops the hub's connection; the hub comes back unless `comesBack` is false. */
  async loseHub(comesBack = true): Promise<void> {
    const lost = this.#socket;
    this.isUp = comesBack;
    this.hub.splice(0);
    lost!.destroy();
    if (comesBack) await eventually(() => this.#socket !== lost, { what: 'the bridge is attached again' });
  }

  async #attach(): Promise<AttachedHub> {
    const { port } = this.#server.address() as { port: number };
    const socket = connect(port, '127.0.0.1');
    await new Promise((resolve) => socket.once('connect', resolve));
    return { socket, version: this.version };
  }
}

function collect(stream: NodeJS.ReadableStream, into: Json[]): void {
  let partial = '';
  stream.on('data', (chunk: Buffer) => {
    const lines = (partial + chunk.toString()).split('\n');
    partial = lines.pop()!;
    into.push(...lines.map((line) => JSON.parse(line) as Json));
  });
}

const seen = (messages: readonly Json[], ...ids: unknown[]): Promise<unknown> =>
  eventually(() => ids.every((id) => messages.some((message) => message['id'] === id)), { what: `ids ${ids.join()}` });

const initialize = { id: 'i', method: 'initialize', params: {} };
const initialized = { method: 'notifications/initialized' };
const call = (id: unknown, params: Json = {}): Json => ({ id, method: 'tools/call', params });
const MODERN = { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } };

const keysIn = (messages: readonly Json[]): unknown[] =>
  messages.flatMap(
    ({ params }) => (params as { _meta?: Json } | undefined)?._meta?.['claude-code-mcp/idempotency-key'] ?? [],
  );

it('forwards messages both ways, except responses the client already has', async () => {
  const world = await World.open(['i']);
  world.fromClient(initialize, initialized, call(1));
  await seen(world.hub, 'i', 1);
  world.fromHub({ id: 'i', result: 'late' }, { id: 1, result: 'done' });
  await seen(world.client, 1);
  expect(world.client).toEqual([{ jsonrpc: '2.0', id: 1, result: 'done' }]);
});

it('repeats the handshake with a restarted hub, and sends it what was in flight, calls under the same keys', async () => {
  const world = await World.open();
  const watched = { _meta: { progressToken: 't' } };
  world.fromClient(initialize, initialized, call(1, watched), call(2, MODERN), { id: 3, method: 'ping' });
  await seen(world.hub, 'i', 3);
  world.fromHub({ method: 'notifications/progress', params: { progressToken: 't', progress: 5 } });
  const keys = keysIn(world.hub);
  expect(keys).toEqual([expect.any(String), expect.any(String)]);
  world.fromHub({ id: 'i', result: 'hello' });
  await seen(world.client, 'i');
  await world.loseHub();
  await seen(world.hub, 'i', 1, 2, 3);
  expect(keysIn(world.hub)).toEqual(keys);
  world.fromClient(call(4));
  await seen(world.hub, 4);
  const methods = ['initialize', 'notifications/initialized', 'tools/call', 'tools/call', 'ping', 'tools/call'];
  expect(world.hub.map(({ method }) => method)).toEqual(methods);
  world.fromHub({ id: 'i', result: 'hello again' }, { id: 4, result: 'done' });
  world.fromHub({ method: 'notifications/progress', params: { progressToken: 't', progress: 1 } });
  world.fromHub({ id: 1, result: 'first' }, { id: 2, result: 'second' }, { id: 3, result: {} });
  await seen(world.client, 1, 2, 3, 4);
  const told = world.client.flatMap(({ method, params }) => (method === 'notifications/progress' ? [params] : []));
  expect(told).toMatchObject([{ progress: 5 }, { progress: 6 }]);
  expect(world.client.filter(({ id }) => id === 'i')).toHaveLength(1);
});

it('queues messages while the hub is away, except cancelled ones', async () => {
  const world = await World.open();
  world.fromClient(call(0));
  await seen(world.hub, 0);
  await world.loseHub(false);
  world.fromClient(call(1), call(2), { method: 'notifications/cancelled', params: { requestId: 2 } });
  world.isUp = true;
  await seen(world.hub, 1);
  world.fromClient(call(3));
  await seen(world.hub, 3);
  expect(world.hub.map(({ id }) => id)).toEqual([0, 1, 3]);
});

it('withdraws the forms of a lost hub, and drops their answers', async () => {
  const world = await World.open();
  world.fromHub({ id: 70, method: 'elicitation/create', params: {} });
  await seen(world.client, 70);
  await world.loseHub();
  await eventually(() => world.client.length === 2, { what: 'the form is withdrawn' });
  expect(world.client[1]).toMatchObject({ method: 'notifications/cancelled', params: { requestId: 70 } });
  world.fromClient({ id: 70, result: { action: 'accept' } }, call(1));
  await seen(world.hub, 1);
  expect(world.hub.map(({ id }) => id)).toEqual([1]);
});

it('resumes subscriptions without the client noticing', async () => {
  const world = await World.open();
  world.fromClient({ id: 's', method: 'subscriptions/listen', params: MODERN });
  await seen(world.hub, 's');
  // A hub that shuts down gracefully ends them.
  world.fromHub({ id: 's', result: { resultType: 'complete' } });
  await world.loseHub();
  await seen(world.hub, 's');
  expect(world.client).toEqual([]);
});

it('announces changed tools when the hub comes back with another version', async () => {
  const world = await World.open();
  world.fromClient(initialize);
  await seen(world.hub, 'i');
  world.fromHub({ id: 'i', result: 'hello' });
  await seen(world.client, 'i');
  world.version = '2';
  await world.loseHub();
  await eventually(() => world.client.length === 2, { what: 'the client gets the notification' });
  expect(world.client[1]).toMatchObject({ method: 'notifications/tools/list_changed' });
});

it('answers for a hub that does not respond, sends it nothing new meanwhile, and continues when it responds again', async () => {
  const world = await World.open();
  world.fromClient(call(1), { id: 2, method: 'ping' });
  await seen(world.hub, 1, 2);
  world.responds = false;
  await seen(world.client, 1, 2);
  expect(world.client).toMatchObject([
    {
      id: 1,
      result: { isError: true, structuredContent: { error: expect.stringMatching(/UNAVAILABLE.*is unknown/) } },
    },
    { id: 2, error: { code: -32000 } },
  ]);
  world.fromClient(call(3), { method: 'notifications/cancelled', params: { requestId: 1 } });
  await eventually(() => world.hub.length === 3, { what: 'the hub will learn what was cancelled' });
  expect(world.hub.map(({ id }) => id)).toEqual([1, 2, undefined]);

  // It carries on where it stopped: the client already has an answer to the first call.
  world.responds = true;
  world.fromHub({ id: 1, result: 'late' });
  await seen(world.hub, 3);
  world.fromHub({ id: 3, result: 'done' });
  await seen(world.client, 3);
  expect(world.client.slice(2)).toEqual([{ jsonrpc: '2.0', id: 3, result: 'done' }]);
});

it('continues with a hub that responds again but has nothing to say', async () => {
  const world = await World.open();
  world.fromClient(call(1));
  await seen(world.hub, 1);
  world.responds = false;
  await seen(world.client, 1);
  world.fromClient(call(2));
  world.responds = true;
  await seen(world.hub, 2);
});

it('waits for a hub that works silently for as long as it responds', async () => {
  const world = await World.open();
  world.fromClient(call(1));
  await seen(world.hub, 1);
  await eventually(() => world.questions > 2, { what: 'the hub was asked several times' });
  expect(world.client).toEqual([]);
  world.fromHub({ id: 1, result: 'done' });
  await seen(world.client, 1);
});
