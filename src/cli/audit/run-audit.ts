import { formatAudit, mentions, readAudit, type AuditReading } from '../../audit/report.ts';
import { quote, SettingsError } from '../../config/bad-input.ts';
import { messageOf, ownFileProblem } from '../../errors/errors.ts';
import { AUDIT_KINDS, VERDICTS } from '../../schema/enums.ts';
import { AUDIT_FLAGS } from '../commands.ts';
import { parseFlags, refuseWords, requireWord } from '../parse-flags.ts';

export interface AuditCommandContext {
  /** The audit log, or `off`. */
  readonly path: string;
  readonly write: (text: string) => void;
  readonly writeError: (text: string) => void;
}

/** The `audit` command. Returns the exit code. */
export async function runAudit(
  rest: readonly string[],
  { path, write, writeError }: AuditCommandContext,
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
  try {
    const reading = await readAudit(path, {
      ...{ session, person, tool, decision, kind, last: Number(last) },
      since: from,
      until: to,
      ...(search !== undefined && { matches: (entry) => mentions(entry, search) }),
    });
    write(json ? reading.entries.map((entry) => `${JSON.stringify(entry)}\n`).join('') : formatList(reading, path));
    return 0;
  } catch (error) {
    writeError(`The audit log cannot be read: ${messageOf(ownFileProblem(error) ?? error)}\n`);
    return 1;
  }
}

function formatList({ entries, unreadableLines }: AuditReading, path: string): string {
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
