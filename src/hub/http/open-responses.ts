import type { ServerResponse } from 'node:http';
import type { Authenticated } from '../auth/authenticate.ts';
import { HttpRefusal } from './route.ts';

/** Two hundred clients may share one token; a client that leaks requests is still stopped. */
const MAX_PER_PRINCIPAL = 512;
/** Streams stay open. Two hundred clients have one each; the rest of the hub's connections are for others. */
const MAX_STREAMS_PER_PRINCIPAL = 256;
const RECHECK_MS = 5_000;

export interface OpenResponse extends Authenticated {
  readonly response: ServerResponse;
  /** Ends it cleanly, if that is possible at once. */
  end(why: 'stopping' | 'credential'): void;
}

/** Requests in progress, so that they end when the hub stops or their credential becomes invalid. */
export class OpenResponses {
  readonly #open = new Set<OpenResponse>();
  readonly #streams = new Set<OpenResponse>();
  readonly #timer: NodeJS.Timeout;
  readonly #isStillValid: (credential: Authenticated['credential']) => Promise<boolean>;
  #checking = false;

  constructor(stillHolds: (credential: Authenticated['credential']) => Promise<boolean>) {
    this.#isStillValid = stillHolds;
    this.#timer = setInterval(() => void this.#recheck(), RECHECK_MS).unref();
  }

  add(one: OpenResponse): () => void {
    checkNumber(this.#open, one, MAX_PER_PRINCIPAL, 'requests');
    this.#open.add(one);
    return () => {
      this.#open.delete(one);
      this.#streams.delete(one);
    };
  }

  /** To be called in the turn of the event loop in which the response becomes a stream, before it starts. */
  becomesStream(one: OpenResponse): void {
    checkNumber(this.#streams, one, MAX_STREAMS_PER_PRINCIPAL, 'streams');
    this.#streams.add(one);
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.#timer);
    for (const one of this.#open) one.end('stopping');
  }

  async #recheck(): Promise<void> {
    if (this.#checking) return;
    this.#checking = true;
    try {
      const asked = new Map<unknown, Promise<boolean>>();
      for (const one of this.#open) {
        const { credential } = one;
        const key = credential.kind === 'stored' ? credential.id : credential;
        // An unavailable store says nothing about the credential.
        const holds = asked.get(key) ?? this.#isStillValid(credential).catch(() => true);
        asked.set(key, holds);
        if (!(await holds) && this.#open.has(one)) one.end('credential');
      }
    } finally {
      this.#checking = false;
    }
  }
}

function checkNumber(open: ReadonlySet<OpenResponse>, one: OpenResponse, max: number, what: string): void {
  let own = 0;
  for (const { principal } of open) if (principal.id === one.principal.id) own++;
  if (own < max) return;
  throw new HttpRefusal(429, 'TOO_MANY_REQUESTS', `${String(max)} of your ${what} are open already.`, {
    'retry-after': '5',
  });
}
