/** A clock that stands still until it is told to go on. */

import type { Clock } from '../../src/engine/clock.ts';

interface Alarm {
  readonly at: number;
  readonly ring: () => void;
}

export class ManualClock implements Clock {
  #now = 0;
  readonly #alarms = new Set<Alarm>();

  now(): number {
    return this.#now;
  }

  after(ms: number, ring: () => void): () => void {
    const alarm = { at: this.#now + ms, ring };
    this.#alarms.add(alarm);
    return () => {
      this.#alarms.delete(alarm);
    };
  }

  /** Rings what is due on the way, in the order of time. */
  advance(ms: number): void {
    const until = this.#now + ms;
    for (;;) {
      const [next] = [...this.#alarms].filter(({ at }) => at <= until).toSorted((a, b) => a.at - b.at);
      if (next === undefined) break;
      this.#alarms.delete(next);
      this.#now = next.at;
      next.ring();
    }
    this.#now = until;
  }

  get alarms(): number {
    return this.#alarms.size;
  }
}
