import { ROLES } from '../../schema/enums.ts';
import { signInBody, type SignInAnswer } from '../../schema/api.ts';
import type { StoredToken } from '../../schema/store.ts';
import type { AuditRecord } from '../../engine/ports.ts';
import type { SignInCodes } from './sign-in.ts';
import type { Tokens } from './tokens.ts';
import { principalOfSignIn } from './authenticate.ts';
import { HttpRefusal, type Route } from '../http/route.ts';

const LIFETIME_MS = 12 * 3_600_000;
/** For those who say that the device is theirs. */
const LONG_LIFETIME_MS = 30 * 24 * 3_600_000;
const MAX_BYTES = 4096;
const PATH = '/api/v1/sign-in';

export interface SignInOptions {
  readonly tokens: Tokens;
  readonly codes: SignInCodes;
  readonly cookieName: (host: string | undefined) => string;
  /** Whether browsers reach the hub over https under this `Host`. */
  readonly isSecure: (host: string | undefined) => boolean;
  readonly now: () => number;
  readonly record: (entry: AuditRecord) => void;
}

/** Exchanges the code of a link, or a token, for a cookie and the key without which it is useless. */
export function signInRoutes(options: SignInOptions): Route[] {
  const { tokens, cookieName, isSecure, now, record } = options;
  const cookieFor = (host: string | undefined, value: string, maxAge: number): Record<string, string> => {
    const attributes = `Path=/; HttpOnly; SameSite=Strict${isSecure(host) ? '; Secure' : ''}`;
    return { 'set-cookie': `${cookieName(host)}=${value}; Max-Age=${maxAge}; ${attributes}` };
  };
  return [
    {
      method: 'POST',
      path: PATH,
      roles: 'anyone',
      maxBodyBytes: MAX_BYTES,
      async handler({ body, headers }) {
        const signedIn = await begin(body, deviceOf(headers['user-agent']), options);
        const { cookie, key, row } = signedIn;
        const principal = principalOfSignIn(row);
        record({
          kind: 'server',
          who: 'human',
          what: 'sign-in',
          outcome: 'ok',
          principal: principal.id,
          name: principal.name,
          details: { token: row.id },
        });
        const expiresAt = new Date(row.expiresAt ?? now()).toISOString();
        const answer: SignInAnswer = { key, principal, expiresAt };
        const maxAge = Math.ceil(((row.expiresAt ?? 0) - row.createdAt) / 1000);
        return {
          status: 200,
          headers: cookieFor(headers.host, cookie, maxAge),
          json: answer,
        };
      },
    },
    {
      method: 'DELETE',
      path: PATH,
      roles: ROLES,
      async handler({ credential, principal, headers }) {
        if (credential?.kind !== 'stored' || !credential.id.startsWith('s_'))
          throw new HttpRefusal(400, 'INVALID_ARGUMENT', 'Only a browser that is signed in can sign out.');
        await tokens.revoke(credential.id);
        record({
          kind: 'server',
          who: 'human',
          what: 'sign-out',
          outcome: 'ok',
          principal: principal.id,
          name: principal.name,
          details: { token: credential.id },
        });
        return { status: 204, headers: cookieFor(headers.host, '', 0) };
      },
    },
  ];
}

const BROWSERS = { Edg: 'Edge', OPR: 'Opera', Firefox: 'Firefox', FxiOS: 'Firefox', Chrome: 'Chrome', CriOS: 'Chrome' };
const SYSTEMS = {
  iPhone: 'iPhone',
  iPad: 'iPad',
  Android: 'Android',
  Windows: 'Windows',
  'Mac OS': 'macOS',
  Linux: 'Linux',
};

/** Browser and system, as far as the browser says: `Firefox on Linux`. */
export function deviceOf(userAgent = ''): string | undefined {
  const find = (names: Readonly<Record<string, string>>): string | undefined =>
    Object.entries(names).find(([mark]) => userAgent.includes(mark))?.[1];
  const browser = find(BROWSERS) ?? (userAgent.includes('Safari/') ? 'Safari' : undefined);
  return [browser, find(SYSTEMS)].filter((part) => part !== undefined).join(' on ') || undefined;
}

async function begin(
  body: unknown,
  device: string | undefined,
  { tokens, codes, now }: SignInOptions,
): Promise<{ cookie: string; key: string; row: StoredToken }> {
  const parsed = signInBody.safeParse(body);
  if (!parsed.success) throw new HttpRefusal(400, 'INVALID_ARGUMENT', 'Give either a code or a token.');
  const expiresAt = now() + (parsed.data.stay === true ? LONG_LIFETIME_MS : LIFETIME_MS);
  if ('code' in parsed.data) {
    if (!codes.redeem(parsed.data.code))
      throw new HttpRefusal(
        401,
        'UNAUTHENTICATED',
        'This link was already used, or is older than two minutes. Run `hub open` again.',
      );
    return tokens.createSignIn({ name: 'this user', role: 'admin', attended: true, device, expiresAt }, undefined);
  }
  const row = await tokens.verify(parsed.data.token);
  if (!row) throw new HttpRefusal(401, 'UNAUTHENTICATED', 'This token is unknown, expired or revoked.');
  const { name, role, attended, id } = row;
  return tokens.createSignIn(
    { name, role, attended, device, expiresAt: Math.min(expiresAt, row.expiresAt ?? expiresAt) },
    id,
  );
}
