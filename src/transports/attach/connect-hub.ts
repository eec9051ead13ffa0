import { open, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { hubClaimFile, type HubRecord, hubSecretFile } from '../../config/hub-record.ts';
import { messageOf } from '../../errors/errors.ts';
import type { HubRequestKind } from '../../schema/enums.ts';
import {
  type AttachRequest,
  HUB_PROTOCOL,
  type HubReply,
  type HubRequest,
  isNonce,
  isProof,
  MAX_GREETING_BYTES,
  MAX_REQUEST_BYTES,
  newNonce,
  proofOf,
  readSecret,
  type TerminalRequest,
} from './protocol.ts';

/** A hub that hangs must not hang its clients. */
const ANSWER_WITHIN_MS = 3_000;

/** Why there is no hub to talk to, phrased to complete "…: ". */
export class HubUnavailable extends Error {
  override readonly name: string = 'HubUnavailable';
}

/** The hub has answered with a refusal. */
export class HubRefused extends HubUnavailable {
  override readonly name = 'HubRefused';
}

export interface AttachedHub {
  /** Carries MCP or HTTP from here on. */
  readonly socket: Socket;
  readonly version: string;
}

/** A connection to the hub for the client that `request` describes: it speaks MCP, or HTTP for a terminal. */
export async function attachToHub(
  record: HubRecord,
  stateDir: string,
  request: AttachRequest | TerminalRequest,
): Promise<AttachedHub> {
  const { channel, reply } = await ask(record, stateDir, request);
  return { socket: channel.release(), version: reply.version };
}

/** One question to the hub, and its answer. */
export async function askHub<Answer extends object>(
  record: HubRecord,
  stateDir: string,
  kind: HubRequestKind,
): Promise<Answer> {
  const { channel, reply } = await ask(record, stateDir, { kind });
  channel.socket.end();
  return reply as unknown as Answer;
}

async function ask(
  record: HubRecord,
  stateDir: string,
  request: HubRequest,
): Promise<{ channel: LineChannel; reply: HubReply & { ok: true } }> {
  let secret: string;
  try {
    secret = await readSecret(hubSecretFile(stateDir));
  } catch (error) {
    throw new HubUnavailable(`its secret cannot be read (${messageOf(error)})`);
  }
  const channel = new LineChannel(connect(record.socket));
  let claim: { release(): Promise<void> } | undefined;
  const late = setTimeout(() => channel.socket.destroy(new Error('it does not respond')), ANSWER_WITHIN_MS);
  try {
    const nonce = await prove(channel, secret);
    if (request.kind !== 'status') claim = await holdClaim(hubClaimFile(stateDir, nonce));
    channel.write({ ...request, ...(claim && { pid: process.pid }) });
    const reply = (await channel.next(MAX_REQUEST_BYTES)) as unknown as HubReply;
    if (!reply.ok) throw new HubRefused(reply.why);
    return { channel, reply };
  } catch (error) {
    channel.socket.on('error', () => undefined);
    channel.socket.destroy();
    throw error instanceof HubUnavailable ? error : new HubUnavailable(describe(error, record));
  } finally {
    clearTimeout(late);
    await claim?.release();
  }
}

async function holdClaim(file: string): Promise<{ release(): Promise<void> }> {
  const handle = await open(file, 'wx', 0o600);
  return {
    async release() {
      await handle.close();
      await rm(file, { force: true });
    },
  };
}

/**
 * The hub proves itself first: an impostor learns neither the secret nor anything about this client. Returns its nonce.
 */
async function prove(channel: LineChannel, secret: string): Promise<string> {
  const client = newNonce();
  channel.write({ protocol: HUB_PROTOCOL, nonce: client });
  const { protocol, nonce: hub, proof } = await channel.next(MAX_GREETING_BYTES);
  if (protocol !== HUB_PROTOCOL)
    throw new HubUnavailable(
      `it speaks version ${String(protocol)} of the hub's protocol, this client ${HUB_PROTOCOL}`,
    );
  if (!isNonce(hub) || !isProof(proof, secret, 'hub', { client, hub }))
    throw new HubUnavailable('the process listening there does not know the secret of the hub');
  channel.write({ proof: proofOf(secret, 'client', { client, hub }) });
  return hub;
}

function describe(error: unknown, { pid }: HubRecord): string {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'ENOENT' || code === 'ECONNREFUSED') return `it exited without cleaning up (pid ${String(pid)})`;
  return messageOf(error);
}

const NEWLINE = 0x0a;

/** A socket whose first lines are read one at a time, before it is handed over unchanged. */
export class LineChannel {
  readonly socket: Socket;
  #unread: Buffer = Buffer.alloc(0);
  #limit = 0;
  #waiting: { resolve: (line: Record<string, unknown>) => void; reject: (error: Error) => void } | undefined;
  #failure: Error | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', this.#onData);
    socket.once('close', this.#onClose);
    socket.on('error', this.#onError);
  }

  /** The next line as an object. Rejects if it is too long, not an object, or never comes. */
  next(maxBytes: number): Promise<Record<string, unknown>> {
    this.#limit = maxBytes;
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#look();
    });
  }

  write(value: object): void {
    this.socket.write(`${JSON.stringify(value)}\n`);
  }

  /** Hands over the socket, with everything that was not read here. */
  release(): Socket {
    this.socket.pause();
    this.socket.off('data', this.#onData);
    this.socket.off('close', this.#onClose);
    this.socket.off('error', this.#onError);
    if (this.#unread.length > 0) this.socket.unshift(this.#unread);
    return this.socket;
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#unread = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk]);
    this.#look();
    // Lines that are not being waited for must not fill the memory.
    if (!this.#waiting && this.#unread.length > 0) this.socket.pause();
  };

  readonly #onClose = (): void => this.#fail(this.#failure ?? new Error('the connection was closed'));
  readonly #onError = (error: Error): void => this.#fail(error);

  #look(): void {
    const waiting = this.#waiting;
    if (!waiting) return;
    if (this.#failure) {
      this.#fail(this.#failure);
      return;
    }
    const end = this.#unread.indexOf(NEWLINE);
    if (end > this.#limit || (end < 0 && this.#unread.length > this.#limit)) {
      this.#fail(new Error('a line is too long'));
      return;
    }
    if (end < 0) {
      this.socket.resume();
      return;
    }
    const line = this.#unread.subarray(0, end).toString('utf8');
    this.#unread = this.#unread.subarray(end + 1);
    const value = parse(line);
    if (!value) {
      this.#fail(new Error('a line is not a JSON object'));
      return;
    }
    this.#waiting = undefined;
    waiting.resolve(value);
  }

  #fail(error: Error): void {
    this.#failure = error;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.reject(error);
  }
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
