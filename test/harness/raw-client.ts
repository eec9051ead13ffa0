/** Writes frames to the server's pipe without a client library: invalid ones, and thousands per second. */

import type { Json } from './json.ts';
import type { ServerProcess } from './server-process.ts';

const NEWLINE = Buffer.from('\n');
const ANSWER_MS = 15_000;

export class RawClient {
  /** Protocol errors without a request id. */
  readonly refusals: Json[] = [];
  readonly #server: ServerProcess;
  readonly #waiting = new Map<string, (answer: Json) => void>();
  #lastId = 0;

  constructor(server: ServerProcess) {
    this.#server = server;
    server.onLine = (line) => this.#take(line);
  }

  async initialize(): Promise<Json> {
    const answer = await this.request('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'raw', version: '1' },
    });
    await this.send(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }));
    return answer;
  }

  /** Returns the whole answer, a result or a protocol error. */
  request(method: string, params: unknown): Promise<Json> {
    return this.requestRaw(method, JSON.stringify(params));
  }

  /** With parameters that are already serialised. */
  async requestRaw(method: string, params: string): Promise<Json> {
    const id = `ours-${++this.#lastId}`;
    const answer = new Promise<Json>((resolve) => this.#waiting.set(id, resolve));
    await this.send(`{"jsonrpc":"2.0","id":"${id}","method":"${method}","params":${params}}`);
    return this.#inTime(answer, () => `${method} ${params.slice(0, 500)}`);
  }

  /** Sends any bytes, followed by the newline that ends a frame. */
  async send(frame: string | Uint8Array): Promise<void> {
    // In a single write, since others may write at the same time.
    await this.#server.write(Buffer.concat([Buffer.from(frame), NEWLINE]));
  }

  async #inTime(answer: Promise<Json>, what: () => string): Promise<Json> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        reject(new Error(`No answer to ${what()}. stderr: ${this.#server.stderr()}`));
      }, ANSWER_MS);
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  #take(line: string): void {
    // Throws, and fails the test, if stdout has anything but JSON.
    const message = JSON.parse(line);
    if (message.id === undefined && message.error !== undefined) this.refusals.push(message);
    this.#waiting.get(message.id)?.(message);
    this.#waiting.delete(message.id);
  }
}
