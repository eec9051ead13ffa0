import { setTimeout as delay } from 'node:timers/promises';

/** Failures without delay: a person mistypes, a client starts with yesterday's token. */
const FREE_FAILURES = 5;
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;
const FORGET_AFTER_MS = 60_000;
/** Each delayed failure holds a connection; beyond this many they are rejected at once. */
const MAX_WAITING = 100;
const MAX_ADDRESSES = 10_000;
const REPORT_EVERY_MS = 10_000;

interface Failures {
  count: number;
  lastAt: number;
  reportedAt: number;
  unreported: number;
}

export interface AttemptsOptions {
  readonly now?: () => number;
  readonly wait?: (ms: number) => Promise<unknown>;
  /** Called for the first failure of an address, and then at most every ten seconds with the number of failures. */
  readonly report: (failure: { from: string; reason: string; count: number }) => void;
}

/** Slows down failed sign-ins, never successful ones: a neighbour at the same address must not lock them out. */
export class FailedAttempts {
  readonly #now: () => number;
  readonly #wait: (ms: number) => Promise<unknown>;
  readonly #report: AttemptsOptions['report'];
  readonly #byAddress = new Map<string, Failures>();
  #waiting = 0;

  constructor({ now = Date.now, wait = (ms) => delay(ms, undefined, { ref: false }), report }: AttemptsOptions) {
    this.#now = now;
    this.#wait = wait;
    this.#report = report;
  }

  /** Resolves when the failure may be reported; false if too many are already waiting. */
  async failed(from: string, reason: string): Promise<boolean> {
    const failures = this.#count(from, reason);
    const over = failures.count - FREE_FAILURES;
    if (over <= 0) return true;
    if (this.#waiting >= MAX_WAITING) return false;
    this.#waiting++;
    try {
      await this.#wait(Math.min(FIRST_DELAY_MS * 2 ** Math.min(over - 1, 10), MAX_DELAY_MS));
    } finally {
      this.#waiting--;
    }
    return true;
  }

  #count(from: string, reason: string): Failures {
    const now = this.#now();
    const known = this.#byAddress.get(from);
    const failures: Failures =
      known && now - known.lastAt < FORGET_AFTER_MS
        ? known
        : { count: 0, lastAt: now, reportedAt: Number.NEGATIVE_INFINITY, unreported: 0 };
    failures.count++;
    failures.unreported++;
    failures.lastAt = now;
    if (now - failures.reportedAt >= REPORT_EVERY_MS) {
      this.#report({ from, reason, count: failures.unreported });
      failures.reportedAt = now;
      failures.unreported = 0;
    }
    // Re-inserted, so that the first is the one whose failure is longest ago.
    this.#byAddress.delete(from);
    this.#byAddress.set(from, failures);
    const [oldest] = this.#byAddress.keys();
    if (oldest !== undefined && this.#byAddress.size > MAX_ADDRESSES) this.#byAddress.delete(oldest);
    return failures;
  }
}
