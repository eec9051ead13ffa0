import { createHash, randomUUID } from 'node:crypto';
import { copyFile, lstat, readFile, rename, rm, stat, writeFile, readdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { GitError, type Git, zeroSeparated } from '../git/git.ts';
import { objectFormat, oidBytes } from '../git/pinned-settings.ts';
import { sealed, type Seal } from '../git/sealed.ts';
import { diffRaw, type Pair } from '../report/compare.ts';
import { readStatus } from '../git/status.ts';

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

export interface CheckoutUpdate {
  /** The commit that the checkout is at. */
  readonly from: string;
  /** Commit or tree. */
  readonly to: string;
  /** The index to update; one other than the checkout's leaves the changes unstaged. */
  readonly index: string;
}

/** Files with someone else's changes that the update would have to touch. */
export async function filesInTheWay(seal: Seal, { from, to, index }: CheckoutUpdate): Promise<string[]> {
  const { pinned, checkout } = seal;
  const { workTree } = checkout;
  return sealed(seal, { head: from, objects: 'repository', index, files: true }, async (git) => {
    const touched = new Map((await diffRaw(git, from, to)).map((pair) => [pair.path, pair]));
    const inTheWay = new Set<string>();
    for (const { path: name } of await readStatus(git, workTree)) {
      const isBelow = name.endsWith('/') && [...touched.keys()].some((file) => file.startsWith(name));
      if (touched.has(name) || isBelow) inTheWay.add(name);
    }
    const ignoresCase = pinned.config.some(([key, value]) => key === 'core.ignorecase' && value === 'true');
    const goes = goingFrom(touched, ignoresCase);
    for (const pair of touched.values()) {
      // Git would silently overwrite ignored files, and remove a submodule with everything in it.
      if (pair.before === null && pair.after !== null) {
        const found = await occupied(workTree, pair.path, goes);
        if (found !== undefined) inTheWay.add(found);
      } else if (pair.before?.mode === SUBMODULE && pair.after?.mode !== SUBMODULE) {
        const isReplaced = pair.after !== null || [...touched.keys()].some((name) => name.startsWith(`${pair.path}/`));
        if (isReplaced && (await hasContent(path.join(workTree, pair.path)))) inTheWay.add(`${pair.path}/`);
      }
    }
    return [...inTheWay].sort();
  });
}

const SUBMODULE = '160000';

/** Whether the update itself removes a file; on a case-insensitive file system, also under another spelling. */
export function goingFrom(touched: ReadonlyMap<string, Pair>, ignoresCase: boolean): (name: string) => boolean {
  const spelt = (name: string): string => (ignoresCase ? name.toLowerCase() : name);
  const going = [...touched.values()].filter(({ before, after }) => before !== null && after === null);
  const names = new Set(going.map((pair) => spelt(pair.path)));
  return (name) => names.has(spelt(name));
}

async function hasContent(directory: string): Promise<boolean> {
  return (await readdir(directory).catch(() => [])).length > 0;
}

/** What already exists where a file must be created. */
async function occupied(workTree: string, file: string, goes: (name: string) => boolean): Promise<string | undefined> {
  const parts = file.split('/');
  for (let length = 1; length <= parts.length; length++) {
    const name = parts.slice(0, length).join('/');
    const stats = await lstat(path.join(workTree, name)).catch(() => undefined);
    if (!stats) return undefined;
    if (stats.isDirectory()) {
      if (length < parts.length) continue;
      const below = await readdir(path.join(workTree, name), { recursive: true, withFileTypes: true });
      const files = below.filter((entry) => !entry.isDirectory());
      const names = files.map((entry) => path.relative(workTree, path.join(entry.parentPath, entry.name)));
      return names.find((other) => !goes(other.split(path.sep).join('/')));
    }
    if (!goes(name)) return name;
  }
  return undefined;
}

/** Writes the files that differ. Git checks all of them first and refuses before touching any. */
export async function updateCheckout(seal: Seal, { from, to, index }: CheckoutUpdate): Promise<void> {
  await sealed(seal, { head: from, objects: 'repository', index, files: true }, async (git) => {
    await git(['read-tree', '-m', '-u', from, to], { timeoutMs: 600_000 });
  });
}

/**
 * After a crash: files that already have their new content are entered in the index, so that the update can be
 * repeated. Any other change to a touched file is left for a person to look at. Returns how many files there are.
 */
export async function enterFinishedFiles(seal: Seal, { from, to, index }: CheckoutUpdate): Promise<number> {
  return sealed(seal, { head: from, objects: 'repository', index, files: true }, async (git, directory) => {
    const touched = await diffRaw(git, from, to);
    const now = await contentOf(
      git,
      path.join(directory, 'now'),
      touched.map((pair) => pair.path),
      seal.checkout.workTree,
    );
    const finished = touched.filter((pair) => (now.get(pair.path) ?? null) === (pair.after?.oid ?? null));
    const removal = `0 ${'0'.repeat(from.length)}\t`;
    const input = finished.map(
      (pair) => `${pair.after ? `${pair.after.mode} ${pair.after.oid} 0\t` : removal}${pair.path}\0`,
    );
    await git(['update-index', '--replace', '-z', '--index-info'], { input: input.join('') });
    await git(['update-index', '-q', '--refresh'], { codes: [0, 1] });
    return finished.length;
  });
}

async function contentOf(
  git: Git,
  index: string,
  files: readonly string[],
  workTree: string,
): Promise<Map<string, string>> {
  const there: string[] = [];
  for (const file of files) {
    const stats = await lstat(path.join(workTree, file)).catch(() => undefined);
    if (stats && !stats.isDirectory()) there.push(file);
  }
  const env = { GIT_INDEX_FILE: index };
  await git(['update-index', '--add', '--remove', '--replace', '-z', '--stdin'], {
    env,
    input: there.map((file) => `${file}\0`).join(''),
  });
  return new Map(
    zeroSeparated(await git(['ls-files', '--stage', '-z'], { env })).map((line) => {
      const tab = line.indexOf('\t');
      return [line.slice(tab + 1), line.slice(0, tab).split(' ')[1] ?? ''];
    }),
  );
}
