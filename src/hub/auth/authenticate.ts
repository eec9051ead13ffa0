import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Principal } from '../../engine/rules/access.ts';
import type { StoredToken } from '../../schema/store.ts';
import type { Route } from '../http/route.ts';
import { parentOf, shownName, TOKEN_PREFIX, type Tokens } from './tokens.ts';

/** What was presented, so that its validity can be checked again. Never the secret itself. */
export type Credential =
  | { readonly kind: 'stored'; readonly id: string; readonly expiresAt: number | undefined }
  | { readonly kind: 'oauth'; readonly expiresAt: number }
  /** A connection over the local socket, whose other end was identified. It is valid while it is open. */
  | { readonly kind: 'connection'; readonly expiresAt: undefined };

export interface Authenticated {
  readonly principal: Principal;
  readonly credential: Credential;
}

/** Why access is denied. `scope`: the credential is valid, but grants no role here. */
export type Refused = { readonly refused: 'missing' | 'invalid' | 'scope' | 'unavailable' };

/** Access tokens from an issuer. */
export interface AccessTokens {
  verify(token: string): Promise<Authenticated | Refused>;
  /** Where clients learn the issuer. */
  routes(origin: () => string): readonly Route[];
}

const KEY_HEADER = 'x-claude-code-key';
const BEARER = /^Bearer +([\x21-\x7e]+)$/i;
const MAX_CREDENTIAL_LENGTH = 16 * 1024;
/** A browser sends one for each path and domain that it was set for; there are fewer that match a path of the hub. */
const MAX_COOKIES = 20;

export interface AuthenticatorOptions {
  readonly tokens: Tokens;
  readonly accessTokens: AccessTokens | undefined;
  /** Name of the cookie that signs a browser in to the hub under this `Host`. */
  readonly cookieName: (host: string | undefined) => string;
  readonly now: () => number;
}

/** Authenticates a request by its headers alone: nothing is read or parsed for unauthenticated callers. */
export class Authenticator {
  readonly #options: AuthenticatorOptions;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
  }

  /** `cookies`: whether a browser's sign-in counts; MCP clients send a token. */
  async authenticate(headers: IncomingHttpHeaders, cookies: boolean): Promise<Authenticated | Refused> {
    const { authorization } = headers;
    if (authorization !== undefined) return this.#bearer(authorization);
    return cookies ? this.#signIn(headers) : { refused: 'missing' };
  }

  async #bearer(authorization: string): Promise<Authenticated | Refused> {
    const [, token] = BEARER.exec(authorization) ?? [];
    if (token === undefined || token.length > MAX_CREDENTIAL_LENGTH) return { refused: 'invalid' };
    if (!token.startsWith(TOKEN_PREFIX))
      return (await this.#options.accessTokens?.verify(token)) ?? { refused: 'invalid' };
    const row = await this.#options.tokens.verify(token);
    return row ? { principal: principalOfToken(row), credential: stored(row) } : { refused: 'invalid' };
  }

  async #signIn(headers: IncomingHttpHeaders): Promise<Authenticated | Refused> {
    const cookies = cookiesIn(headers.cookie, this.#options.cookieName(headers.host));
    const key = headers[KEY_HEADER];
    if (cookies.length === 0 && key === undefined) return { refused: 'missing' };
    if (typeof key !== 'string') return { refused: 'invalid' };
    for (const cookie of cookies) {
      const row = await this.#options.tokens.verifySignIn(cookie, key);
      if (row) return { principal: principalOfSignIn(row), credential: stored(row) };
    }
    return { refused: 'invalid' };
  }

  async stillHolds(credential: Credential): Promise<boolean> {
    if (credential.expiresAt !== undefined && credential.expiresAt <= this.#options.now()) return false;
    return credential.kind !== 'stored' || this.#options.tokens.isStillValid(credential.id);
  }
}

function principalOfToken({ id, name, role, attended }: StoredToken): Principal {
  return { id: `token:${id}`, name: shownName(id, name), kind: 'token', role, attended };
}

/** A sign-in with a token acts as that token; all others are the person at this machine. */
export function principalOfSignIn({ id, name, role, attended }: StoredToken): Principal {
  const parent = parentOf(id);
  if (parent !== undefined)
    return { id: `token:${parent}`, name: shownName(parent, name), kind: 'token', role, attended };
  return { id: 'person', name, kind: 'person', role, attended };
}

function stored({ id, expiresAt }: StoredToken): Credential {
  return { kind: 'stored', id, expiresAt };
}

/** Any of them counts: a page on another port can set one of the same name, and must not lock anybody out with it. */
function cookiesIn(header: string | undefined, name: string): string[] {
  const values = (header?.split(';') ?? []).flatMap((pair) => {
    const [key, value] = pair.trim().split('=', 2);
    return key === name && value !== undefined && /^[\w-]{1,200}$/.test(value) ? [value] : [];
  });
  return [...new Set(values)].slice(0, MAX_COOKIES);
}

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
