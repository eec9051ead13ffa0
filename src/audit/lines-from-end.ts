import { openOwnFile } from '../platform/own-file.ts';

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
