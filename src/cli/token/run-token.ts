import { openAudit } from '../../audit/audit-log.ts';
import { refusedBelowSession, runsBelowSession, type Settings } from '../../config/load-settings.ts';
import { SettingsError } from '../../config/bad-input.ts';
import { messageOf } from '../../errors/errors.ts';
import { expiryFrom, Tokens, type ShownToken } from '../../hub/auth/tokens.ts';
import { ROLES, type Role } from '../../schema/enums.ts';
import type { Store } from '../../store/contract.ts';
import { openStore } from '../../store/open-store.ts';
import { aligned, localTime } from '../../text/columns.ts';
import { escapeInvisible, printableLines } from '../../text/invisible.ts';
import { TOKEN_ACTIONS } from '../commands.ts';
import { storeInUse } from '../hub/running-hub.ts';
import { parseFlags, refuseWords, requireAction, requireWord } from '../parse-flags.ts';

export interface TokenCommandContext {
  /** Opened only when needed; works alongside a running hub. */
  readonly openStore: () => Promise<Store>;
  /** Why this process may not issue credentials. */
  readonly refusal: string | undefined;
  readonly write: (text: string) => void;
  readonly writeError: (text: string) => void;
  readonly now: () => number;
  /** Records what was changed; never the token. */
  readonly record: (what: string, details: Record<string, string>) => void;
}

type Asked =
  | { action: 'create'; name: string; role: Role; attended: boolean; expires: string | undefined; json: boolean }
  | { action: 'list'; json: boolean }
  | { action: 'revoke'; target: string; json: boolean };

/** The `token` command. Returns the exit code. */
export async function runToken(rest: readonly string[], context: TokenCommandContext): Promise<number> {
  const { refusal, writeError, openStore } = context;
  const asked = parse(rest);
  if (refusal !== undefined) {
    writeError(`claude-code-mcp: ${refusal}\n`);
    return 1;
  }
  let store: Store | undefined;
  try {
    store = await openStore();
    await carryOut(asked, new Tokens(store, context.now), context);
    return 0;
  } catch (error) {
    writeError(printableLines(`claude-code-mcp: ${messageOf(error)}\n`));
    return 1;
  } finally {
    await store?.close();
  }
}

async function carryOut(asked: Asked, tokens: Tokens, { write, now, record }: TokenCommandContext): Promise<void> {
  switch (asked.action) {
    case 'create': {
      const { name, role, attended, expires } = asked;
      const expiresAt = expiryFrom(expires, now());
      const { token, row } = await tokens.create({ name, role, attended, expiresAt });
      record(`token created: ${row.id}`, { name, role });
      const { id } = row;
      const expiry = row.expiresAt === undefined ? {} : { expiresAt: new Date(row.expiresAt).toISOString() };
      write(
        asked.json
          ? `${JSON.stringify({ id, name, role, token, ...expiry })}\n`
          : `${token}\n\nIt is shown only this once. Send it as "Authorization: Bearer …".\n${table([row], now())}`,
      );
      return;
    }
    case 'list': {
      const rows = await tokens.list();
      if (asked.json) write(`${JSON.stringify(rows.map(asJson), null, 2)}\n`);
      else write(rows.length === 0 ? 'There are no tokens.\n' : table(rows, now()));
      return;
    }
    case 'revoke': {
      const row = await tokens.revoke(asked.target);
      record(`token revoked: ${row.id}`, { name: row.name });
      write(asked.json ? `${JSON.stringify(asJson(row))}\n` : table([row], now()));
    }
  }
}

function asJson({ createdAt, expiresAt, revokedAt, ...row }: ShownToken): Record<string, unknown> {
  const time = (ms: number): string => new Date(ms).toISOString();
  return {
    ...row,
    createdAt: time(createdAt),
    ...(expiresAt !== undefined && { expiresAt: time(expiresAt) }),
    ...(revokedAt !== undefined && { revokedAt: time(revokedAt) }),
  };
}

const HEADING = ['id', 'name', 'role', 'for', 'created', 'state'];

/** Aligned columns in local time, like `audit`. */
function table(rows: readonly ShownToken[], now: number): string {
  return aligned([HEADING, ...rows.map((row) => columnsOf(row, now))]);
}

function columnsOf(
  { id, kind, name, role, attended, createdAt, expiresAt, revokedAt }: ShownToken,
  now: number,
): string[] {
  const state =
    revokedAt !== undefined
      ? `revoked ${localTime(revokedAt)}`
      : expiresAt === undefined
        ? 'never expires'
        : `${expiresAt <= now ? 'expired' : 'expires'} ${localTime(expiresAt)}`;
  const uses = kind === 'sign-in' ? 'browser' : attended ? 'person' : 'program';
  return [id, escapeInvisible(name), role, uses, localTime(createdAt), state];
}

function parse([first, ...rest]: readonly string[]): Asked {
  const action = requireAction('token', first, ['create', 'list', 'revoke']);
  switch (action) {
    case 'create':
      return create(rest);
    case 'list': {
      const { given, words } = parseFlags('token list', TOKEN_ACTIONS.list.flags, rest);
      refuseWords('token list', words);
      return { action, json: given.json === true };
    }
    case 'revoke': {
      const { given, words } = parseFlags('token revoke', TOKEN_ACTIONS.revoke.flags, rest);
      const [target, ...others] = words;
      if (target === undefined) throw new SettingsError('token revoke needs an id or a name.');
      refuseWords('token revoke', others);
      return { action, target, json: given.json === true };
    }
  }
}

function create(rest: readonly string[]): Asked {
  const { given, words } = parseFlags('token create', TOKEN_ACTIONS.create.flags, rest);
  const [name, ...others] = words;
  if (name === undefined) throw new SettingsError('token create needs a name.');
  refuseWords('token create', others);
  if (given.role === undefined) throw new SettingsError(`token create needs --role: ${ROLES.join(', ')}.`);
  const role = requireWord('There is no role', given.role, ROLES);
  checkExpiry(given.expires);
  const { attended = false, json = false, expires } = given;
  return { action: 'create', name, role, attended, expires, json };
}

/** Before the store is opened. */
export function checkExpiry(expires: string | undefined): void {
  try {
    expiryFrom(expires, 0);
  } catch (error) {
    throw new SettingsError(`--${messageOf(error)}`);
  }
}

/** The `token` command on this machine, with the store of its hub. */
export async function runTokenHere(rest: readonly string[], settings: Settings): Promise<number> {
  const warn = (line: string): void => void process.stderr.write(`claude-code-mcp warn: ${line}\n`);
  const audit = openAudit({ path: settings.auditLog, warn });
  try {
    return await runToken(rest, {
      openStore: async () => openStore({ url: await storeInUse(settings), stateDir: settings.stateDir, warn }),
      refusal: runsBelowSession(settings) ? refusedBelowSession('claude-code-mcp token') : undefined,
      write: (text) => void process.stdout.write(text),
      writeError: (text) => void process.stderr.write(text),
      now: Date.now,
      record: (what, details) => audit.record({ kind: 'server', who: 'human', what, outcome: 'ok', details }),
    });
  } finally {
    await audit.close();
  }
}
