const NEWLINE = 0x0a;

/**
 * Splits a stream into lines. A line over the limit is skipped, so that one huge frame costs neither memory nor the
 * connection; chunks are joined once, so that a large frame is not copied repeatedly.
 */
export class FrameReader {
  readonly #maxBytes: number;
  readonly #onFrame: (line: string) => void;
  readonly #onTooLong: () => void;
  #pieces: Buffer[] = [];
  #size = 0;

  constructor(maxBytes: number, onFrame: (line: string) => void, onTooLong: () => void) {
    this.#maxBytes = maxBytes;
    this.#onFrame = onFrame;
    this.#onTooLong = onTooLong;
  }

  take(chunk: Buffer): void {
    for (let from = 0; from < chunk.length;) {
      const newline = chunk.indexOf(NEWLINE, from);
      const to = newline < 0 ? chunk.length : newline;
      this.#add(chunk.subarray(from, to));
      if (newline >= 0) this.#end();
      from = to + 1;
    }
  }

  #add(piece: Buffer): void {
    this.#size += piece.length;
    if (this.#size > this.#maxBytes) this.#pieces = [];
    else this.#pieces.push(piece);
  }

  #end(): void {
    const tooLong = this.#size > this.#maxBytes;
    const line = Buffer.concat(this.#pieces).toString('utf8').trim();
    this.#pieces = [];
    this.#size = 0;
    if (tooLong) this.#onTooLong();
    else if (line !== '') this.#onFrame(line);
  }
}
