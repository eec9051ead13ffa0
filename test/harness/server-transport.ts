/**
 * The client's end of the server's pipes. Not the SDK's own transport: that one passes its parent's variables to the
 * server, signals it if it is slow to exit, and ignores output that is not JSON-RPC.
 */

import {
  deserializeMessage,
  serializeMessage,
  type JSONRPCMessage,
  type Transport,
} from '@modelcontextprotocol/client';
import type { ServerProcess } from './server-process.ts';

export class ServerTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #server: ServerProcess;
  readonly #foreignLines: string[] = [];
  #delivered = Promise.resolve();
  #isClosed = false;

  constructor(server: ServerProcess) {
    this.#server = server;
    server.onLine = (line) => this.#take(line);
    void server.drained.then(() => this.#delivered).then(() => this.#end());
  }

  /** What the server wrote on stdout that is not JSON-RPC. */
  foreignOutput(): string[] {
    const { partialLine } = this.#server;
    return partialLine === '' ? [...this.#foreignLines] : [...this.#foreignLines, partialLine];
  }

  async start(): Promise<void> {}

  async send(message: JSONRPCMessage): Promise<void> {
    await this.#server.write(serializeMessage(message));
  }

  async close(): Promise<void> {
    this.#server.closeStdin();
    this.#end();
  }

  #take(line: string): void {
    let message: JSONRPCMessage;
    try {
      message = deserializeMessage(line);
    } catch {
      this.#foreignLines.push(line);
      return;
    }
    // One at a time: the client handles notifications asynchronously, and drops a call's progress handler with its answer.
    this.#delivered = this.#delivered.then(() => this.onmessage?.(message));
  }

  #end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.onclose?.();
  }
}
