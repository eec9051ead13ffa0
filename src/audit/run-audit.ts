import { parseArgs } from 'node:util';
import { messageOf } from '../errors/errors.ts';
import { formatAudit, mentions, readAudit, type AuditQuery, type AuditReading } from './report.ts';

const USAGE =
  'Usage: claude-code-mcp audit [--session ID] [--person NAME] [--tool NAME] [--decision allow|deny] [--kind KIND]\n' +
  '         [--since TIME] [--until TIME] [--search WORDS] [--last N] [--json]\n' +
  'TIME is a date such as 2026-11-18, a time such as 2026-11-18T09:00, or an age such as 30m, 12h or 7d.';

export interface AuditCommandContext {
  /** The audit log, or `off`. */
  readonly path: string;
  readonly write: (text: string) => void;
}

/** The `audit` command. Returns the exit code. */
export async function runAudit(rest: readonly string[], { path, write }: AuditCommandContext): Promise<number> {
  const asked = parse(rest);
  if ('mistake' in asked) {
    write(`${asked.mistake}\n${USAGE}\n`);
    return 2;
  }
  if (path === 'off') {
    write('The audit log is off. Unset CLAUDE_CODE_MCP_AUDIT_LOG, or set it to a path, to turn it on.\n');
    return 1;
  }
  try {
    const reading = await readAudit(path, asked);
    write(
      asked.json ? reading.entries.map((entry) => `${JSON.stringify(entry)}\n`).join('') : formatList(reading, path),
    );
    return 0;
  } catch (error) {
    write(`The audit log ${path} cannot be read: ${messageOf(error)}\n`);
    return 1;
  }
}

function formatList({ entries, unreadableLines }: AuditReading, path: string): string {
  const found = entries.length === 0 ? `No entries found in ${path}.\n` : formatAudit(entries);
  return unreadableLines === 0 ? found : `${found}Lines that could not be read: ${unreadableLines}.\n`;
}

function parse(rest: readonly string[]): (AuditQuery & { json: boolean }) | { mistake: string } {
  try {
    const text = { type: 'string' } as const;
    const { values } = parseArgs({
      args: [...rest],
      options: {
        ...{ session: text, person: text, tool: text, decision: text, kind: text },
        ...{ since: text, until: text, search: text },
        last: { type: 'string', default: '50' },
        json: { type: 'boolean', default: false },
      },
    });
    const { last, since, until, search, ...filter } = values;
    if (!/^[1-9]\d{0,8}$/.test(last))
      return { mistake: `--last takes a whole number above 0, not ${JSON.stringify(last)}.` };
    return {
      ...filter,
      since: moment('--since', since),
      until: moment('--until', until),
      last: Number(last),
      ...(search !== undefined && { matches: (entry) => mentions(entry, search) }),
    };
  } catch (error) {
    return { mistake: messageOf(error) };
  }
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
    throw new Error(`${option} takes a date, a time or an age, not ${JSON.stringify(text)}.`);
  return at.toISOString();
}
