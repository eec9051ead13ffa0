import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, statfs, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Git } from './git.ts';
import { objectFormat, oidBytes } from './pinned-settings.ts';
import type { Seal } from './sealed.ts';
import { dateLike, entriesOf, listFiles, WHOLE_STATUS, type StatusEntry } from './status.ts';

/*
 * In a large repository, searching for new files is half the cost of a status. Git can record in an index what each
 * directory contained and when it changed (its "untracked cache"), and then searches only the directories that changed.
 * The session's own index is not ours to write, and what it says about directories cannot be trusted, so this happens in a
 * copy in the server's directory, which is valid as long as the session's index does not change.
 */

interface Searched {
  /** The session's index when it was copied. */
  readonly source: string;
  /** Undefined if the cache would not be exact here. */
  readonly index: string | undefined;
}

const searched = new WeakMap<Seal, Searched>();

/** The directory of the copy, below the scratch directory. */
export const SEARCHED = 'searched';

/** What differs from HEAD, if a current copy makes it cheap to tell. */
export async function quickStatus(seal: Seal, git: Git): Promise<StatusEntry[] | undefined> {
  const index = await currentCopy(seal);
  return index === undefined ? undefined : lookInto(seal, git, index, REMEMBERED);
}

/** The same, and makes the next `quickStatus` cheap. For when nobody is waiting. Undefined if no copy can be used here. */
export async function searchAhead(seal: Seal, git: Git): Promise<StatusEntry[] | undefined> {
  const source = await signatureOf(indexOf(seal));
  const known = searched.get(seal);
  if (source === undefined || (known?.source === source && known.index === undefined)) return undefined;
  const index = (await currentCopy(seal)) ?? (await copyIndexOf(seal, git));
  searched.set(seal, { source, index });
  if (index === undefined) return undefined;
  const began = Date.now();
  try {
    // Lets git write what it found into the copy.
    const entries = await lookInto(seal, git, index, { ...REMEMBERED, GIT_OPTIONAL_LOCKS: '1' });
    if (!(await isSettled(seal, index, began))) searched.delete(seal);
    return entries;
  } catch (error) {
    searched.delete(seal);
    throw error;
  }
}

/** The copy, if the session's index has not changed since it was made. */
async function currentCopy(seal: Seal): Promise<string | undefined> {
  const { source, index } = searched.get(seal) ?? {};
  if (index === undefined || source !== (await signatureOf(indexOf(seal)))) return undefined;
  return (await stat(index).catch(() => undefined))?.isFile() === true ? index : undefined;
}

/** How far a file system's clock may lag behind. */
const BEHIND_MS = 50;

/**
 * Git compares a directory's times in whole seconds, and every time but that of its last change can be set back: a file
 * added in the second in which git searched the directory might never be found. So none may have changed that recently.
 */
async function isSettled({ pinned }: Seal, index: string, began: number): Promise<boolean> {
  try {
    const newest = newestDirectory(await readFile(index), oidBytes(objectFormat(pinned)));
    return newest !== undefined && newest < Math.floor((began - BEHIND_MS) / 1000);
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

async function lookInto(
  { checkout }: Seal,
  git: Git,
  index: string,
  env: Readonly<Record<string, string>>,
): Promise<StatusEntry[]> {
  return entriesOf(await git(WHOLE_STATUS, { env: { ...env, GIT_INDEX_FILE: index } }), checkout.workTree);
}

/** The cache is only used for the kind of search it was configured with. */
const REMEMBERED = {
  GIT_CONFIG_COUNT: '2',
  GIT_CONFIG_KEY_0: 'core.untrackedcache',
  GIT_CONFIG_VALUE_0: 'true',
  GIT_CONFIG_KEY_1: 'status.showuntrackedfiles',
  GIT_CONFIG_VALUE_1: 'all',
};

async function copyIndexOf(seal: Seal, git: Git): Promise<string | undefined> {
  const { checkout, pinned, scratch } = seal;
  const weak = pinned.config.some(
    ([key, value]) =>
      (key === 'core.trustctime' && value === 'false') || (key === 'core.checkstat' && value === 'minimal'),
  );
  if (weak || !(await hasExactTimes(checkout.workTree))) return undefined;
  // A split index is two files.
  const names = await readdir(checkout.gitDir);
  if (names.some((name) => name.startsWith('sharedindex.'))) return undefined;
  const source = indexOf(seal);
  const stats = await stat(source);
  const bytes = await readFile(source);
  // A cache that is already there may have been forged by the session.
  if (mayRemember(bytes)) return undefined;
  const index = path.join(scratch, SEARCHED, 'index');
  const temporary = `${index}-${randomUUID()}`;
  await mkdir(path.dirname(index), { recursive: true, mode: 0o700 });
  await writeFile(temporary, bytes, { mode: 0o600 });
  await dateLike(temporary, stats);
  await rm(`${index}.lock`, { force: true });
  await rename(temporary, index);
  const { marked } = await listFiles(git, false, { GIT_INDEX_FILE: index });
  return marked.length === 0 ? index : undefined;
}

/** File systems known to update a directory's times whenever a file is added or removed. */
const EXACT: ReadonlySet<number> = new Set([
  0xef53, // ext2 to ext4
  0x58465342, // xfs
  0x9123683e, // btrfs
  0x01021994, // tmpfs
  0x794c7630, // overlayfs
  0xf2f52010, // f2fs
  0x2fc12fc1, // zfs
]);

async function hasExactTimes(directory: string): Promise<boolean> {
  return process.platform === 'linux' && EXACT.has((await statfs(directory)).type >>> 0);
}

function indexOf({ checkout }: Seal): string {
  return path.join(checkout.gitDir, 'index');
}

async function signatureOf(file: string): Promise<string | undefined> {
  const stats = await stat(file, { bigint: true }).catch(() => undefined);
  if (stats?.isFile() !== true) return undefined;
  const { dev, ino, size, mtimeNs, ctimeNs } = stats;
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
}

/*
 * Git's untracked cache: the `UNTR` extension of an index, described in gitformat-index(5). Read only to find out how
 * recently a directory had changed.
 */

const SIGNATURE = Buffer.from('UNTR');
/** The stat data of a file or directory; the time of its last change comes first. */
const STAT_BYTES = 36;
const WORD_BYTES = 8;

/** May report a cache where there is none, but never misses one. */
function mayRemember(index: Buffer): boolean {
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
