/** A reply that is held back until the test lets it go. For one request only. */

import type { ModelRequest } from './model-request.ts';
import type { ReplyLike } from './reply.ts';

export class Gate {
  readonly kind = 'gate';
  readonly held: ReplyLike;
  /** The request that waits at the gate. */
  readonly arrived: Promise<ModelRequest>;
  readonly released: Promise<void>;
  arrive!: (request: ModelRequest) => void;
  release!: () => void;

  constructor(held: ReplyLike) {
    this.held = held;
    this.arrived = new Promise((resolve) => (this.arrive = resolve));
    this.released = new Promise((resolve) => (this.release = resolve));
  }
}
