import { Transform, type TransformCallback } from 'node:stream';

const NEWLINE = 0x0a;
const OPENING_BRACE = 0x7b;
const BLANKS: ReadonlySet<number> = new Set([0x20, 0x09, 0x0d]);

/**
 * Passes on the lines that start an object; anything else a program prints is reported as `stray`. The SDK (0.3.325)
 * skips what is not JSON, but a line `null` ends its stream, and with it the session; can go when that is fixed. Works
 * on pieces of lines: one line may be tens of megabytes long.
 */
export class ObjectLines extends Transform {
  readonly #stray: (text: string) => void;
  #line: 'beginning' | 'object' | 'stray' = 'beginning';

  constructor(stray: (text: string) => void) {
    super();
    this.#stray = stray;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    for (let from = 0; from < chunk.length;) {
      const newline = chunk.indexOf(NEWLINE, from);
      const to = newline < 0 ? chunk.length : newline + 1;
      this.#take(chunk.subarray(from, to));
      if (newline >= 0) this.#line = 'beginning';
      from = to;
    }
    done();
  }

  #take(piece: Buffer): void {
    if (this.#line === 'beginning') {
      const first = piece.find((byte) => !BLANKS.has(byte));
      if (first === undefined || first === NEWLINE) return;
      this.#line = first === OPENING_BRACE ? 'object' : 'stray';
    }
    if (this.#line === 'object') this.push(piece);
    else this.#stray(piece.toString('utf8'));
  }
}
