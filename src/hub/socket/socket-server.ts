import { createHash } from 'node:crypto';
import { rm, chmod, lstat, mkdir } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import path from 'node:path';
import * as z from 'zod';
import { SETTING_KEYS, type SettingKey } from '../../config/settings-table.ts';
import { messageOf } from '../../errors/errors.ts';
import { HUB_REQUESTS } from '../../schema/enums.ts';
import { APPROVAL_MODES, TOOLSET_NAMES } from '../../schema/setting-choices.ts';
import { LineChannel } from '../../transports/attach/connect-hub.ts';
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

const count = z.number().int().nonnegative();
const names = z.array(z.string());

const rules = z.object({
  approvals: z.enum(APPROVAL_MODES),
  allowedDirs: names.optional(),
  denyOptions: names,
  maxTurns: count.optional(),
  maxBudgetUsd: z.number().positive().optional(),
  allowBypass: z.boolean(),
  sandbox: z.boolean(),
  sandboxNetwork: names,
  maxDepth: count,
  depth: count,
});

const pid = z.number().int().positive().optional();

const client = {
  place: z.object({ user: z.string(), home: z.string(), configDir: z.string(), stateDir: z.string() }),
  version: z.string(),
  toolset: z.enum(TOOLSET_NAMES),
  cwd: z.string(),
  rules,
  given: z.partialRecord(z.enum(SETTING_KEYS as [SettingKey, ...SettingKey[]]), z.string()),
  env: z.record(z.string(), z.string()),
  inside: z.string().min(1).max(200).optional(),
  pid,
};

const attach = z.object({ kind: z.literal('attach'), ...client });
const terminal = z.object({ kind: z.literal('terminal'), isInteractive: z.boolean(), ...client });

const plain = z.object({ kind: z.enum(HUB_REQUESTS), pid });

/** What a client wants from the hub, or undefined if it is not understood. */
export function parseHubRequest(line: Record<string, unknown>): HubRequest | undefined {
  const parsed = z.union([attach, terminal, plain]).safeParse(line);
  return parsed.success ? (parsed.data as HubRequest) : undefined;
}

/** Size of `sun_path` on macOS; Linux has four bytes more. */
const MAX_SOCKET_BYTES = 103;

export interface SocketHost {
  readonly stateDir: string;
  readonly temporaryDir: string;
  readonly platform: NodeJS.Platform;
  /** Undefined on Windows. */
  readonly uid: number | undefined;
}

/** Where the hub of this state directory listens: next to its files, or where the path is short enough. */
export function socketPath({ stateDir, temporaryDir, platform, uid }: SocketHost): string {
  const name = createHash('sha256').update(stateDir).digest('hex').slice(0, 16);
  if (platform === 'win32') return `\\\\.\\pipe\\claude-code-mcp-${name}`;
  const beside = path.join(stateDir, 'hub', 'hub.sock');
  if (Buffer.byteLength(beside) <= MAX_SOCKET_BYTES) return beside;
  const directory = `claude-code-mcp-${String(uid ?? 0)}-${name}`;
  const short = path.join(temporaryDir, directory, 'hub.sock');
  return Buffer.byteLength(short) <= MAX_SOCKET_BYTES ? short : path.join('/tmp', directory, 'hub.sock');
}

/** A directory that only this user can enter. In a shared location someone else may have created it first. */
export async function makePrivateDirectory(socket: string, { platform, uid }: SocketHost): Promise<void> {
  if (platform === 'win32') return;
  const directory = path.dirname(socket);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const found = await lstat(directory);
  if (!found.isDirectory() || (uid !== undefined && found.uid !== uid))
    throw new Error(`${directory} belongs to another user`);
  if ((found.mode & 0o077) !== 0) await chmod(directory, 0o700);
}
