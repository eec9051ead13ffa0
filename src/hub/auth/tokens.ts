import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { DomainError } from '../../errors/errors.ts';
import type { Role } from '../../schema/enums.ts';
import type { StoredToken } from '../../schema/store.ts';
import type { Store } from '../../store/contract.ts';
import { SerialQueue } from '../../store/serial-queue.ts';

/** Recognisable to people and to scanners for leaked secrets. */
export const TOKEN_PREFIX = 'ccmcp_';
const TOKEN_SHAPE = /^ccmcp_[A-Za-z0-9_-]{43}$/;
const SECRET_BYTES = 32;
const MAX_NAME_LENGTH = 100;
/** Browsers signed in with one token, or as the person at this machine. */
const MAX_SIGN_INS = 20;
/** With one token: each leaves a row behind, even after it was replaced or has signed out. */
const MAX_SIGN_INS_PER_HOUR = 60;
const HOUR_MS = 3_600_000;
/** How exactly the last use of a sign-in is known. */
const USE_MS = 60_000;
const LAST_USES = 'sign-ins.last-used';

export interface NewToken {
  readonly name: string;
  readonly role: Role;
  readonly attended: boolean;
  /** Of a sign-in: the browser and its system. */
  readonly device?: string | undefined;
  /** Milliseconds since 1970. */
  readonly expiresAt?: number | undefined;
}

/** A token as it may be shown: without its hash. */
export type ShownToken = Omit<StoredToken, 'hash'>;

/** Credentials for programs. Each is shown once, when it is created; the store has its SHA-256. */
export class Tokens {
  readonly #store: Pick<Store, 'token' | 'tokenByHash' | 'tokens' | 'setting' | 'write'>;
  readonly #now: () => number;
  /** Sign-ins are counted and stored one at a time. */
  readonly #signingIn = new SerialQueue();
  readonly #uses = new Map<string, number>();

  constructor(
    store: Pick<Store, 'token' | 'tokenByHash' | 'tokens' | 'setting' | 'write'>,
    now: () => number = Date.now,
  ) {
    this.#store = store;
    this.#now = now;
  }

  async create({ name, role, attended, expiresAt }: NewToken): Promise<{ token: string; row: ShownToken }> {
    checkName(name);
    const createdAt = this.#now();
    if (expiresAt !== undefined && expiresAt <= createdAt)
      throw new DomainError('INVALID_ARGUMENT', 'expiresAt: must be in the future.');
    const token = TOKEN_PREFIX + newSecret();
    const row: StoredToken = {
      id: newId('t'),
      kind: 'token',
      name,
      hash: hashOf(token),
      role,
      attended,
      createdAt,
      ...(expiresAt !== undefined && { expiresAt }),
    };
    await this.#store.write([{ type: 'token.put', token: row }]);
    return { token, row: shown(row) };
  }

  /** Newest first, including browser sign-ins. */
  async list(): Promise<ShownToken[]> {
    const rows = await this.#store.tokens();
    return rows.map(shown).sort((one, other) => other.createdAt - one.createdAt);
  }

  /** By id, or by a name that only one valid token has. Idempotent. Also revokes sign-ins made with it. */
  async revoke(idOrName: string): Promise<ShownToken> {
    const rows = await this.#store.tokens();
    const row = rows.find(({ id }) => id === idOrName) ?? singleMatch(idOrName, rows);
    const revokedAt = this.#now();
    const revoked = [row, ...rows.filter(({ id }) => parentOf(id) === row.id)]
      .filter((one) => one.revokedAt === undefined)
      .map((one): StoredToken => ({ ...one, revokedAt }));
    await this.#store.write(revoked.map((token) => ({ type: 'token.put', token })));
    return shown(revoked.find(({ id }) => id === row.id) ?? row);
  }

  /** The row behind a token, unless it is unknown, expired or revoked. */
  async verify(token: string): Promise<StoredToken | undefined> {
    if (!TOKEN_SHAPE.test(token)) return undefined;
    const row = await this.#byHash(hashOf(token));
    return row?.kind === 'token' ? row : undefined;
  }

  // ── browsers ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** Signs a browser in; `from` is the token used for it, if any. The oldest of too many sign-ins ends. */
  createSignIn(
    token: NewToken & { expiresAt: number },
    from: string | undefined,
  ): Promise<{ cookie: string; key: string; row: StoredToken }> {
    return this.#signingIn.run(() => this.#signIn(token, from));
  }

  async #signIn(
    { name, role, attended, device, expiresAt }: NewToken & { expiresAt: number },
    from: string | undefined,
  ): Promise<{ cookie: string; key: string; row: StoredToken }> {
    const [cookie, key] = [newSecret(), newSecret()];
    const id = newId('s');
    const row: StoredToken = {
      id: from === undefined ? id : `${id}.${from}`,
      kind: 'sign-in',
      name,
      hash: signInHash(cookie, key),
      role,
      attended,
      ...(device !== undefined && { device }),
      createdAt: this.#now(),
      expiresAt,
    };
    const ended = this.#tooMany(await this.#store.tokens(), from);
    await this.#store.write([...ended, row].map((token) => ({ type: 'token.put', token })));
    return { cookie, key, row };
  }

  /** Those that end, so that there is room for one more. */
  #tooMany(rows: readonly StoredToken[], from: string | undefined): StoredToken[] {
    const now = this.#now();
    const own = rows.filter(({ kind, id }) => kind === 'sign-in' && parentOf(id) === from);
    const recent = own.filter(({ createdAt }) => createdAt > now - HOUR_MS).length;
    if (from !== undefined && recent >= MAX_SIGN_INS_PER_HOUR)
      throw new DomainError(
        'TOO_MANY_REQUESTS',
        `This token was used for ${MAX_SIGN_INS_PER_HOUR} sign-ins within an hour. Use one of them, or try again later.`,
      );
    const valid = own.filter((row) => this.#isValid(row)).sort((one, other) => other.createdAt - one.createdAt);
    return valid.slice(MAX_SIGN_INS - 1).map((row) => ({ ...row, revokedAt: now }));
  }

  /** When each sign-in was last used, as far as that is known. */
  async lastUses(): Promise<ReadonlyMap<string, number>> {
    return new Map([...(await this.#keptUses()), ...this.#uses]);
  }

  /** A row of its own, written now and then: a sign-in that is revoked meanwhile must not come back. */
  async #used({ id }: StoredToken): Promise<void> {
    const now = this.#now();
    if (now - (this.#uses.get(id) ?? 0) < USE_MS) return;
    this.#uses.set(id, now);
    const valid = new Set((await this.#store.tokens()).filter((row) => this.#isValid(row)).map((row) => row.id));
    const kept = [...(await this.lastUses())].filter(([known]) => valid.has(known));
    await this.#store.write([{ type: 'setting.put', key: LAST_USES, value: JSON.stringify(Object.fromEntries(kept)) }]);
  }

  async #keptUses(): Promise<[string, number][]> {
    const kept = JSON.parse((await this.#store.setting(LAST_USES)) ?? '{}') as Record<string, number>;
    return Object.entries(kept);
  }

  /** Neither half is of any use without the other. */
  async verifySignIn(cookie: string, key: string): Promise<StoredToken | undefined> {
    const row = await this.#byHash(signInHash(cookie, key));
    if (row?.kind !== 'sign-in') return undefined;
    const parent = parentOf(row.id);
    const token = parent === undefined ? row : await this.#store.token(parent);
    if (!token || !this.#isValid(token)) return undefined;
    // A store that is away must not keep anybody out.
    await this.#used(row).catch(() => undefined);
    return row;
  }

  async isStillValid(id: string): Promise<boolean> {
    const row = await this.#store.token(id);
    if (!row || !this.#isValid(row)) return false;
    const parent = parentOf(id);
    return parent === undefined || this.isStillValid(parent);
  }

  async #byHash(hash: string): Promise<StoredToken | undefined> {
    const row = await this.#store.tokenByHash(hash);
    return row && isSame(row.hash, hash) && this.#isValid(row) ? row : undefined;
  }

  #isValid({ revokedAt, expiresAt }: StoredToken): boolean {
    return revokedAt === undefined && (expiresAt === undefined || expiresAt > this.#now());
  }
}

/** The token that a browser signed in with. */
export function parentOf(signInId: string): string | undefined {
  return signInId.split('.')[1];
}

function shown({ hash: _hash, ...row }: StoredToken): ShownToken {
  return row;
}

const UNITS = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000, y: 31_536_000_000 } as const;
const MAX_DURATION_MS = 100 * UNITS.y;

/** `90m`, `12h`, `30d`, `4w`, `1y` in milliseconds; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, digits, unit] = /^([1-9]\d{0,5})([mhdwy])$/.exec(text.trim()) ?? [];
  if (digits === undefined || unit === undefined) return undefined;
  const ms = Number(digits) * UNITS[unit as keyof typeof UNITS];
  return ms <= MAX_DURATION_MS ? ms : undefined;
}

/** Long enough for what is in use, short enough for what was forgotten. */
const DEFAULT_LIFETIME = '90d';

/** When a token that is created now expires. Undefined for `never`; throws for what is no duration. */
export function expiryFrom(given: string | undefined, now: number): number | undefined {
  if (given === 'never') return undefined;
  const lifetime = parseDuration(given ?? DEFAULT_LIFETIME);
  if (lifetime === undefined)
    throw new DomainError(
      'INVALID_ARGUMENT',
      'expires takes a number and a unit (90m, 12h, 30d, 4w or 1y), or never; 90d if omitted.',
    );
  return now + lifetime;
}

function singleMatch(name: string, rows: readonly StoredToken[]): StoredToken {
  const named = rows.filter((row) => row.kind === 'token' && row.name === name && row.revokedAt === undefined);
  const [row, another] = named;
  if (row && !another) return row;
  throw new DomainError(
    'INVALID_ARGUMENT',
    row ? `${named.length} tokens have this name; give the id of one.` : 'There is no such token.',
  );
}

/** Names that would be taken for those of principals without a token. */
const RESERVED_NAMES =
  /^(?:local|person|anyone|this user|inside .*|(?:local|person|token|oauth|nested|program)\s*:.*)$/s;

function isReserved(name: string): boolean {
  return RESERVED_NAMES.test(name.normalize('NFKC').trim().toLowerCase());
}

/** The name of a token, or its id where the name could be mistaken for another principal. */
export function shownName(id: string, name: string): string {
  return isReserved(name) ? `token:${id}` : name;
}

function checkName(name: string): void {
  if (isReserved(name))
    throw new DomainError('INVALID_ARGUMENT', `name: "${name.slice(0, 50)}" would be mistaken for another principal.`);
  if (name.trim() === '' || name.length > MAX_NAME_LENGTH || /\p{Cc}/u.test(name))
    throw new DomainError(
      'INVALID_ARGUMENT',
      `name: 1 to ${MAX_NAME_LENGTH} characters, none of them a control character.`,
    );
}

function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}

function newId(kind: 't' | 's'): string {
  return `${kind}_${randomBytes(9).toString('base64url').replace(/[-_]/g, 'x')}`;
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

function signInHash(cookie: string, key: string): string {
  return hashOf(`${cookie}.${key}`);
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
