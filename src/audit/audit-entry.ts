import { createHash } from 'node:crypto';
import type { AuditActor, AuditKind } from '../schema/enums.ts';

export type AuditValue =
  string | number | boolean | null | readonly AuditValue[] | { readonly [name: string]: AuditValue | undefined };

/** One line of the audit log. */
export interface AuditEntry {
  /** ISO time. */
  readonly time: string;
  readonly kind: AuditKind;
  readonly session?: string;
  /** Who called or decided; otherwise whose session it is. */
  readonly principal?: string;
  /** Its display name. */
  readonly name?: string;
  readonly who: AuditActor;
  readonly what: string;
  readonly outcome?: string;
  /** US dollars. */
  readonly cost?: number;
  readonly details?: Readonly<Record<string, AuditValue | undefined>>;
  /** How many entries before this one were lost while the log could not be written. */
  readonly dropped?: number;
}

/** An entry as it is handed in: the log adds the time and the count of lost entries. */
export type NewAuditEntry = Omit<AuditEntry, 'time' | 'dropped'> & { readonly time?: string };

// A type, not an interface: only types are accepted among the details of an entry.
export type Digest = { readonly chars: number; readonly sha256: string };

/** Replaces a prompt or an input, whose text is never logged. */
export function digest(text: string): Digest {
  return { chars: text.length, sha256: createHash('sha256').update(text).digest('hex').slice(0, 16) };
}

/** As it appears in the details of an entry. */
export function digestLine(text: string): string {
  const { chars, sha256 } = digest(text);
  return `${String(chars)} chars, sha256 ${sha256}`;
}

const MAX_LINE_LENGTH = 16 * 1024;
const MAX_TEXT_LENGTH = 1000;

/** One line of JSON with its line break. Details that are too long or unserialisable are dropped, never the entry. */
export function toLine(entry: NewAuditEntry, now: () => Date): string {
  const { details, time = now().toISOString(), ...others } = entry;
  const head = { time, ...others, what: cut(entry.what) };
  try {
    const line = JSON.stringify(details === undefined ? head : { ...head, details });
    if (line.length <= MAX_LINE_LENGTH) return `${line}\n`;
  } catch {
    // Circular structures and BigInts end here.
  }
  return `${JSON.stringify({ ...cutTexts(head), details: { omitted: true } })}\n`;
}

export function withDropped(line: string, dropped: number): string {
  return dropped === 0 ? line : `{"dropped":${dropped},${line.slice(1)}`;
}

function cutTexts(head: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(head).map(([name, value]) => [name, typeof value === 'string' ? cut(value) : value]),
  );
}

function cut(text: string): string {
  return text.length <= MAX_TEXT_LENGTH ? text : `${text.slice(0, MAX_TEXT_LENGTH)}…`;
}
