import { openOwnFile } from '../platform/own-file.ts';
import { escapeInvisible } from '../text/invisible.ts';
import type { AuditEntry } from './audit-log.ts';
import { hasCode, rotatedName } from './audit-file.ts';
import { aligned, localTime } from '../text/columns.ts';

/** Whether its principal did it. Otherwise Claude or the server did, in a session of that principal. */
export function isDoneByPrincipal({ kind, who }: Pick<AuditEntry, 'kind' | 'who'>): boolean {
  if (kind === 'end') return false;
  return kind === 'decision' ? who === 'human' || who === 'caller' : who !== 'claude' && who !== 'server';
}

/** What an entry must have; what is not given does not matter. */
export interface AuditFilter {
  /** A session id or its beginning. */
  readonly session?: string | undefined;
  /** The id or the name of whoever called or decided. */
  readonly person?: string | undefined;
  readonly kind?: string | undefined;
  readonly tool?: string | undefined;
  /** What was decided: `allow`, `deny`. */
  readonly decision?: string | undefined;
  /** ISO times. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

export interface AuditQuery extends AuditFilter {
  /** How many of the newest entries; all without it. */
  readonly last?: number | undefined;
  /** Additional filter. */
  readonly matches?: ((entry: AuditEntry) => boolean | Promise<boolean>) | undefined;
  /** Only older ones: after this many with this time. */
  readonly before?: { readonly time: string; readonly skip: number } | undefined;
}

export interface AuditReading {
  /** Oldest first. */
  readonly entries: readonly AuditEntry[];
  /** Lines that are not entries. */
  readonly unreadableLines: number;
}

/** Reads the log and its rotated files from the newest line back, no further than the query needs. */
export async function readAudit(
  file: string,
  { last = Number.POSITIVE_INFINITY, matches = () => true, before, ...filter }: AuditQuery = {},
): Promise<AuditReading> {
  const newestFirst: AuditEntry[] = [];
  let unreadableLines = 0;
  let skipped = 0;
  const isPast = ({ time }: AuditEntry): boolean =>
    before === undefined || time < before.time || (time === before.time && ++skipped > before.skip);
  const isWanted = async (entry: AuditEntry): Promise<boolean> =>
    passes(entry, filter) && (await matches(entry)) && isPast(entry);
  if (last <= 0) return { entries: [], unreadableLines };
  for await (const line of linesOfAllFiles(file)) {
    if (line === '') continue;
    const entry = line === undefined ? undefined : parseEntry(line);
    if (entry === undefined) unreadableLines++;
    else if (await isWanted(entry)) newestFirst.push(entry);
    const isBefore = entry !== undefined && filter.since !== undefined && entry.time < filter.since;
    if (newestFirst.length >= last || isBefore) break;
  }
  return { entries: newestFirst.reverse(), unreadableLines };
}

function passes(entry: AuditEntry, filter: AuditFilter): boolean {
  const { session, principal, name, kind, what, outcome, time } = entry;
  const { person, decision, since, until } = filter;
  const isSame = (wanted: string | undefined, found: string | undefined): boolean =>
    wanted === undefined || wanted.toLowerCase() === found?.toLowerCase();
  return (
    (filter.session === undefined || session?.startsWith(filter.session) === true) &&
    (person === undefined || (isDoneByPrincipal(entry) && (isSame(person, principal) || isSame(person, name)))) &&
    isSame(filter.kind, kind) &&
    isSame(filter.tool, what) &&
    (decision === undefined || (kind === 'decision' && isSame(decision, outcome))) &&
    (since === undefined || time >= since) &&
    (until === undefined || time <= until)
  );
}

/** Whether these words occur anywhere in what the log says, ignoring case. */
export function mentions(entry: AuditEntry, words: string): boolean {
  const { session = '', principal = '', name = '', who, what, outcome = '', details } = entry;
  const text = [session, principal, name, who, what, outcome, JSON.stringify(details ?? {})].join(' ');
  return text.toLowerCase().includes(words.toLowerCase());
}

async function* linesOfAllFiles(file: string): AsyncGenerator<string | undefined> {
  for (let age = 0; ; age++) {
    try {
      yield* linesFromEnd(age === 0 ? file : rotatedName(file, age));
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error;
      // Right after a rotation there is no current file yet, only the rotated ones.
      if (age > 0) return;
    }
  }
}

function parseEntry(line: string): AuditEntry | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  return isEntry(value) ? value : undefined;
}

function isEntry(value: unknown): value is AuditEntry {
  if (typeof value !== 'object' || value === null) return false;
  const { time, kind, who, what, session, outcome, cost, dropped } = value as Record<string, unknown>;
  const isText = (field: unknown): boolean => typeof field === 'string';
  return (
    [time, kind, who, what].every(isText) &&
    [session, outcome].every((field) => field === undefined || isText(field)) &&
    [cost, dropped].every((field) => field === undefined || typeof field === 'number')
  );
}

const HEADING = ['time', 'session', 'who', 'by', 'kind', 'what', 'outcome', 'cost'];
const MAX_COLUMN_WIDTH = 60;

/** An entry with the command, file or question that its request was about, where that is known. */
export type ShownAuditEntry = AuditEntry & { readonly target?: string | undefined };

/** The entries as aligned columns in local time, for people. */
export function formatAudit(entries: readonly ShownAuditEntry[]): string {
  return aligned([HEADING, ...entries.map(rowOf)]);
}

function rowOf(entry: ShownAuditEntry): string[] {
  const { time, session, principal, name, who, kind, what, target = '', outcome, cost, details, dropped } = entry;
  const lost =
    dropped === undefined
      ? ''
      : ` (${dropped} ${dropped === 1 ? 'entry' : 'entries'} before this one ${dropped === 1 ? 'was' : 'were'} lost)`;
  return [
    timeOf(time),
    printable(session?.slice(0, 8) ?? '-'),
    printable(who),
    printable((isDoneByPrincipal(entry) ? (name ?? principal) : undefined) ?? '-'),
    printable(kind),
    printable(target === '' ? what : `${what} ${target}`),
    printable(outcome ?? '') + lost,
    cost === undefined ? '' : costWords(cost, details?.['costUnknown'] === true),
  ];
}

/** `isMore`: a turn was cut off before it reported its cost. */
function costWords(cost: number, isMore: boolean): string {
  if (isMore && cost === 0) return 'unknown';
  return `$${cost.toFixed(4)}${isMore ? '+' : ''}`;
}

function timeOf(iso: string): string {
  const at = Date.parse(iso);
  return Number.isNaN(at) ? printable(iso) : localTime(at);
}

/** Fit for a column. Names in the log come from models and plugins: control characters could rewrite the reader's terminal. */
function printable(text: string): string {
  const safe = escapeInvisible(text);
  return safe.length > MAX_COLUMN_WIDTH ? `${safe.slice(0, MAX_COLUMN_WIDTH - 1)}…` : safe;
}

const CHUNK_BYTES = 64 * 1024;
/** Longer than any line the log writes: a damaged file without line breaks must not be collected in memory. */
const MAX_LINE_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;

/** The lines of a file, last one first, read lazily. `undefined` for a line too long to be an entry. */
export async function* linesFromEnd(file: string): AsyncGenerator<string | undefined> {
  const handle = await openOwnFile(file, 'read');
  try {
    let position = (await handle.stat()).size;
    const line = new LineFromEnd();
    while (position > 0) {
      const length = Math.min(CHUNK_BYTES, position);
      position -= length;
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(length), 0, length, position);
      let end = bytesRead;
      for (let newline = lastNewline(buffer, end); newline >= 0; newline = lastNewline(buffer, end)) {
        line.prepend(buffer.subarray(newline + 1, end));
        yield line.take();
        end = newline;
      }
      line.prepend(buffer.subarray(0, end));
    }
    yield line.take();
  } finally {
    await handle.close();
  }
}

function lastNewline(buffer: Buffer, end: number): number {
  return end === 0 ? -1 : buffer.lastIndexOf(NEWLINE, end - 1);
}

class LineFromEnd {
  #parts: Buffer[] = [];
  #bytes = 0;

  prepend(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > MAX_LINE_BYTES) this.#parts = [];
    else this.#parts.unshift(part);
  }

  take(): string | undefined {
    const line = this.#bytes > MAX_LINE_BYTES ? undefined : Buffer.concat(this.#parts).toString('utf8');
    this.#parts = [];
    this.#bytes = 0;
    return line;
  }
}
