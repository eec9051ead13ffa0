import { readlinkSync, realpathSync, statSync, type Stats } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { DomainError, messageOf } from '../../errors/errors.ts';

const MAX_LISTED = 500;

/** Where no session may work, whatever the operator allows. */
export interface ClosedPlaces {
  /** Neither these nor anything in them. */
  readonly inside?: readonly string[] | undefined;
  /** Neither these, nor anything in them, nor a directory that contains one of them. */
  readonly around?: readonly string[] | undefined;
  /** Open nevertheless, with everything in them. */
  readonly except?: readonly string[] | undefined;
}

/** Where sessions may work: the directories the operator allows, compared with links and `..` resolved. */
export class Directories {
  readonly #allowed: readonly string[] | undefined;
  readonly #closed: ClosedPlaces;
  /**
   * The server's own, which relative paths are resolved against unless a session's directory is given. Callers over
   * HTTP have none.
   */
  readonly own: string | undefined;

  /** A session's own worktree in a closed place is not checked here. */
  constructor(allowed: readonly string[] | undefined, own: string | undefined, closed: ClosedPlaces = {}) {
    this.#allowed = allowed;
    this.own = own;
    this.#closed = closed;
  }

  get limited(): boolean {
    return this.#allowed !== undefined;
  }

  /** Whether it matters which directory a path in the settings means. */
  get checksSettings(): boolean {
    return this.limited || this.#closed.around !== undefined;
  }

  /** An existing directory inside the allowed ones, absolute. */
  existing(given: string, what: string, base = this.own): string {
    if (base === undefined && !path.isAbsolute(given))
      throw new DomainError(
        'INVALID_ARGUMENT',
        `${what}: ${given} is relative, and there is no base directory; give the full path.`,
      );
    const absolute = path.resolve(base ?? path.sep, given);
    // Checked first, so that a caller cannot probe what exists elsewhere.
    this.checkInside(absolute, what);
    const found = statOf(absolute, what);
    if (!found)
      throw new DomainError(
        'INVALID_ARGUMENT',
        `${what}: ${absolute} does not exist; create it, or give another directory.`,
      );
    if (!found.isDirectory()) throw new DomainError('INVALID_ARGUMENT', `${what}: ${absolute} is not a directory.`);
    return absolute;
  }

  /**
   * A path that Claude Code reads itself, as the absolute path that was checked. Claude Code trims such a path and
   * expands `~`; where directories are checked, a path that would need either is refused, since it could mean a
   * different place.
   */
  written(given: string, what: string, base: string): string {
    if (!this.checksSettings) return given;
    const absolute = this.plain(given, what, base);
    this.checkInside(absolute, what);
    return absolute;
  }

  /** The same, absolute; it may be outside. */
  plain(given: string, what: string, base: string): string {
    if (this.checksSettings && (given.trim() !== given || given.startsWith('~') || hasControlCharacter(given)))
      throw new DomainError(
        'PERMISSION_DENIED',
        `${what}: ${JSON.stringify(given)} is not a plain path. Directories are checked here: write it without "~" or surrounding spaces.`,
      );
    return path.resolve(base, given);
  }

  /** Absolute, links resolved. */
  realPath(directory: string): string {
    return realPath(path.resolve(this.own ?? path.sep, directory));
  }

  isOwn(directory: string): boolean {
    return this.own !== undefined && this.realPath(directory) === realPath(this.own);
  }

  isInside(directory: string): boolean {
    return !this.#allowed || liesIn(this.#allowed, path.resolve(this.own ?? path.sep, directory));
  }

  checkInside(directory: string, what: string): void {
    this.#checkOpen(directory, what);
    this.checkAllowed(directory, what);
  }

  /** The directories in one that can be worked in or looked into, for someone who chooses one. */
  async below(directory: string): Promise<string[]> {
    this.checkAllowed(directory, 'path');
    const closed = [...(this.#closed.inside ?? []), ...(this.#closed.around ?? [])].map((place) => realPath(place));
    const isClosed = (one: string): boolean => liesIn(closed, one);
    if (isClosed(directory)) this.#checkOpen(directory, 'path');
    const entries = await readdir(directory, { withFileTypes: true }).catch((error: unknown) => {
      throw new DomainError('INVALID_ARGUMENT', `path: ${directory} cannot be read: ${messageOf(error)}`);
    });
    return entries
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && !hasControlCharacter(entry.name))
      .map((entry) => path.join(directory, entry.name))
      .filter((one) => !isClosed(one))
      .sort((one, other) => one.localeCompare(other))
      .slice(0, MAX_LISTED);
  }

  /** Where to begin to look: what the operator allows, if that is limited. */
  get roots(): readonly string[] | undefined {
    return this.#allowed;
  }

  /** Whether the operator allows it, to whoever may work there. */
  checkAllowed(directory: string, what: string): void {
    if (this.isInside(directory)) return;
    const allowed = this.#allowed?.join(', ') ?? '';
    throw new DomainError(
      'PERMISSION_DENIED',
      `${what}: ${directory} is outside the directories the operator allows (CLAUDE_CODE_MCP_ALLOWED_DIRS): ${allowed}.`,
    );
  }

  /** Commands can read and write a directory that a session works in. */
  #checkOpen(directory: string, what: string): void {
    const absolute = path.resolve(this.own ?? path.sep, directory);
    const { inside = [], around = [], except = [] } = this.#closed;
    if (
      liesIn(
        except.map((place) => realPath(place)),
        absolute,
      )
    )
      return;
    const places = [...inside, ...around].map((place) => realPath(place));
    const holds = (place: string): boolean => liesIn([realPath(absolute)], place);
    if (!liesIn(places, absolute) && !around.some(holds)) return;
    throw new DomainError(
      'PERMISSION_DENIED',
      `${what}: the server, Claude Code or the system keeps its own files there; choose another directory.`,
    );
  }
}

function hasControlCharacter(text: string): boolean {
  return /\p{Cc}/u.test(text);
}

/** `roots` with their links resolved. */
export function liesIn(roots: readonly string[], absolute: string): boolean {
  const real = realPath(absolute);
  return roots.some((root) => real === root || real.startsWith(root.endsWith(path.sep) ? root : root + path.sep));
}

/** Links resolved as far as the path exists. A dangling link counts as its target. */
export function realPath(absolute: string, hops = 0): string {
  try {
    return realpathSync.native(absolute);
  } catch {
    const parent = path.dirname(absolute);
    if (parent === absolute) return absolute;
    const target = hops < MAX_LINKS ? linkTarget(absolute) : undefined;
    if (target !== undefined) return realPath(path.resolve(parent, target), hops + 1);
    return path.join(realPath(parent, hops), path.basename(absolute));
  }
}

/** Circular links stop here, as they do in the kernel. */
const MAX_LINKS = 40;

function linkTarget(absolute: string): string | undefined {
  try {
    return readlinkSync(absolute);
  } catch {
    return undefined;
  }
}

function statOf(absolute: string, what: string): Stats | undefined {
  try {
    return statSync(absolute, { throwIfNoEntry: false });
  } catch (error) {
    throw new DomainError('INVALID_ARGUMENT', `${what}: ${messageOf(error)}`);
  }
}
