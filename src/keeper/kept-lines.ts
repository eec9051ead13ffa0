const NEWLINE = 0x0a;

/** How much unread output of a process is kept before it has to wait. */
export const MAX_KEPT_BYTES = 8 * 1024 * 1024;

interface Kept {
  readonly line: number;
  readonly bytes: Buffer;
}

/** The lines that a process wrote and that no hub has finished with, numbered from 1. */
export class KeptLines {
  #kept: Kept[] = [];
  #bytes = 0;
  #partial: Buffer[] = [];
  #partialBytes = 0;
  #last = 0;

  /** The number of the last whole line. */
  get last(): number {
    return this.#last;
  }

  /** Including the beginning of a line that is not whole yet. */
  get bytes(): number {
    return this.#bytes + this.#partialBytes;
  }

  get size(): number {
    return this.#kept.length;
  }

  /** Takes output as it comes and returns the lines that it completes. */
  take(chunk: Buffer): readonly Kept[] {
    const whole: Kept[] = [];
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      whole.push(this.#add(chunk.subarray(from, end)));
      from = end + 1;
    }
    if (from < chunk.length) {
      // Copied, or a few bytes would keep the whole chunk in memory.
      this.#partial.push(Buffer.from(chunk.subarray(from)));
      this.#partialBytes += chunk.length - from;
    }
    return whole;
  }

  /** A process that ended in the middle of a line has written that much of it. */
  end(): readonly Kept[] {
    return this.#partialBytes > 0 ? [this.#add(Buffer.alloc(0))] : [];
  }

  /** Those beyond a line, and those before it that are still held. */
  after(line: number, held: ReadonlySet<number>): readonly Kept[] {
    return this.#kept.filter((kept) => kept.line > line || held.has(kept.line));
  }

  /** Drops the lines up to this one, except the ones that are held. */
  drop(upTo: number, held: ReadonlySet<number>): void {
    const left = this.#kept.filter(({ line }) => line > upTo || held.has(line));
    if (left.length === this.#kept.length) return;
    this.#kept = left;
    this.#bytes = left.reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  #add(rest: Buffer): Kept {
    const bytes = Buffer.concat([...this.#partial, rest]);
    this.#partial = [];
    this.#partialBytes = 0;
    const kept = { line: ++this.#last, bytes };
    this.#kept.push(kept);
    this.#bytes += bytes.length;
    return kept;
  }
}
