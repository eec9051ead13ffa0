import { parseArgs } from 'node:util';
import { messageOf } from '../errors/errors.ts';
import { formatAudit, readAudit, type AuditReading } from './report.ts';

const USAGE = 'Usage: claude-code-mcp audit [--session ID] [--last N] [--json]';

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

function parse(
  rest: readonly string[],
): { session: string | undefined; last: number; json: boolean } | { mistake: string } {
  try {
    const { values } = parseArgs({
      args: [...rest],
      options: {
        session: { type: 'string' },
        last: { type: 'string', default: '50' },
        json: { type: 'boolean', default: false },
      },
    });
    if (!/^[1-9]\d{0,8}$/.test(values.last))
      return { mistake: `--last takes a whole number above 0, not ${JSON.stringify(values.last)}.` };
    return { session: values.session, last: Number(values.last), json: values.json };
  } catch (error) {
    return { mistake: messageOf(error) };
  }
}
