import { rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { messageOf } from '../../errors/errors.ts';
import { LineChannel } from '../../transports/attach/line-channel.ts';
import {
  isNonce,
  isProof,
  newNonce,
  proofOf,
  HUB_PROTOCOL,
  MAX_GREETING_BYTES,
  MAX_REQUEST_BYTES,
  type HubReply,
  type HubRequest,
} from '../../transports/attach/protocol.ts';
import { parseHubRequest } from './attach-schema.ts';

/** A connection that has not said what it wants by then is not a client. */
const HANDSHAKE_MS = 5_000;
/** Connections that have not proved anything yet. */
const MAX_STRANGERS = 64;

export interface SocketServerOptions {
  /** Path of a socket in the user's own directory, or the name of a pipe. */
  readonly path: string;
  readonly secret: string;
  readonly isPipe: boolean;
  /** The response, and what happens to the connection afterwards. `nonce`: what the client's claim is named after. */
  readonly answer: (request: HubRequest, nonce: string) => SocketAnswer | Promise<SocketAnswer>;
  readonly log: (level: 'debug' | 'warn', line: string) => void;
}

export interface SocketAnswer {
  readonly reply: HubReply & Readonly<Record<string, unknown>>;
  /** Takes over the connection; without it the connection ends. */
  readonly takeOver?: ((socket: Socket) => void) | undefined;
}

export interface SocketServer {
  /** Ends every connection. */
  close(): Promise<void>;
}

/** The hub's end of the local socket: no one gets past the greeting without the secret. */
export async function listenOnSocket(options: SocketServerOptions): Promise<SocketServer> {
  const sockets = new Set<Socket>();
  let strangers = 0;
  const server = createServer((socket) => {
    if (strangers >= MAX_STRANGERS) {
      socket.destroy();
      return;
    }
    strangers++;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    greet(socket, options)
      .catch((error: unknown) => {
        options.log('debug', `socket: ${messageOf(error)}`);
        socket.on('error', () => undefined);
        socket.destroy();
      })
      .finally(() => strangers--);
  });
  // Left by a killed hub; this process holds the lock of the state directory.
  if (!options.isPipe) await rm(options.path, { force: true });
  await listen(server, options.path);
  server.on('error', (error) => options.log('warn', `socket: ${error.message}`));
  return {
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.end();
      // A client that does not read must not delay shutdown.
      setTimeout(() => sockets.forEach((socket) => socket.destroy()), 500).unref();
      await closed;
    },
  };
}

async function greet(socket: Socket, { secret, answer }: SocketServerOptions): Promise<void> {
  const late = setTimeout(() => socket.destroy(new Error('no handshake in time')), HANDSHAKE_MS);
  try {
    const channel = new LineChannel(socket);
    const { nonce: client } = await channel.next(MAX_GREETING_BYTES);
    if (!isNonce(client)) throw new Error('a client without a nonce');
    const nonces = { client, hub: newNonce() };
    channel.write({ protocol: HUB_PROTOCOL, nonce: nonces.hub, proof: proofOf(secret, 'hub', nonces) });
    const { proof } = await channel.next(MAX_GREETING_BYTES);
    if (!isProof(proof, secret, 'client', nonces)) throw new Error('a client without the secret');
    const request = parseHubRequest(await channel.next(MAX_REQUEST_BYTES));
    const { reply, takeOver }: SocketAnswer = request
      ? await answer(request, nonces.hub)
      : { reply: { ok: false, why: 'it does not understand what this client wants' } };
    channel.write(reply);
    if (takeOver) takeOver(channel.release());
    else socket.end();
  } finally {
    clearTimeout(late);
  }
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });
}
