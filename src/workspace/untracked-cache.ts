/*
 * What git remembers of directories in the extension `UNTR` of an index, as gitformat-index(5) describes it. Read only to
 * know how recently one of them had changed.
 */

const SIGNATURE = Buffer.from('UNTR');
/** Times, numbers, owner and size of a file or directory; the time of its last change comes first. */
const STAT_BYTES = 36;
const WORD_BYTES = 8;

/** Whether these bytes may have such an extension. */
export function mayRemember(index: Buffer): boolean {
  return index.includes(SIGNATURE);
}

/**
 * When the latest of the remembered directories had changed, in seconds; undefined where none is remembered. For an index
 * in which the signature stands for the extension: that of a copy that had none.
 */
export function newestDirectory(index: Buffer, oidBytes: number): number | undefined {
  const begin = index.indexOf(SIGNATURE);
  if (begin < 0) return undefined;
  const end = begin + 8 + index.readUInt32BE(begin + 4);
  const reader = new Reader(index.subarray(begin + 8, end));
  reader.skip(reader.varint());
  // Two files of patterns, the kind of search, and the names of the two files' objects.
  reader.skip(2 * STAT_BYTES + 4 + 2 * oidBytes);
  reader.skipText();
  for (let left = reader.varint(); left > 0; left--) {
    const untracked = reader.varint();
    // How many directories follow below this one; all of them are counted already.
    reader.varint();
    for (let names = untracked + 1; names > 0; names--) reader.skipText();
  }
  const valid = reader.bitmap();
  reader.bitmap();
  reader.bitmap();
  let newest: number | undefined;
  for (let left = valid; left > 0; left--) {
    newest = Math.max(newest ?? 0, reader.uint32());
    reader.skip(STAT_BYTES - 4);
  }
  return newest;
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  skip(count: number): void {
    this.#at += count;
  }

  skipText(): void {
    const end = this.#bytes.indexOf(0, this.#at);
    if (end < 0) throw new RangeError('a name without an end');
    this.#at = end + 1;
  }

  uint32(): number {
    const value = this.#bytes.readUInt32BE(this.#at);
    this.#at += 4;
    return value;
  }

  varint(): number {
    let byte = this.#bytes.readUInt8(this.#at++);
    let value = byte & 0x7f;
    while ((byte & 0x80) !== 0) {
      byte = this.#bytes.readUInt8(this.#at++);
      value = (value + 1) * 0x80 + (byte & 0x7f);
    }
    return value;
  }

  /** How many bits are set in a compressed bitmap. */
  bitmap(): number {
    const bits = this.uint32();
    const words = this.uint32();
    const end = this.#at + words * WORD_BYTES;
    let count = 0;
    let position = 0;
    while (this.#at < end) {
      const marker = this.#bytes.readBigUInt64BE(this.#at);
      this.#at += WORD_BYTES;
      const run = Number((marker >> 1n) & 0xffff_ffffn) * 64;
      if ((marker & 1n) === 1n) count += Math.min(run, bits - position);
      position += run;
      for (let left = Number(marker >> 33n); left > 0; left--, position += 64)
        count += ones(this.uint32()) + ones(this.uint32());
    }
    this.skip(4);
    return count;
  }
}

function ones(word: number): number {
  let count = 0;
  for (let rest = word; rest !== 0; rest = (rest & (rest - 1)) >>> 0) count++;
  return count;
}
