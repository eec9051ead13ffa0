import { mkdtempSync, rmSync, writeFileSync, chmodSync, statSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { HubRecord } from '../../config/hub-record.ts';
import { askHub, LineChannel } from '../../transports/attach/connect-hub.ts';
import { newNonce, proofOf, type HubRequest } from '../../transports/attach/protocol.ts';
import { listenOnSocket, makePrivateDirectory, socketPath, type SocketHost } from './socket-server.ts';

const SECRET = 'a'.repeat(64);

interface World {
  readonly stateDir: string;
  readonly record: HubRecord;
  readonly requests: HubRequest[];
}

async function openWorld({ secret = SECRET } = {}): Promise<World> {
  const stateDir = mkdtempSync(path.join(tmpdir(), 'hub-'));
  writeFileSync(path.join(stateDir, 'hub.secret'), `${SECRET}\n`, { mode: 0o600 });
  const socket = process.platform === 'win32' ? `\\\\.\\pipe\\${path.basename(stateDir)}` : path.join(stateDir, 's');
  const requests: HubRequest[] = [];
  const server = await listenOnSocket({
    path: socket,
    secret,
    isPipe: process.platform === 'win32',
    answer(request) {
      requests.push(request);
      return { reply: { ok: true, version: '1' } };
    },
    log: () => undefined,
  });
  onTestFinished(async () => {
    await server.close();
    rmSync(stateDir, { recursive: true });
  });
  return { stateDir, record: { pid: 1, url: '', socket, version: '1' }, requests };
}

it('the hub answers a client that knows the secret', async () => {
  const { record, stateDir, requests } = await openWorld();
  expect(await askHub(record, stateDir, 'status')).toEqual({ ok: true, version: '1' });
  expect(requests).toEqual([{ kind: 'status' }]);
});

it('a client sends no request to a hub that does not know the secret', async () => {
  const { record, stateDir, requests } = await openWorld({ secret: 'b'.repeat(64) });
  await expect(askHub(record, stateDir, 'stop')).rejects.toThrow('does not know the secret');
  expect(requests).toEqual([]);
});

it.each([
  ['a wrong proof', (): object => ({ proof: proofOf('b'.repeat(64), 'client', { client: 'x', hub: 'y' }) })],
  ['no proof', (): object => ({ kind: 'stop' })],
  ['the hub’s own proof', ({ proof }: Record<string, unknown>): object => ({ proof })],
])('the hub hangs up on %s', async (_what, reply) => {
  const { record, requests } = await openWorld();
  const channel = new LineChannel(connect(record.socket));
  channel.write({ protocol: 1, nonce: newNonce() });
  channel.write(reply(await channel.next(4096)));
  channel.write({ kind: 'stop' });
  await expect(channel.next(4096)).rejects.toThrow();
  expect(requests).toEqual([]);
});

it.each(['', 'null\n', '[]\n', '{"nonce":1}\n', `${'x'.repeat(100_000)}\n`])('the hub hangs up on %j', async (text) => {
  const { record } = await openWorld();
  const socket = connect(record.socket);
  socket.on('error', () => undefined);
  const ended = new Promise((resolve) => socket.once('close', resolve));
  if (text === '') socket.end();
  else socket.write(text);
  await ended;
});

it('a client sends only a nonce until the hub has proved itself', async () => {
  const stateDir = mkdtempSync(path.join(tmpdir(), 'hub-'));
  writeFileSync(path.join(stateDir, 'hub.secret'), `${SECRET}\n`, { mode: 0o600 });
  const socket = process.platform === 'win32' ? `\\\\.\\pipe\\${path.basename(stateDir)}` : path.join(stateDir, 's');
  const heard: string[] = [];
  const connections: Socket[] = [];
  const impostor = createServer((connection) => {
    connections.push(connection);
    connection.on('data', (chunk: Buffer) => {
      heard.push(chunk.toString());
      connection.write(`${JSON.stringify({ protocol: 1, nonce: newNonce(), proof: 'f'.repeat(64) })}\n`);
    });
  });
  await new Promise<void>((resolve) => impostor.listen(socket, resolve));
  onTestFinished(() => {
    impostor.close();
    connections.forEach((connection) => connection.destroy());
    rmSync(stateDir, { recursive: true });
  });
  const record = { pid: 1, url: '', socket, version: '1' };
  await expect(askHub(record, stateDir, 'sign-in')).rejects.toThrow('does not know the secret');
  expect(Object.keys(JSON.parse(heard.join('')) as object)).toEqual(['protocol', 'nonce']);
});

const host: SocketHost = { stateDir: '/home/me/state', temporaryDir: '/tmp', platform: 'linux', uid: 1000 };

it('the socket is next to the hub’s other files', () => {
  expect(socketPath(host)).toBe('/home/me/state/hub/hub.sock');
});

it('the socket path is short enough for every system, wherever the state directory is', () => {
  const deep = `/home/me/${'deep/'.repeat(30)}`;
  const elsewhere = socketPath({ ...host, stateDir: deep });
  expect(elsewhere).toMatch(/^\/tmp\/claude-code-mcp-1000-[0-9a-f]{16}\/hub\.sock$/);
  expect(socketPath({ ...host, stateDir: deep, temporaryDir: deep })).toBe(elsewhere);
  expect(socketPath({ ...host, stateDir: `${deep}x` })).not.toBe(elsewhere);
});

it('the socket is a pipe on Windows', () => {
  expect(socketPath({ ...host, platform: 'win32' })).toMatch(/^\\\\\.\\pipe\\claude-code-mcp-[0-9a-f]{16}$/);
});

it.skipIf(process.platform === 'win32')('the socket is in a directory only its user can enter', async () => {
  const root = mkdtempSync(path.join(tmpdir(), 'socket-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const own = { ...host, stateDir: root, uid: process.getuid!() };
  await makePrivateDirectory(socketPath(own), own);
  const directory = path.join(root, 'hub');
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  chmodSync(directory, 0o777);
  await makePrivateDirectory(socketPath(own), own);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  await expect(makePrivateDirectory(socketPath(own), { ...own, uid: own.uid + 1 })).rejects.toThrow('another user');
});
