import { randomBytes } from 'node:crypto';
import { hashOfCode } from './sign-in-page.ts';

/** A link is opened right away or not at all. */
const LIFETIME_MS = 2 * 60_000;
/** Anyone asking for more has lost the earlier ones. */
const MAX_CODES = 100;

/** Codes in the links of `hub open`: each is valid for one sign-in as admin, for two minutes, in this process only. */
export class SignInCodes {
  readonly #now: () => number;
  /** Hash of a code, and when it expires; oldest first. */
  readonly #codes = new Map<string, number>();
  readonly #onGone: (hash: string) => void;

  /** `onGone` is called for each code that was used or never will be. */
  constructor(now: () => number = Date.now, onGone: (hash: string) => void = () => undefined) {
    this.#now = now;
    this.#onGone = onGone;
  }

  issue(): string {
    this.#dropExpired();
    const [oldest] = this.#codes.keys();
    if (oldest !== undefined && this.#codes.size >= MAX_CODES) this.#drop(oldest);
    const code = randomBytes(32).toString('base64url');
    this.#codes.set(hashOfCode(code), this.#now() + LIFETIME_MS);
    setTimeout(() => this.#dropExpired(), LIFETIME_MS).unref();
    return code;
  }

  /** True once for each code. */
  redeem(code: string): boolean {
    this.#dropExpired();
    return this.#drop(hashOfCode(code));
  }

  #dropExpired(): void {
    for (const [hash, expiresAt] of this.#codes) if (expiresAt <= this.#now()) this.#drop(hash);
  }

  #drop(hash: string): boolean {
    const isKnown = this.#codes.delete(hash);
    if (isKnown) this.#onGone(hash);
    return isKnown;
  }
}
