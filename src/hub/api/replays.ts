import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';

/** A page that took longer waited for something else, such as Postgres. */
const MAX_PAUSE_MS = 50;

/**
 * Readers that are behind take turns, one page at a time, and principals take turns before their readers do. After each
 * page the event loop belongs to everybody else for as long as the page took: replaying never takes more than half of it.
 */
export class Replays {
  /** By principal, in the order of their next turn. */
  readonly #waiting = new Map<string, (() => Promise<void>)[]>();
  #state: 'idle' | 'running' = 'idle';

  run<T>(principal: string, page: () => Promise<T>): Promise<T> {
    const made = new Promise<T>((resolve, reject) => {
      const queue = this.#waiting.get(principal) ?? [];
      queue.push(() => page().then(resolve, reject));
      this.#waiting.set(principal, queue);
    });
    if (this.#state === 'idle') void this.#runAll();
    return made;
  }

  async #runAll(): Promise<void> {
    this.#state = 'running';
    for (let next = this.#next(); next; next = this.#next()) {
      const begin = performance.now();
      await next();
      const tookMs = performance.now() - begin;
      // A timer alone could be due at once, without anything else having been served.
      await nextTurn();
      if (tookMs >= 1) await delay(Math.min(tookMs, MAX_PAUSE_MS));
    }
    this.#state = 'idle';
  }

  #next(): (() => Promise<void>) | undefined {
    for (const [principal, queue] of this.#waiting) {
      const page = queue.shift();
      this.#waiting.delete(principal);
      if (queue.length > 0) this.#waiting.set(principal, queue);
      if (page) return page;
    }
    return undefined;
  }
}
