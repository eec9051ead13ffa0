import type { StoreNews } from './contract.ts';

export const ANYTHING: StoreNews = { queued: true, ended: true, others: true };

/** Subscribers that want to know when something was stored. */
export class WakeUps {
  readonly #listeners = new Set<(news: StoreNews) => void>();

  subscribe(wake: (news: StoreNews) => void): () => void {
    // A separate function, so that the same listener can subscribe twice.
    const listener = (news: StoreNews): void => wake(news);
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Not before the writer has its response, and errors of a listener are not the write's. */
  wake(news: StoreNews = ANYTHING): void {
    for (const listener of this.#listeners) queueMicrotask(() => listener(news));
  }

  clear(): void {
    this.#listeners.clear();
  }
}
