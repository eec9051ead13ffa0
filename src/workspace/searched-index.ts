import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, statfs, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Git } from './git.ts';
import { objectFormat } from './pinned-settings.ts';
import type { Seal } from './sealed.ts';
import { entriesOf, listFiles, WHOLE_STATUS, type StatusEntry } from './status.ts';
import { mayRemember, newestDirectory } from './untracked-cache.ts';

/*
 * Looking for new files is the dearer half of a look at a large repository. Git can remember in an index what each directory
 * held and when it changed (its "untracked cache"), and then looks only into those that have changed since. The session's
 * own index is not ours to write and what it says about directories not to be believed, so that is done in a copy of it,
 * in the server's directory, for as long as the session's index stays as it was copied.
 */

interface Searched {
  /** The session's index when it was copied. */
  readonly source: string;
  /** Undefined where this way of looking is not exact. */
  readonly index: string | undefined;
}

const searched = new WeakMap<Seal, Searched>();

/** Where what is searched is kept, below the scratch directory. */
export const SEARCHED = 'searched';

/** What is different from HEAD, if that is known to be quick. */
export async function quickStatus(seal: Seal, git: Git): Promise<StatusEntry[] | undefined> {
  const index = await currentCopy(seal);
  return index === undefined ? undefined : lookInto(seal, git, index, REMEMBERED);
}

/** The same, while nobody waits: makes the next look quick. Undefined where it is of no use. */
export async function searchAhead(seal: Seal, git: Git): Promise<StatusEntry[] | undefined> {
  const source = await signatureOf(indexOf(seal));
  const known = searched.get(seal);
  if (source === undefined || (known?.source === source && known.index === undefined)) return undefined;
  const index = (await currentCopy(seal)) ?? (await copyIndexOf(seal, git));
  searched.set(seal, { source, index });
  if (index === undefined) return undefined;
  const began = Date.now();
  try {
    // Git may note what it finds.
    const entries = await lookInto(seal, git, index, { ...REMEMBERED, GIT_OPTIONAL_LOCKS: '1' });
    if (!(await isSettled(seal, index, began))) searched.delete(seal);
    return entries;
  } catch (error) {
    searched.delete(seal);
    throw error;
  }
}

/** Of the session's index as it is now. */
async function currentCopy(seal: Seal): Promise<string | undefined> {
  const { source, index } = searched.get(seal) ?? {};
  if (index === undefined || source !== (await signatureOf(indexOf(seal)))) return undefined;
  return (await stat(index).catch(() => undefined))?.isFile() === true ? index : undefined;
}

/** The clock of a file system may be behind by as much. */
const BEHIND_MS = 50;

/**
 * A directory's times count in whole seconds, and all but that of its last change can be set back: what is put into one
 * in the second in which git looked into it may never be seen. So no directory may have changed that recently.
 */
async function isSettled({ pinned }: Seal, index: string, began: number): Promise<boolean> {
  try {
    const newest = newestDirectory(await readFile(index), objectFormat(pinned) === 'sha1' ? 20 : 32);
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

/** Git remembers the directories only of the kind of search that is set up. */
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
  const { atime, mtimeMs } = await stat(source);
  const bytes = await readFile(source);
  // What another git has remembered of directories may have been written by the session.
  if (mayRemember(bytes)) return undefined;
  const index = path.join(scratch, SEARCHED, 'index');
  const temporary = `${index}-${randomUUID()}`;
  await mkdir(path.dirname(index), { recursive: true, mode: 0o700 });
  await writeFile(temporary, bytes, { mode: 0o600 });
  // Never later than the original: git would take a file of the same second for unchanged.
  await utimes(temporary, atime, new Date(Math.floor(mtimeMs)));
  await rm(`${index}.lock`, { force: true });
  await rename(temporary, index);
  const { marked } = await listFiles(git, false, { GIT_INDEX_FILE: index });
  return marked.length === 0 ? index : undefined;
}

/** On these, directories are known to change their times with every file. */
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
