/** Subscribers that want to know when something was stored. */
export class WakeUps {
  readonly #listeners = new Set<() => void>();

  subscribe(wake: () => void): () => void {
    // A separate function, so that the same listener can subscribe twice.
    const listener = (): void => wake();
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Not before the writer has its response, and errors of a listener are not the write's. */
  wake(): void {
    for (const listener of this.#listeners) queueMicrotask(listener);
  }

  clear(): void {
    this.#listeners.clear();
  }
}
