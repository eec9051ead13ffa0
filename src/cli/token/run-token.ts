import { parseArgs } from 'node:util';
import { openAudit } from '../../audit/audit-log.ts';
import { refusedBelowSession, runsBelowSession, type Settings } from '../../config/load-settings.ts';
import { messageOf } from '../../errors/errors.ts';
import { parseDuration, Tokens, type ShownToken } from '../../hub/auth/tokens.ts';
import { ROLES, type Role } from '../../schema/enums.ts';
import type { Store } from '../../store/contract.ts';
import { openStore } from '../../store/open-store.ts';
import { printable, printableLines } from '../../text/invisible.ts';

const USAGE = `Usage: claude-code-mcp token create <name> --role viewer|caller|approver|admin [--attended] [--expires 30d] [--json]
       claude-code-mcp token list [--json]
       claude-code-mcp token revoke <id or name> [--json]`;

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
  | { action: 'create'; name: string; role: Role; attended: boolean; expiresInMs: number | undefined; json: boolean }
  | { action: 'list'; json: boolean }
  | { action: 'revoke'; target: string; json: boolean };

/** The `token` command. Returns the exit code. */
export async function runToken(rest: readonly string[], context: TokenCommandContext): Promise<number> {
  const { refusal, writeError, openStore } = context;
  const asked = parse(rest);
  if ('mistake' in asked) {
    writeError(`${asked.mistake}\n${USAGE}\n`);
    return 2;
  }
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
      const { name, role, attended, expiresInMs } = asked;
      const expiresAt = expiresInMs === undefined ? undefined : now() + expiresInMs;
      const { token, row } = await tokens.create({ name, role, attended, expiresAt });
      record('token create', { token: row.id, name, role });
      const { id } = row;
      const expiry = row.expiresAt === undefined ? {} : { expiresAt: new Date(row.expiresAt).toISOString() };
      write(
        asked.json
          ? `${JSON.stringify({ id, name, role, token, ...expiry })}\n`
          : `${token}\n\nIt is shown only this once. Send it as "Authorization: Bearer …".\n${describe(row, now())}\n`,
      );
      return;
    }
    case 'list': {
      const rows = await tokens.list();
      if (asked.json) write(`${JSON.stringify(rows.map(asJson), null, 2)}\n`);
      else
        write(rows.length === 0 ? 'There are no tokens.\n' : rows.map((row) => `${describe(row, now())}\n`).join(''));
      return;
    }
    case 'revoke': {
      const row = await tokens.revoke(asked.target);
      record('token revoke', { token: row.id, name: row.name });
      write(asked.json ? `${JSON.stringify(asJson(row))}\n` : `Revoked: ${describe(row, now())}\n`);
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

function describe(
  { id, kind, name, role, attended, createdAt, expiresAt, revokedAt }: ShownToken,
  now: number,
): string {
  const day = (ms: number): string => new Date(ms).toISOString().slice(0, 16).replace('T', ' ');
  const state =
    revokedAt !== undefined
      ? `revoked ${day(revokedAt)}`
      : expiresAt === undefined
        ? 'never expires'
        : `${expiresAt <= now ? 'expired' : 'expires'} ${day(expiresAt)}`;
  const notes = [...(kind === 'sign-in' ? ['browser'] : []), ...(attended ? ['attended'] : [])];
  return [id, printable`${name}`, role, ...notes, `created ${day(createdAt)}`, state].join('  ');
}

function parse(rest: readonly string[]): Asked | { mistake: string } {
  try {
    const { values, positionals } = parseArgs({
      args: [...rest],
      allowPositionals: true,
      options: {
        role: { type: 'string' },
        attended: { type: 'boolean', default: false },
        expires: { type: 'string' },
        json: { type: 'boolean', default: false },
      },
    });
    const [action, target, ...others] = positionals;
    const { json, attended } = values;
    if (others.length > 0) return { mistake: `Unexpected argument ${JSON.stringify(others[0])}.` };
    if (action !== 'create' && (values.role ?? values.expires ?? (attended || undefined)) !== undefined)
      return { mistake: '--role, --attended and --expires are only valid with token create.' };
    switch (action) {
      case 'create':
        return create(target, values.role, values.expires, { attended, json });
      case 'list':
        return target === undefined ? { action, json } : { mistake: 'token list takes no name.' };
      case 'revoke':
        return target === undefined ? { mistake: 'token revoke requires an id or a name.' } : { action, target, json };
      default:
        return { mistake: 'token takes create, list or revoke.' };
    }
  } catch (error) {
    return { mistake: messageOf(error) };
  }
}

function create(
  name: string | undefined,
  role: string | undefined,
  expires: string | undefined,
  flags: { attended: boolean; json: boolean },
): Asked | { mistake: string } {
  if (name === undefined) return { mistake: 'token create requires a name.' };
  const known = ROLES.find((one) => one === role);
  if (!known) return { mistake: `--role takes ${ROLES.join(', ')}.` };
  const expiresInMs = expires === undefined ? undefined : parseDuration(expires);
  if (expires !== undefined && expiresInMs === undefined)
    return { mistake: '--expires takes a number and a unit: 90m, 12h, 30d, 4w or 1y.' };
  return { action: 'create', name, role: known, expiresInMs, ...flags };
}

/** The `token` command on this machine: the store of the state directory, or the one that `--store` names. */
export async function runTokenHere(rest: readonly string[], settings: Settings): Promise<number> {
  const warn = (line: string): void => void process.stderr.write(`claude-code-mcp warn: ${line}\n`);
  const audit = openAudit({ path: settings.auditLog, warn });
  try {
    return await runToken(rest, {
      openStore: () => openStore({ url: settings.store, stateDir: settings.stateDir, warn }),
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
