/*
 * Git's untracked cache: the `UNTR` extension of an index, described in gitformat-index(5). Read only to find out how
 * recently a directory had changed.
 */

const SIGNATURE = Buffer.from('UNTR');
/** The stat data of a file or directory; the time of its last change comes first. */
const STAT_BYTES = 36;
const WORD_BYTES = 8;

/** May report a cache where there is none, but never misses one. */
export function mayRemember(index: Buffer): boolean {
  return index.includes(SIGNATURE);
}

/**
 * When the most recently changed directory in the cache had changed, in seconds; undefined if the cache is empty. Only for
 * an index in which nothing but the extension contains its signature.
 */
export function newestDirectory(index: Buffer, oidBytes: number): number | undefined {
  const begin = index.indexOf(SIGNATURE);
  if (begin < 0) return undefined;
  const end = begin + 8 + index.readUInt32BE(begin + 4);
  const reader = new Reader(index.subarray(begin + 8, end));
  reader.skip(reader.varint());
  // Stat data of two exclude files, the flags of the search, and the object names of both files.
  reader.skip(2 * STAT_BYTES + 4 + 2 * oidBytes);
  reader.skipText();
  for (let left = reader.varint(); left > 0; left--) {
    const untracked = reader.varint();
    // The number of its subdirectories, which the outer count includes.
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
