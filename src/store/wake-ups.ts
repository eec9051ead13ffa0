/** Those who want to know that something was stored. */
export class WakeUps {
  readonly #listeners = new Set<() => void>();

  subscribe(wake: () => void): () => void {
    // A function of its own, so that the same listener can be subscribed twice.
    const listener = (): void => wake();
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Not before the caller of the write has been answered, and whatever a listener throws is not the write's. */
  wake(): void {
    for (const listener of this.#listeners) queueMicrotask(listener);
  }

  clear(): void {
    this.#listeners.clear();
  }
}
