import { quote } from '../../config/bad-input.ts';
import { DomainError } from '../../errors/errors.ts';
import type { Terminal } from '../terminal/terminal.ts';
import type { HubApi } from './hub-api.ts';

/** What the commands that use a running hub have in common. */
export interface ClientContext {
  readonly api: HubApi;
  /** Whether it speaks for a token; otherwise for the user of this machine. */
  readonly hasToken: boolean;
  readonly json: boolean;
  readonly terminal: Terminal;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  /** Where the command was run, if the hub is on this machine. */
  readonly cwd: string | undefined;
  now(): number;
  /** A line for people; nothing with `--json`. */
  say(text: string): void;
  /** What `--json` prints. */
  print(value: unknown): void;
}

export const NEEDS_PERSON =
  'Only a person may do this: run it in an interactive terminal, or set CLAUDE_CODE_MCP_TOKEN to a token of the hub ("claude-code-mcp token create").';

/** What an abbreviated id means. */
export function theOneWith<One>(start: string, all: readonly One[], idOf: (one: One) => string): One {
  const found = all.filter((one) => idOf(one).startsWith(start));
  const exact = found.find((one) => idOf(one) === start) ?? (found.length === 1 ? found[0] : undefined);
  if (exact !== undefined) return exact;
  throw new DomainError(
    'INVALID_ARGUMENT',
    `${quote(start)} is the beginning of ${String(found.length)} ids: ${found.slice(0, 5).map(idOf).join(', ')}.`,
  );
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const SHORTEST_ID = 8;

/** `40 s`, `3 min`, `2 h`, `5 d` */
export function shortAge(ms: number): string {
  const age = Math.max(0, ms);
  if (age < MINUTE) return `${String(Math.floor(age / 1000))} s`;
  if (age < HOUR) return `${String(Math.floor(age / MINUTE))} min`;
  return age < DAY ? `${String(Math.floor(age / HOUR))} h` : `${String(Math.floor(age / DAY))} d`;
}

/** The beginnings by which these ids can be told apart, all of one length. */
export function shortIds(ids: readonly string[]): (id: string) => string {
  const all = [...new Set(ids)];
  for (let length = SHORTEST_ID; length < 64; length++) {
    const starts = new Set(all.map((id) => id.slice(0, length)));
    if (starts.size === all.length) return (id) => id.slice(0, length);
  }
  return (id) => id;
}
