/** Builders of what the model answers. Every builder is immutable: a step may be kept and used again. */

import type { ModelRequest } from './model-request.ts';

export type StopReason = 'end_turn' | 'tool_use' | 'max_tokens' | 'stop_sequence' | 'refusal' | 'pause_turn';

export type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly thinking: string }
  | { readonly type: 'tool_use'; readonly name: string; readonly input: Readonly<Record<string, unknown>> };

export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly cache_creation_input_tokens: number;
}

export interface HttpErrorDetails {
  /** The API's error type; by default the one that belongs to the status. */
  readonly type?: string;
  readonly message?: string;
  /** Seconds, as in the header `retry-after`. */
  readonly retryAfter?: number;
}

export type ReplyLike =
  | MessageReply
  | BrokenReply
  | HangReply
  | HttpErrorReply
  | ReplySequence
  | Gate
  | string
  | ((request: ModelRequest) => ReplyLike);

/** What can be sent in part: only a message has a stream. */
export type MessageLike = MessageReply | string | ((request: ModelRequest) => MessageLike);

interface MessageParts {
  readonly blocks: readonly Block[];
  readonly usage: Usage;
  readonly delayMs: number;
  readonly chunkCount: number;
  readonly chunkEveryMs: number;
  readonly model?: string;
  readonly stopReason?: StopReason;
}

const EMPTY_MESSAGE: MessageParts = {
  blocks: [],
  usage: { input_tokens: 100, output_tokens: 20, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
  delayMs: 0,
  chunkCount: 1,
  chunkEveryMs: 0,
};

export class MessageReply {
  readonly kind = 'message';
  readonly parts: MessageParts;

  constructor(parts: MessageParts = EMPTY_MESSAGE) {
    this.parts = parts;
  }

  text(text: string): MessageReply {
    return this.#withBlock({ type: 'text', text });
  }

  thinking(thinking: string): MessageReply {
    return this.#withBlock({ type: 'thinking', thinking });
  }

  tool(name: string, input: Readonly<Record<string, unknown>> = {}): MessageReply {
    return this.#withBlock({ type: 'tool_use', name, input });
  }

  usage(usage: Partial<Usage>): MessageReply {
    return this.#with({ usage: { ...this.parts.usage, ...usage } });
  }

  /** Waits before the first byte of the answer. */
  delay(ms: number): MessageReply {
    return this.#with({ delayMs: ms });
  }

  /** Streams each text and thinking block as that many deltas, each in a separate write. */
  chunks(count: number, everyMs = 0): MessageReply {
    return this.#with({ chunkCount: count, chunkEveryMs: everyMs });
  }

  /** The model the answer names; by default the one that was asked. */
  model(model: string): MessageReply {
    return this.#with({ model });
  }

  stop(stopReason: StopReason): MessageReply {
    return this.#with({ stopReason });
  }

  #withBlock(block: Block): MessageReply {
    return this.#with({ blocks: [...this.parts.blocks, block] });
  }

  #with(change: Partial<MessageParts>): MessageReply {
    return new MessageReply({ ...this.parts, ...change });
  }
}

export interface HttpErrorReply {
  readonly kind: 'http-error';
  readonly status: number;
  readonly details: HttpErrorDetails;
}

/** A stream that stops after some of its events: the socket is destroyed, or stays open in silence. */
export interface BrokenReply {
  readonly kind: 'broken';
  readonly message: MessageLike;
  readonly afterEvents: number | undefined;
  readonly ending: 'cut' | 'stall';
}

export interface HangReply {
  readonly kind: 'hang';
}

/** Several answers, one for each request. */
class ReplySequence {
  readonly kind = 'sequence';
  readonly steps: readonly ReplyLike[];

  constructor(steps: readonly ReplyLike[]) {
    this.steps = steps;
  }
}

class HttpErrors extends ReplySequence {
  readonly #error: HttpErrorReply;

  constructor(error: HttpErrorReply, count: number) {
    super(Array.from({ length: count }, () => error));
    this.#error = error;
  }

  times(count: number): HttpErrors {
    return new HttpErrors(this.#error, count);
  }

  /** Being called `then` makes this a thenable: `await` passes two functions, and would otherwise wait forever. */
  then(next: ReplyLike, ...awaited: unknown[]): ReplySequence {
    if (awaited.length > 0) throw new TypeError('httpError(…) is a reply, not a promise: do not await it');
    return new ReplySequence([...this.steps, next]);
  }
}

export function reply(): MessageReply {
  return new MessageReply();
}

export function text(content: string): MessageReply {
  return reply().text(content);
}

export function tool(name: string, input: Readonly<Record<string, unknown>> = {}): MessageReply {
  return reply().tool(name, input);
}

/**
 * The CLI asks again after most errors: after 401, 429, 500 and 529 with growing pauses, after 400 and 422 five more
 * times at once, each with fewer betas. For an error that stays, use `always(httpError(…))`.
 */
export function httpError(status: number, details: HttpErrorDetails = {}): HttpErrors {
  return new HttpErrors({ kind: 'http-error', status, details }, 1);
}

/** Never answers: ends when the client disconnects or the server closes. */
export function hang(): HangReply {
  return { kind: 'hang' };
}

/** Sends the first events of a stream (half of them by default), then destroys the socket. */
export function cut(message: MessageLike, afterEvents?: number): BrokenReply {
  return { kind: 'broken', message, afterEvents, ending: 'cut' };
}

/** Sends the first events of a stream (half of them by default), then nothing more. */
export function stall(message: MessageLike, afterEvents?: number): BrokenReply {
  return { kind: 'broken', message, afterEvents, ending: 'stall' };
}

/** Holds an answer back until `release()`; `arrived` tells that the model was asked. */
export function gate(held: ReplyLike): Gate {
  return new Gate(held);
}

/** A reply that is held back until the test lets it go. For one request only. */
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
