import { createHash, randomUUID } from 'node:crypto';
import { copyFile, lstat, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { GitError, type Git } from '../git/git.ts';
import { objectFormat, oidBytes } from '../git/pinned-settings.ts';
import { sealed, type Seal } from '../git/sealed.ts';

const TIMEOUT_MS = 600_000;
/** Index size: with fewer files, one git process finishes before several have started. */
const LARGE_BYTES = 256 * 1024;
const MAX_PROCESSES = 4;

/** How a new worktree is filled with the files of a commit. */
export interface CheckoutPlan {
  readonly commit: string;
  /** The index of the commit, if several processes are to share the files; it knows nothing about the disk yet. */
  readonly index?: string;
  readonly parts: number;
}

/** Does not need the worktree, so it can run while git registers it. `like`: an index of about as many files. */
export async function planCheckout(
  seal: Seal,
  commit: string,
  like: string,
  processors = availableParallelism(),
): Promise<CheckoutPlan> {
  const size = (await stat(like).catch(() => undefined))?.size ?? 0;
  const isSparse = seal.pinned.config.some(([key, value]) => key === 'core.sparsecheckout' && value === 'true');
  const parts = Math.min(processors, MAX_PROCESSES);
  if (size < LARGE_BYTES || isSparse || parts < 2) return { commit, parts: 1 };
  const index = path.join(seal.scratch, 'first-index');
  await sealed(seal, { objects: 'repository', index, files: false }, (git) => git(['read-tree', commit]));
  return { commit, index, parts };
}

export interface CheckedOut {
  /** The files are known to be as they are committed, byte for byte. */
  readonly isVerbatim: boolean;
}

export async function checkOutFiles(seal: Seal, plan: CheckoutPlan): Promise<CheckedOut> {
  const { commit, index: planned, parts } = plan;
  const index = path.join(seal.checkout.gitDir, 'index');
  return sealed(seal, { head: commit, objects: 'repository', index, files: true }, async (git, directory) => {
    if (planned !== undefined) {
      const indexes = Array.from({ length: parts }, (_, part) => path.join(directory, `index-${part}`));
      const done = await checkOutInParts(git, { planned, index, indexes, algorithm: objectFormat(seal.pinned) });
      await rm(planned);
      if (done) return { isVerbatim: done.attributes.length === 0 && !(await convertsAnywhere(seal)) };
    }
    await git(['read-tree', '--reset', '-u', commit], { timeoutMs: TIMEOUT_MS });
    return { isVerbatim: false };
  });
}

const CONVERTS = new Set(['core.autocrlf', 'core.eol', 'core.attributesfile']);

/** Whether something outside of the repository's files says that git writes them otherwise than they are committed. */
async function convertsAnywhere({ host, pinned }: Seal): Promise<boolean> {
  if (pinned.attributes !== '' || pinned.config.some(([key]) => CONVERTS.has(key))) return true;
  const { HOME = '', XDG_CONFIG_HOME = path.join(HOME, '.config') } = host.env;
  const files = [path.join(XDG_CONFIG_HOME, 'git', 'attributes'), '/etc/gitattributes'];
  const found = await Promise.all(files.map((file) => lstat(file).catch(() => undefined)));
  return process.platform === 'win32' || found.some(Boolean);
}

interface InParts {
  readonly planned: string;
  readonly index: string;
  /** One for each part. */
  readonly indexes: readonly string[];
  readonly algorithm: 'sha1' | 'sha256';
}

/**
 * Several git processes each write a share of the files, and record in a separate index what they wrote. Git's
 * `checkout.workers` sends every file over pipes and takes a quarter longer. Undefined if it cannot be done: two names may
 * be one file here.
 */
async function checkOutInParts(git: Git, { planned, index, indexes, algorithm }: InParts): Promise<Names | undefined> {
  const names = namesIn(await readFile(planned), algorithm);
  if (!names) return undefined;
  // No existing file is replaced, so that no part can be misled by a link from another.
  const write = (some: readonly Buffer[], into: string): Promise<unknown> =>
    git(['checkout-index', '--quiet', '--index', '-z', '--stdin'], {
      env: { GIT_INDEX_FILE: into },
      input: Buffer.concat(some),
      timeoutMs: TIMEOUT_MS,
    });
  try {
    if (names.attributes.length > 0) await write(names.attributes, planned);
    await Promise.all(indexes.map((copy) => copyFile(planned, copy)));
    const length = Math.ceil(names.others.length / indexes.length);
    const written = await Promise.allSettled(
      indexes.map((copy, part) => write(names.others.slice(part * length, (part + 1) * length), copy)),
    );
    for (const outcome of written) if (outcome.status === 'rejected') throw outcome.reason;
  } catch (error) {
    if (error instanceof GitError) return undefined;
    throw error;
  }
  return (await joinIndexes(index, indexes, algorithm)) ? names : undefined;
}

/* Git's index, as described in gitformat-index(5). */

/** Times, numbers, mode and size of a file, at the beginning of its entry. */
const STAT_BYTES = 40;
const EXTENDED = 0x4000;

interface IndexEntry {
  readonly begin: number;
  readonly flagsAt: number;
  readonly nameAt: number;
  readonly end: number;
}

/** Where the entries of an index are; undefined for an unknown version. */
function indexEntries(bytes: Buffer, oidBytes: number): IndexEntry[] | undefined {
  const version = bytes.readUInt32BE(4);
  if (bytes.toString('latin1', 0, 4) !== 'DIRC' || (version !== 2 && version !== 3)) return undefined;
  const entries: IndexEntry[] = [];
  let begin = 12;
  for (let count = bytes.readUInt32BE(8); count > 0; count--) {
    const flagsAt = begin + STAT_BYTES + oidBytes;
    const nameAt = flagsAt + ((bytes.readUInt16BE(flagsAt) & EXTENDED) === 0 ? 2 : 4);
    const end = bytes.indexOf(0, nameAt);
    entries.push({ begin, flagsAt, nameAt, end });
    // One to eight zeros: an entry is a multiple of eight bytes long.
    begin += (((end - begin) >> 3) + 1) << 3;
  }
  return entries;
}

interface Names {
  /** They determine how the others are written, so they come first, and no one must see them half-written. */
  readonly attributes: readonly Buffer[];
  readonly others: readonly Buffer[];
}

const ATTRIBUTES = Buffer.from('.gitattributes\0');

/** Each with the zero at its end. */
function namesIn(index: Buffer, algorithm: 'sha1' | 'sha256'): Names | undefined {
  const names = indexEntries(index, oidBytes(algorithm))?.map(({ nameAt, end }) => index.subarray(nameAt, end + 1));
  if (!names || !index.includes(ATTRIBUTES)) return names && { attributes: [], others: names };
  const isAttributes = (name: Buffer): boolean => name.subarray(-ATTRIBUTES.length).equals(ATTRIBUTES);
  return { attributes: names.filter(isAttributes), others: names.filter((name) => !isAttributes(name)) };
}

const TIME_AT = 8;

/** Of each file, the size, times and numbers recorded by its writer; in everything else the indexes are the same. */
async function joinIndexes(index: string, parts: readonly string[], algorithm: 'sha1' | 'sha256'): Promise<boolean> {
  const [joined, ...others] = await Promise.all(parts.map((part) => readFile(part)));
  const entries = joined && indexEntries(joined, oidBytes(algorithm));
  if (!entries || others.some((other) => other.length !== joined.length)) return false;
  for (const { begin } of entries) {
    if (joined.readUInt32BE(begin + TIME_AT) !== 0) continue;
    const writer = others.find((other) => other.readUInt32BE(begin + TIME_AT) !== 0);
    writer?.copy(joined, begin, begin, begin + STAT_BYTES);
  }
  const content = joined.subarray(0, -oidBytes(algorithm));
  const temporary = `${index}.${randomUUID()}`;
  try {
    await writeFile(temporary, Buffer.concat([content, createHash(algorithm).update(content).digest()]));
    await rename(temporary, index);
  } finally {
    await rm(temporary, { force: true });
  }
  return true;
}
