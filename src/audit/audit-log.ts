import { setTimeout as pause } from 'node:timers/promises';
import { createHash } from 'node:crypto';
import { messageOf } from '../errors/errors.ts';
import { AuditFile, type AuditFileSystem } from './audit-file.ts';
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
function toLine(entry: NewAuditEntry, now: () => Date): string {
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

function withDropped(line: string, dropped: number): string {
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

export interface Audit {
  /** Queues an entry and returns immediately; never throws. */
  record(entry: NewAuditEntry): void;
  /** Flushes the queue, for a limited time. Later entries are dropped. */
  close(): Promise<void>;
}

export interface AuditOptions {
  /** Where to write, or `off`. */
  readonly path: string;
  /** Called once when writing starts to fail. */
  readonly warn: (line: string) => void;
  readonly maxBytes?: number;
  /** How many full files are kept beside the current one. */
  readonly keep?: number;
  /** How many entries are kept in memory while writing fails; then the oldest are dropped. */
  readonly maxQueued?: number;
  readonly closeWithinMs?: number;
  readonly now?: () => Date;
  readonly fileSystem?: AuditFileSystem;
}

const GATHER_MS = 20;
const MAX_BATCH_BYTES = 256 * 1024;

export function openAudit(options: AuditOptions): Audit {
  return options.path === 'off' ? { record: () => undefined, close: () => Promise.resolve() } : new AuditLog(options);
}

class AuditLog implements Audit {
  readonly #options: AuditOptions;
  readonly #file: AuditFile;
  readonly #maxQueued: number;
  readonly #queue: string[] = [];
  #dropped = 0;
  #failing = false;
  /** A short write left half a line at the end of the file; the next batch has to close it. */
  #tornLine = false;
  #writing: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: AuditOptions) {
    const { path, maxBytes = 10 * 1024 * 1024, keep = 5, maxQueued = 10_000, fileSystem } = options;
    this.#options = options;
    this.#maxQueued = maxQueued;
    this.#file = new AuditFile(path, { maxBytes, keep }, fileSystem);
  }

  record(entry: NewAuditEntry): void {
    if (this.#closed !== undefined) return;
    try {
      this.#queue.push(toLine(entry, this.#options.now ?? (() => new Date())));
    } catch {
      this.#dropped++;
    }
    this.#forgetOldest();
    void this.#startWriting();
  }

  close(): Promise<void> {
    this.#closed ??= this.#flush(this.#options.closeWithinMs ?? 2000);
    return this.#closed;
  }

  async #flush(withinMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<'late'>((resolve) => {
      timer = setTimeout(resolve, withinMs, 'late');
    });
    const written = (async () => {
      await this.#writing;
      await this.#startWriting();
    })();
    const outcome = await Promise.race([written, deadline]);
    clearTimeout(timer);
    void this.#file.release();
    if (outcome === 'late' || this.#queue.length > 0) {
      this.#warn(`closed before everything was written to ${this.#options.path}; entries at its end are missing`);
    }
  }

  #startWriting(): Promise<void> {
    this.#writing ??= this.#writeQueue();
    return this.#writing;
  }

  async #writeQueue(): Promise<void> {
    // Related entries go out in one write, and not while an answer or the next message is being sent.
    await pause(GATHER_MS, undefined, { ref: false });
    // After a failure the next entry tries again; continuing here would spin for as long as the disk is full.
    while (this.#queue.length > 0 && (await this.#writeSome()));
    // In the same step as the last look at the queue: an entry recorded in between would be stranded.
    this.#writing = undefined;
  }

  async #writeSome(): Promise<boolean> {
    const batch = this.#takeBatch();
    const failure = await this.#writeBatch(batch);
    if (failure !== undefined) {
      this.#queue.unshift(...batch.lines);
      this.#forgetOldest();
      this.#reportFailure(failure);
    } else this.#failing = false;
    return failure === undefined;
  }

  #takeBatch(): Batch {
    let bytes = 0;
    let count = 0;
    for (const line of this.#queue) {
      bytes += Buffer.byteLength(line);
      if (count > 0 && bytes > MAX_BATCH_BYTES) break;
      count++;
    }
    return { lines: this.#queue.splice(0, count) };
  }

  /** Leaves unwritten entries in the batch, and returns why. */
  async #writeBatch(batch: Batch): Promise<string | undefined> {
    const dropped = this.#dropped;
    const lines = batch.lines.map((line, index) => (index === 0 ? withDropped(line, dropped) : line));
    const lead = this.#tornLine ? '\n' : '';
    const bytes = Buffer.from(lead + lines.join(''));
    let written: number;
    try {
      written = await this.#file.append(bytes);
    } catch (error) {
      return messageOf(error);
    }
    if (written > 0) this.#tornLine = bytes[written - 1] !== NEWLINE;
    const whole = wholeLines(lines, written - lead.length);
    if (whole > 0) this.#dropped -= dropped;
    batch.lines.splice(0, whole);
    return batch.lines.length === 0 ? undefined : 'only part of it could be written; the disk may be full';
  }

  #forgetOldest(): void {
    const excess = this.#queue.length - this.#maxQueued;
    if (excess <= 0) return;
    this.#queue.splice(0, excess);
    this.#dropped += excess;
  }

  #reportFailure(reason: string): void {
    if (this.#failing) return;
    this.#failing = true;
    this.#warn(`cannot write to ${this.#options.path}: ${reason}; entries are kept in memory and retried`);
  }

  #warn(text: string): void {
    try {
      this.#options.warn(`audit log: ${text.replace(/[\r\n]+/g, ' ')}`);
    } catch {
      // A broken stderr must not become an unhandled rejection.
    }
  }
}

interface Batch {
  readonly lines: string[];
}

const NEWLINE = 0x0a;

function wholeLines(lines: readonly string[], bytes: number): number {
  let end = 0;
  const firstCut = lines.findIndex((line) => (end += Buffer.byteLength(line)) > bytes);
  return firstCut < 0 ? lines.length : firstCut;
}
