/** A clock that stands still until it is advanced. */

import { later, type Clock, type Instant } from '../../src/engine/clock.ts';

interface Alarm {
  readonly at: Instant;
  readonly ring: () => void;
}

export class ManualClock implements Clock {
  #now = 0 as Instant;
  #wallTime = 0;
  readonly #alarms = new Set<Alarm>();

  wallTime(): number {
    return this.#wallTime;
  }

  instant(): Instant {
    return this.#now;
  }

  after(ms: number, ring: () => void): () => void {
    const alarm = { at: later(this.#now, ms), ring };
    this.#alarms.add(alarm);
    return () => {
      this.#alarms.delete(alarm);
    };
  }

  /** Rings the alarms that become due, in chronological order. */
  advance(ms: number): void {
    const until = later(this.#now, ms);
    for (;;) {
      const [next] = [...this.#alarms].filter(({ at }) => at <= until).toSorted((a, b) => a.at - b.at);
      if (next === undefined) break;
      this.#alarms.delete(next);
      this.#goTo(next.at);
      next.ring();
    }
    this.#goTo(until);
  }

  /** Like a user who sets the system clock. */
  setWallTime(ms: number): void {
    this.#wallTime = ms;
  }

  get alarms(): number {
    return this.#alarms.size;
  }

  #goTo(at: Instant): void {
    this.#wallTime += at - this.#now;
    this.#now = at;
  }
}
