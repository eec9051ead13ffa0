import { createHash } from 'node:crypto';
import { createRemoteJWKSet, customFetch, errors, jwtVerify, type JWTPayload, type JWTVerifyGetKey } from 'jose';
import { z } from 'zod';
import type { Principal } from '../../engine/rules/access.ts';
import { messageOf } from '../../errors/errors.ts';
import type { AccessTokens, Authenticated, Refused } from './authenticate.ts';
import type { Route } from '../http/route.ts';
import { ROLES, type Role } from '../../schema/enums.ts';

/** Only signatures with a key that the issuer alone has. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];
const CLOCK_TOLERANCE_S = 30;
const ANSWER_WITHIN_MS = 5_000;
const MAX_BYTES = 256 * 1024;
/** How long an issuer that could not be reached, or that has no such key, is not asked again. */
const RETRY_AFTER_MS = 5_000;
const DISCOVERED_FOR_MS = 3_600_000;

export interface OauthOptions {
  readonly issuer: string;
  readonly audience: string;
  readonly log: (level: 'warn' | 'debug', line: string) => void;
  readonly now?: () => number;
}

/**
 * The hub as an OAuth 2.1 resource server: accepts access tokens from one issuer, made for it, with scopes that name
 * roles.
 */
export class OauthTokens implements AccessTokens {
  readonly #options: OauthOptions;
  readonly #now: () => number;
  #keys: { readonly found: Promise<JWTVerifyGetKey>; readonly until: number } | undefined;

  constructor(options: OauthOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  async verify(token: string): Promise<Authenticated | Refused> {
    // An issuer with opaque tokens is not asked about each of them.
    if (token.split('.').length !== 3) return { refused: 'invalid' };
    let keys: JWTVerifyGetKey;
    try {
      keys = await this.#discovered();
    } catch (error) {
      this.#options.log('warn', `OAuth issuer: ${messageOf(error)}`);
      return { refused: 'unavailable' };
    }
    const { issuer, audience } = this.#options;
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer,
        audience,
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE_S,
        requiredClaims: ['exp', 'sub'],
        currentDate: new Date(this.#now()),
      });
      return admitted(payload, issuer);
    } catch (error) {
      if (isOfToken(error)) return { refused: 'invalid' };
      this.#options.log('warn', `OAuth issuer: ${messageOf(error)}`);
      return { refused: 'unavailable' };
    }
  }

  /** Where clients learn which issuer issues access tokens for the hub (RFC 9728), in both forms of the path. */
  routes(origin: () => string): Route[] {
    const { issuer } = this.#options;
    return ['', '/mcp'].map((suffix) => ({
      method: 'GET',
      path: `/.well-known/oauth-protected-resource${suffix}`,
      roles: 'anyone',
      handler: async () => ({
        status: 200,
        headers: { 'cache-control': 'max-age=300' },
        json: {
          resource: `${origin()}${suffix}`,
          authorization_servers: [issuer],
          scopes_supported: ROLES,
          bearer_methods_supported: ['header'],
          resource_name: 'claude-code-mcp',
        },
      }),
    }));
  }

  #discovered(): Promise<JWTVerifyGetKey> {
    if (this.#keys && this.#keys.until > this.#now()) return this.#keys.found;
    const found = discover(this.#options.issuer);
    const keys = { found, until: this.#now() + DISCOVERED_FOR_MS };
    this.#keys = keys;
    found.catch(() => {
      // Retried soon, but not by every request in the meantime.
      if (this.#keys === keys) this.#keys = { found, until: this.#now() + RETRY_AFTER_MS };
    });
    return found;
  }
}

const Metadata = z.looseObject({ issuer: z.string(), jwks_uri: z.url() });

/** From the metadata of the authorization server or of OpenID Connect, whichever the issuer has. */
async function discover(issuer: string): Promise<JWTVerifyGetKey> {
  const problems: string[] = [];
  for (const url of metadataUrls(issuer)) {
    try {
      const metadata = Metadata.parse(await fetchJson(url));
      if (metadata.issuer !== issuer) throw new Error('it names another issuer');
      const keysUrl = new URL(metadata.jwks_uri);
      if (keysUrl.protocol !== 'https:' && new URL(issuer).protocol === 'https:')
        throw new Error('its keys are not at an https URL');
      return createRemoteJWKSet(keysUrl, {
        timeoutDuration: ANSWER_WITHIN_MS,
        cooldownDuration: RETRY_AFTER_MS,
        [customFetch]: withoutRedirects,
      });
    } catch (error) {
      problems.push(`${url}: ${messageOf(error)}`);
    }
  }
  throw new Error(problems.join('; '));
}

function metadataUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
    ...(path === '' ? [] : [`${origin}/.well-known/openid-configuration${path}`]),
  ];
}

async function fetchJson(url: string): Promise<unknown> {
  const response = await withoutRedirects(url, {
    headers: { accept: 'application/json' },
    signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
  });
  if (!response.ok) throw new Error(`it answered ${response.status}`);
  const text = await response.text();
  if (text.length > MAX_BYTES) throw new Error('the response is too large');
  return JSON.parse(text) as unknown;
}

const withoutRedirects = (url: string, init: RequestInit): Promise<Response> =>
  fetch(url, { ...init, redirect: 'error' });

/** The token's own fault; everything else is the issuer's or ours. */
function isOfToken(error: unknown): boolean {
  if (error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid) return false;
  return error instanceof errors.JOSEError;
}

/** Shown by its id: a name from the token could be anybody's, such as `local`. */
function admitted(payload: JWTPayload, issuer: string): Authenticated | Refused {
  const { sub = '', exp = 0 } = payload;
  const role = roleOf(payload);
  if (role === undefined || sub === '') return { refused: 'scope' };
  const id = `oauth:${issuer}|${subjectId(sub)}`;
  const principal: Principal = { id, name: id, kind: 'oauth', role, attended: false };
  return { principal, credential: { kind: 'oauth', expiresAt: (exp + CLOCK_TOLERANCE_S) * 1000 } };
}

/** A subject can be anything, while principal ids are used in keys and queries. No subject can equal another's hash. */
export function subjectId(subject: string): string {
  return /^[\w.@-]{1,64}$/.test(subject) ? subject : `~${createHash('sha256').update(subject).digest('hex')}`;
}

/** The highest role that a scope names, as itself or after a colon: `admin`, `claude-code:caller`. */
function roleOf({ scope, scp }: JWTPayload & { scope?: unknown; scp?: unknown }): Role | undefined {
  const given = [scope, scp].flatMap((value) =>
    typeof value === 'string' ? value.split(' ') : Array.isArray(value) ? value.map(String) : [],
  );
  const named = new Set(given.map((one) => (one.startsWith(SCOPE_PREFIX) ? one.slice(SCOPE_PREFIX.length) : one)));
  return ROLES.findLast((role) => named.has(role));
}

const SCOPE_PREFIX = 'claude-code:';
