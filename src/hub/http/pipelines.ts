import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests on one connection that wait for the response before theirs. */
const MAX_WAITING = 32;

interface Pipeline {
  last: Promise<void>;
  waiting: number;
}

/**
 * Requests that a client sends without waiting for the responses are carried out one after another: their responses can
 * only be sent in this order, and would otherwise all be kept in memory until the client reads the first of them.
 */
export class Pipelines {
  readonly #bySocket = new WeakMap<Socket, Pipeline>();

  /** Resolves with true when it is this request's turn; with false if its connection is gone by then. */
  async turn({ socket }: IncomingMessage, response: ServerResponse): Promise<boolean> {
    const pipeline = this.#bySocket.get(socket) ?? { last: Promise.resolve(), waiting: 0 };
    this.#bySocket.set(socket, pipeline);
    const { last } = pipeline;
    const isFirst = pipeline.waiting++ === 0;
    pipeline.last = new Promise<void>((resolve) => response.once('close', resolve)).then(() => {
      pipeline.waiting--;
    });
    if (pipeline.waiting > MAX_WAITING) socket.destroy();
    if (!isFirst) await last;
    return !socket.destroyed;
  }
}
