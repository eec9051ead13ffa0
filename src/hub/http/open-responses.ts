import type { ServerResponse } from 'node:http';
import type { Authenticated } from './credential.ts';
import { HttpRefusal } from './error-response.ts';

/** Two hundred clients may share one token; a client that leaks requests is still stopped. */
const MAX_PER_PRINCIPAL = 512;
const RECHECK_MS = 5_000;

export interface OpenResponse extends Authenticated {
  readonly response: ServerResponse;
  /** Ends it cleanly, if that is possible at once. */
  end(why: 'stopping' | 'credential'): void;
}

/** Requests in progress, so that they end when the hub stops or their credential becomes invalid. */
export class OpenResponses {
  readonly #open = new Set<OpenResponse>();
  readonly #timer: NodeJS.Timeout;
  readonly #isStillValid: (credential: Authenticated['credential']) => Promise<boolean>;
  #checking = false;

  constructor(stillHolds: (credential: Authenticated['credential']) => Promise<boolean>) {
    this.#isStillValid = stillHolds;
    this.#timer = setInterval(() => void this.#recheck(), RECHECK_MS).unref();
  }

  get size(): number {
    return this.#open.size;
  }

  add(one: OpenResponse): () => void {
    const own = [...this.#open].filter(({ principal }) => principal.id === one.principal.id).length;
    if (own >= MAX_PER_PRINCIPAL)
      throw new HttpRefusal(429, 'TOO_MANY_REQUESTS', `More than ${MAX_PER_PRINCIPAL} concurrent requests.`, {
        'retry-after': '5',
      });
    this.#open.add(one);
    return () => this.#open.delete(one);
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
