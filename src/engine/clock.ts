export interface Deferred<T> {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (reason: unknown) => void;
}

/** `Promise.withResolvers`, which Node 20 does not have. */
export function deferred<T>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((resolvePromise, rejectPromise) => {
    resolve = resolvePromise;
    reject = rejectPromise;
  });
  return { promise, resolve, reject };
}

/** A point on the monotonic clock. Only ever compared with others of its kind: it says nothing about the time of day. */
export type Instant = number & { readonly [monotonic]: true };
declare const monotonic: unique symbol;

/** Time as the engine sees it, so that tests can let hours pass without waiting. */
export interface Clock {
  /** Milliseconds since 1970, to show and to store. It jumps when the system clock is set: never measure with it. */
  wallTime(): number;
  /** Milliseconds awake, to measure with. Unaffected by changes to the system clock or by sleep. */
  instant(): Instant;
  /** Calls back once after `ms` of `instant`, without keeping the process alive. Returns how to cancel it. */
  after(ms: number, callback: () => void): () => void;
}

export function later(instant: Instant, ms: number): Instant {
  return (instant + ms) as Instant;
}

/** Milliseconds from one instant to another; negative if it lies before. */
export function msBetween(from: Instant, to: Instant): number {
  return to - from;
}

/** Longer timers are split into pieces of this length, so that a gap in which none fired is recognised as sleep. */
const PIECE_MS = 10_000;
/** The most that a gap counts for: timers fire late on a busy machine, and not at all on a sleeping one. */
const MAX_GAP_MS = PIECE_MS + 5_000;

/**
 * Node's monotonic clock, and its timers with it, stand still while a Linux machine sleeps but keep running on macOS
 * and Windows, where a closed lid would use up every timeout. So a gap longer than the timers explain is not counted.
 */
export class SystemClock implements Clock {
  readonly #elapsed: () => number;
  #lastLooked: number;
  #awakeMs = 0;
  #timers = 0;

  constructor(elapsed: () => number = () => performance.now()) {
    this.#elapsed = elapsed;
    this.#lastLooked = elapsed();
  }

  wallTime(): number {
    return Date.now();
  }

  instant(): Instant {
    const now = this.#elapsed();
    const gap = now - this.#lastLooked;
    this.#lastLooked = now;
    // Without timers nothing fires, however long the gap, and there is nothing to measure.
    this.#awakeMs += this.#timers === 0 ? gap : Math.min(gap, MAX_GAP_MS);
    return this.#awakeMs as Instant;
  }

  after(ms: number, callback: () => void): () => void {
    const due = later(this.instant(), ms);
    let timer: NodeJS.Timeout;
    const wait = (leftMs: number): void => {
      timer = setTimeout(ring, Math.min(Math.ceil(leftMs), PIECE_MS));
      timer.unref();
    };
    const ring = (): void => {
      const leftMs = msBetween(this.instant(), due);
      if (leftMs > 0) {
        wait(leftMs);
        return;
      }
      cancel();
      callback();
    };
    let pending = true;
    const cancel = (): void => {
      if (!pending) return;
      pending = false;
      this.#timers--;
      clearTimeout(timer);
    };
    this.#timers++;
    wait(Math.max(ms, 0));
    return cancel;
  }
}

/** Whether it settles in time; rejections are passed on. */
export function settledWithin(clock: Clock, ms: number, promise: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const cancelTimer = clock.after(ms, () => resolve(false));
    promise.then(() => resolve(true), reject).finally(cancelTimer);
  });
}
