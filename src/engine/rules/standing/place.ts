import path from 'node:path';

/**
 * Where a session works, as rules see it. A worktree counts as the checkout that it belongs to, so that a rule for a
 * repository also holds there.
 */
export interface RulePlace {
  /** The principal that the session belongs to. */
  readonly owner: string;
  /** What relative paths start from; undefined if a command may have changed it. */
  readonly cwd: string | undefined;
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
