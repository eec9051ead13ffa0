import { existsSync, lstatSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { realPath } from '../directories.ts';

/**
 * Where a session works, as rules see it. A worktree counts as the checkout that it belongs to, so that a rule for a
 * repository also holds there.
 */
export interface RulePlace {
  /** The principal that the session belongs to. */
  readonly owner: string;
  /** What relative paths start from; undefined if a command may have changed it. */
  readonly cwd: string | undefined;
  /** A command may have changed to a directory that is not one of the session's. */
  readonly mayBeElsewhere?: boolean;
  /** Where commands run, git may find a repository that the session wrote, whose configuration makes it run programs. */
  readonly mayMisleadGit?: boolean;
  /** All directories of the session. */
  readonly roots: readonly PlaceRoot[];
  /** Links resolved, as far as the path exists. */
  realPath(absolute: string): string;
}

export interface PlaceRoot {
  /** Links resolved. */
  readonly real: string;
  /** The same directory of the repository's own checkout; the real path if it is no worktree. */
  readonly countsAs: string;
}

/** The real path, if it can be told and lies in one of the session's directories. */
export function insidePath(place: RulePlace, given: string): string | undefined {
  // Claude Code expands `~` and trims; links make `..` ambiguous.
  if (given === '' || given !== given.trim() || given.startsWith('~') || /(?:^|[\\/])\.\.(?:[\\/]|$)/.test(given))
    return undefined;
  if (!path.isAbsolute(given) && place.cwd === undefined) return undefined;
  const real = place.realPath(path.resolve(place.cwd ?? path.sep, given));
  return place.roots.some((root) => isWithin(real, root.real)) ? real : undefined;
}

/** The path as it would be in the repository's own checkout. */
export function countedPath(place: RulePlace, real: string): string {
  const root = place.roots.find((one) => isWithin(real, one.real));
  return root ? path.join(root.countsAs, path.relative(root.real, real)) : real;
}

export function isWithin(file: string, directory: string): boolean {
  return file === directory || file.startsWith(directory.endsWith(path.sep) ? directory : directory + path.sep);
}

/** Where a session with these directories works. The first is where its commands start. */
export function placeOf(owner: string, directories: readonly string[]): RulePlace {
  const [cwd = path.sep] = directories;
  const roots = [...new Set(directories.map((directory) => realPath(path.resolve(cwd, directory))))].map((real) => ({
    real,
    countsAs: countsAs(real),
  }));
  return { owner, cwd, roots, realPath };
}

/** The repository that a directory belongs to, or the directory itself if there is none, and what it counts as. */
export function scopeOf(directory: string): { repository: string; directory: string } {
  const real = realPath(directory);
  const top = checkoutAround(real);
  return { repository: top === undefined ? real : (mainCheckout(top) ?? top), directory: countsAs(real) };
}

export function isInRepository(directory: string): boolean {
  return checkoutAround(realPath(directory)) !== undefined;
}

function countsAs(real: string): string {
  const top = checkoutAround(real);
  const main = top === undefined ? undefined : mainCheckout(top);
  return top === undefined || main === undefined ? real : path.join(main, path.relative(top, real));
}

/**
 * Whether git could take this directory, or one above it in the same checkout, for a bare repository: files that any tool
 * may write make one, without a `.git`.
 */
export function mayHideRepository(directory: string): boolean {
  const real = realPath(directory);
  const top = checkoutAround(real) ?? path.parse(real).root;
  for (let one = real; ; one = path.dirname(one)) {
    if (lstatSync(path.join(one, 'HEAD'), { throwIfNoEntry: false })) return true;
    if (one === top) return false;
  }
}

/** The nearest directory with a `.git` in it. */
function checkoutAround(real: string): string | undefined {
  for (let directory = real; ; directory = path.dirname(directory)) {
    if (existsSync(path.join(directory, '.git'))) return directory;
    if (path.dirname(directory) === directory) return undefined;
  }
}

/**
 * The checkout that a worktree was made from; undefined if it is no worktree. The repository must know it too: anyone can
 * write a `.git` file that names somebody else's repository.
 */
function mainCheckout(top: string): string | undefined {
  try {
    const link = path.join(top, '.git');
    const [, named] = /^gitdir: (.+)\n?$/.exec(readFileSync(link, 'utf8')) ?? [];
    if (named === undefined) return undefined;
    const entry = realPath(path.resolve(top, named));
    const back = readFileSync(path.join(entry, 'gitdir'), 'utf8').trim();
    if (realPath(path.resolve(entry, back)) !== realPath(link)) return undefined;
    const common = realPath(path.resolve(entry, readFileSync(path.join(entry, 'commondir'), 'utf8').trim()));
    if (path.dirname(entry) !== path.join(common, 'worktrees')) return undefined;
    return path.basename(common) === '.git' ? path.dirname(common) : common;
  } catch {
    return undefined;
  }
}
