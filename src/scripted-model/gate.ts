/** A reply that is held back until the test lets it go. For one request only. */

import type { ModelRequest } from './model-request.ts';
import type { ReplyLike } from './reply.ts';

export class Gate {
  readonly kind = 'gate';
  readonly held: ReplyLike;
  /** The request that waits at the gate. */
  readonly arrived: Promise<ModelRequest>;
  readonly released: Promise<void>;
  readonly arrive: (request: ModelRequest) => void;
  readonly release: () => void;

  constructor(held: ReplyLike) {
    this.held = held;
    const arrival = deferred<ModelRequest>();
    const opening = deferred<void>();
    this.arrived = arrival.promise;
    this.arrive = arrival.resolve;
    this.released = opening.promise;
    this.release = opening.resolve;
  }
}

function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
