import type { Readable, Writable } from 'node:stream';
import {
  deserializeMessage,
  serializeMessage,
  type JSONRPCMessage,
  type Transport,
} from '@modelcontextprotocol/server';
import { CallerOutbox, type Outbox } from '../mcp/outbox.ts';
import { FrameReader } from './frame-reader.ts';

const MAX_FRAME_BYTES = 64 * 1024 * 1024;
const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const TOO_MANY_REQUESTS = -32000;
/** Each takes a few kB while it waits. */
const MAX_UNANSWERED = 1_000;

/**
 * JSON-RPC over two pipes, one frame per line. Replaces the SDK's transport (2.4.0), which stops reading after a frame
 * of 10 MB without ending the server or its sessions, and never answers anything that is not JSON-RPC, so the client
 * waits forever. Can go when the SDK fixes both.
 */
export class FrameTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #reader = new FrameReader(
    MAX_FRAME_BYTES,
    (line) => this.#take(line),
    () => this.#refuse(INVALID_REQUEST, `A frame may have ${String(MAX_FRAME_BYTES)} bytes`, undefined),
  );
  readonly #outbox: Outbox;
  /** Requests of the client that are being carried out. */
  readonly #unanswered = new Set<unknown>();
  #closed = false;

  /** `outbox` counts what the client has not read. */
  constructor(input: Readable, output: Writable, outbox = new CallerOutbox().connection()) {
    this.#input = input;
    this.#output = output;
    this.#outbox = outbox;
  }

  async start(): Promise<void> {
    this.#input.on('data', this.#onData);
    this.#input.once('end', this.#onEnd);
    this.#input.once('close', this.#onEnd);
    this.#input.on('error', this.#onError);
    this.#output.on('error', this.#onError);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#closed) throw new Error('The connection is closed');
    if ('id' in message && !('method' in message)) this.#unanswered.delete(message.id);
    await this.#write(serializeMessage(message));
  }

  /** Keeps the error listeners: a pipe that breaks after close must not throw. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#input.off('data', this.#onData);
    this.onclose?.();
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#reader.take(chunk);
  };

  readonly #onEnd = (): void => void this.close();

  readonly #onError = (error: Error): void => {
    if (this.#closed) return;
    this.onerror?.(error);
    void this.close();
  };

  #take(line: string): void {
    if (this.#closed) return;
    let message: JSONRPCMessage;
    try {
      message = deserializeMessage(line);
    } catch (error) {
      const isJson = !(error instanceof SyntaxError);
      if (isJson) this.#refuse(INVALID_REQUEST, 'Not a JSON-RPC message', idOf(line));
      else this.#refuse(PARSE_ERROR, 'Not JSON', undefined);
      return;
    }
    if (!this.#admit(message)) return;
    keepProtoKey(message);
    try {
      this.onmessage?.(message);
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** A client that sends requests without end and reads nothing is told so, instead of filling the memory. */
  #admit(message: JSONRPCMessage): boolean {
    if (!('method' in message)) return true;
    // A cancelled request gets no answer.
    if (message.method === 'notifications/cancelled') this.#unanswered.delete(message.params?.['requestId']);
    if (!('id' in message)) return true;
    if (this.#unanswered.size < MAX_UNANSWERED) {
      this.#unanswered.add(message.id);
      return true;
    }
    const most = `TOO_MANY_REQUESTS: ${String(MAX_UNANSWERED)} requests on this connection are unanswered; read the answers first`;
    this.#refuse(TOO_MANY_REQUESTS, most, message.id);
    return false;
  }

  /** Without an id if none can be determined: JSON-RPC would send `null`, which MCP does not allow. */
  #refuse(code: number, message: string, id: string | number | undefined): void {
    this.onerror?.(new Error(message));
    const refusal = { jsonrpc: '2.0', ...(id !== undefined && { id }), error: { code, message } };
    this.#write(`${JSON.stringify(refusal)}\n`).catch(() => undefined);
  }

  #write(text: string): Promise<void> {
    const read = this.#outbox.add(Buffer.byteLength(text));
    return new Promise((resolve, reject) => {
      this.#output.write(text, (error) => {
        read();
        this.#paceInput();
        if (error) reject(error);
        else resolve();
      });
      this.#paceInput();
    });
  }

  /** Requests are not read from a client that does not read its answers. */
  #paceInput(): void {
    if (this.#outbox.isFull) this.#input.pause();
    else if (!this.#closed && this.#input.isPaused()) this.#input.resume();
  }
}

function idOf(line: string): string | number | undefined {
  const value = JSON.parse(line) as { id?: unknown } | null;
  const id = value?.id;
  return typeof id === 'string' || typeof id === 'number' ? id : undefined;
}

/**
 * The protocol library silently drops an argument named `__proto__`, but nothing a caller writes may be ignored: under
 * this name it gets through and is refused as unknown.
 */
export function keepProtoKey(message: JSONRPCMessage): void {
  const params = 'params' in message ? message.params : undefined;
  const args: unknown = params?.['arguments'];
  if (typeof args !== 'object' || args === null || !Object.hasOwn(args, '__proto__')) return;
  Reflect.deleteProperty(args, '__proto__');
  Object.assign(args, { '"__proto__"': true });
}
