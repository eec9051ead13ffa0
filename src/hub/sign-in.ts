import { createHash, randomBytes } from 'node:crypto';

/** A link is opened right away or not at all. */
const LIFETIME_MS = 2 * 60_000;
/** Whoever asks for more has lost the earlier ones. */
const MOST_CODES = 100;

/** Codes in the links of `hub open`: each is good for one sign-in as admin, for two minutes, in this process only. */
export class SignInCodes {
  readonly #now: () => number;
  /** Hash of a code, and when it expires; oldest first. */
  readonly #codes = new Map<string, number>();

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  issue(): string {
    this.#dropExpired();
    const [oldest] = this.#codes.keys();
    if (oldest !== undefined && this.#codes.size >= MOST_CODES) this.#codes.delete(oldest);
    const code = randomBytes(32).toString('base64url');
    this.#codes.set(hashOf(code), this.#now() + LIFETIME_MS);
    return code;
  }

  /** True once for each code. */
  redeem(code: string): boolean {
    this.#dropExpired();
    return this.#codes.delete(hashOf(code));
  }

  #dropExpired(): void {
    for (const [hash, expiresAt] of this.#codes) if (expiresAt <= this.#now()) this.#codes.delete(hash);
  }
}

/** Codes are looked up by their hash, so that how long it takes says nothing about them. */
function hashOf(code: string): string {
  return createHash('sha256').update(code).digest('hex');
}
