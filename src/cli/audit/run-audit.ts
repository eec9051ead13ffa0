import { existsSync } from 'node:fs';
import { formatAudit, mentions, readAudit, type AuditReading, type ShownAuditEntry } from '../../audit/report.ts';
import { quote, SettingsError } from '../../config/bad-input.ts';
import { runsBelowSession, type Settings } from '../../config/load-settings.ts';
import { messageOf, ownFileProblem } from '../../errors/errors.ts';
import { AuditTargets } from '../../hub/api/audit-targets.ts';
import { defined } from '../../schema/json.ts';
import { AUDIT_KINDS, VERDICTS } from '../../schema/enums.ts';
import type { Store } from '../../store/contract.ts';
import { openStore, sqliteFile } from '../../store/open-store.ts';
import { AUDIT_FLAGS } from '../commands.ts';
import { storeInUse } from '../hub/running-hub.ts';
import { parseFlags, refuseWords, requireWord } from '../parse-flags.ts';

export interface AuditCommandContext {
  /** The audit log, or `off`. */
  readonly path: string;
  /** The requests that the hub still has, if it may be read. Opened only when needed. */
  readonly openStore: () => Promise<Store | undefined>;
  readonly write: (text: string) => void;
  readonly writeError: (text: string) => void;
}

/** The `audit` command. Returns the exit code. */
export async function runAudit(
  rest: readonly string[],
  { path, openStore, write, writeError }: AuditCommandContext,
): Promise<number> {
  const { given, words } = parseFlags('audit', AUDIT_FLAGS, rest);
  refuseWords('audit', words);
  const { last = '50', json = false, since, until, search, session, person, tool, decision, kind } = given;
  if (!/^[1-9]\d{0,8}$/.test(last)) throw new SettingsError(`--last takes a whole number above 0, not ${quote(last)}.`);
  if (decision !== undefined) requireWord('There is no decision', decision, VERDICTS);
  if (kind !== undefined) requireWord('There is no kind', kind, AUDIT_KINDS);
  const [from, to] = [moment('--since', since), moment('--until', until)];
  if (path === 'off') {
    writeError('The audit log is off. Unset CLAUDE_CODE_MCP_AUDIT_LOG, or set it to a path, to turn it on.\n');
    return 1;
  }
  let store: Store | undefined;
  try {
    store = await openStore();
    const targets = store && new AuditTargets(store);
    const reading = await readAudit(path, {
      ...{ session, person, tool, decision, kind, last: Number(last) },
      since: from,
      until: to,
      ...(search !== undefined && {
        matches: (entry) => targets?.mention(entry, search) ?? mentions(entry, search),
      }),
    });
    const entries = await Promise.all(
      reading.entries.map(async (entry) => ({ ...entry, ...defined({ target: await targets?.of(entry) }) })),
    );
    write(json ? entries.map((entry) => `${JSON.stringify(entry)}\n`).join('') : formatList(entries, reading, path));
    return 0;
  } catch (error) {
    writeError(`The audit log cannot be read: ${messageOf(ownFileProblem(error) ?? error)}\n`);
    return 1;
  } finally {
    await store?.close();
  }
}

/** The `audit` command on this machine, with the store of its hub. */
export async function runAuditHere(rest: readonly string[], settings: Settings): Promise<number> {
  const writeError = (text: string): void => void process.stderr.write(text);
  const warn = (line: string): void => writeError(`claude-code-mcp warn: ${line}\n`);
  const openHere = async (): Promise<Store | undefined> => {
    // A session sees only what it started, and the log has no texts.
    if (runsBelowSession(settings)) return undefined;
    try {
      const url = await storeInUse(settings);
      if (url === undefined && !existsSync(sqliteFile(settings.stateDir))) return undefined;
      return await openStore({ url, stateDir: settings.stateDir, warn });
    } catch (error) {
      warn(`commands and files are not shown: ${messageOf(error)}`);
      return undefined;
    }
  };
  return runAudit(rest, {
    path: settings.auditLog,
    openStore: openHere,
    write: (text) => void process.stdout.write(text),
    writeError,
  });
}

function formatList(
  entries: readonly ShownAuditEntry[],
  { unreadableLines }: Pick<AuditReading, 'unreadableLines'>,
  path: string,
): string {
  const found = entries.length === 0 ? `No entries found in ${path}.\n` : formatAudit(entries);
  return unreadableLines === 0 ? found : `${found}Lines that could not be read: ${unreadableLines}.\n`;
}

const UNITS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** An ISO time from a date, a time or an age. */
function moment(option: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const [, amount, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  const at =
    unit === undefined
      ? new Date(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00` : text)
      : new Date(Date.now() - Number(amount) * UNITS[unit as keyof typeof UNITS]);
  if (Number.isNaN(at.getTime()))
    throw new SettingsError(`${option} takes a date, a time or an age, not ${quote(text)}.`);
  return at.toISOString();
}
