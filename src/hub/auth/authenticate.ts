import type { IncomingHttpHeaders } from 'node:http';
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
