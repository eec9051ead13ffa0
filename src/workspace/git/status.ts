import type { Stats } from 'node:fs';
import { lstat, copyFile, stat, utimes } from 'node:fs/promises';
import path from 'node:path';
import { DomainError } from '../../errors/errors.ts';
import { zeroSeparated, type Git } from './git.ts';

export const ABSENT = '000000';

export interface FileState {
  readonly mode: string;
  /** The object, or `stat:…` for what is not read: a large file, a directory with its own repository. */
  readonly oid: string;
}

export interface StatusEntry {
  readonly path: string;
  readonly head: FileState | null;
  /** As git sees the file now: on Windows the index knows more about modes than the disk. */
  readonly mode: string | undefined;
  readonly isThere: boolean;
  readonly isUnmerged: boolean;
}

/** What differs from HEAD, excluding what only a running sandbox put there. */
export async function readStatus(git: Git, workTree: string): Promise<StatusEntry[]> {
  // Two processes in parallel: git compares tracked files in several threads, but looks for new ones in a single one.
  const [tracked, { marked, untracked }] = await Promise.all([git(STATUS), listFiles(git, true)]);
  const hidden = await hiddenAmong(marked, workTree);
  const text = hidden.length === 0 ? tracked : await statusWith(git, hidden);
  return entriesOf(text + untracked.map((name) => `? ${name}\0`).join(''), workTree);
}

/** Parses git's output. */
export async function entriesOf(text: string, workTree: string): Promise<StatusEntry[]> {
  const entries = parseStatus(text);
  const isReal = await Promise.all(entries.map(async (entry) => !(await isMountPoint(entry, workTree))));
  return entries.filter((_, index) => isReal[index]);
}

const COMPARISON = ['status', '--porcelain=v2', '-z', '--no-renames', '--ignore-submodules=dirty'];
/** Including new files. */
export const WHOLE_STATUS = [...COMPARISON, '--untracked-files=all'];
const STATUS = [...COMPARISON, '--untracked-files=no'];

/** Files whose changes git is told not to look for (`update-index --assume-unchanged`, `--skip-worktree`). */
export async function hiddenFiles(git: Git, workTree: string): Promise<string[]> {
  return hiddenAmong((await listFiles(git, false)).marked, workTree);
}

interface ListedFiles {
  /** With the letter of the mark and a space before the name. */
  readonly marked: readonly string[];
  readonly untracked: readonly string[];
}

export async function listFiles(
  git: Git,
  withUntracked: boolean,
  env: Readonly<Record<string, string>> = {},
): Promise<ListedFiles> {
  const others = withUntracked ? ['--others', '--exclude-standard'] : [];
  const { stdout } = await git.bytes(['ls-files', '--cached', ...others, '-v', '-z'], { env });
  const unusual = unusualEntries(stdout);
  return {
    marked: unusual.filter((entry) => /^[a-zS] /.test(entry)),
    untracked: unusual.filter((entry) => entry.startsWith('? ')).map((entry) => entry.slice(2)),
  };
}

/** All except plain tracked files: in a large repository those are not even made into strings. */
function unusualEntries(listed: Buffer): string[] {
  const found = `\0${listed.toString('latin1')}`.matchAll(/\0(?!H )([^\0]+)/g);
  return [...found].map(([, entry = '']) => Buffer.from(entry, 'latin1').toString('utf8'));
}

async function hiddenAmong(marked: readonly string[], workTree: string): Promise<string[]> {
  const isThere = await Promise.all(
    // A file omitted by a sparse checkout is not deleted.
    marked.map(
      async (entry) => !/^s/i.test(entry) || (await lstat(path.join(workTree, entry.slice(2))).catch(() => undefined)),
    ),
  );
  return marked.filter((_, index) => isThere[index]).map((entry) => entry.slice(2));
}

/** Removes the marks, in this git's index. */
export async function revealFiles(git: Git, files: readonly string[], env: Record<string, string> = {}): Promise<void> {
  const input = files.map((name) => `${name}\0`).join('');
  for (const mark of ['--no-assume-unchanged', '--no-skip-worktree'])
    await git(['update-index', mark, '-z', '--stdin'], { input, env });
}

async function statusWith(git: Git, files: readonly string[]): Promise<string> {
  const copy = path.join(git.cwd, 'revealed');
  await copyIndex(git.env['GIT_INDEX_FILE'] ?? '', copy);
  const env = { GIT_INDEX_FILE: copy };
  await revealFiles(git, files, env);
  return git(STATUS, { env });
}

/**
 * While a command runs in Claude Code's sandbox (2.1.325), names that it must not write and that do not exist appear as
 * empty files in the working directory. They disappear with the command.
 */
async function isMountPoint({ path: name, head, mode }: StatusEntry, workTree: string): Promise<boolean> {
  if (head !== null || mode !== undefined || !SANDBOX_MOUNTS.test(name)) return false;
  const stats = await lstat(path.join(workTree, name)).catch(() => undefined);
  return stats?.isFile() === true && stats.size === 0;
}

const SANDBOX_MOUNTS = new RegExp(
  '(^|/)(' +
    '\\.(bashrc|bash_profile|profile|zshrc|zprofile|gitconfig|gitmodules|ripgreprc|mcp\\.json|vscode|idea)' +
    '|\\.claude/(settings\\.json|settings\\.local\\.json|commands|agents|skills)' +
    ')$',
);

function parseStatus(text: string): StatusEntry[] {
  const entries = new Map<string, StatusEntry>();
  for (const line of zeroSeparated(text)) {
    if (line.startsWith('? ')) {
      const file = line.slice(2);
      // Removed from the index but still there: two lines for one path.
      const tracked = entries.get(file);
      entries.set(file, { path: file, head: tracked?.head ?? null, mode: undefined, isThere: true, isUnmerged: false });
      continue;
    }
    const isUnmerged = line.startsWith('u ');
    const fields = line.split(' ');
    // 1 XY sub mH mI mW hH hI path, or u XY sub m1 m2 m3 mW h1 h2 h3 path; for an unmerged path, ours is what HEAD has.
    const [headMode = '', mode = '', oid = ''] = (isUnmerged ? [4, 6, 8] : [3, 5, 6]).map((index) => fields[index]);
    const file = fields.slice(isUnmerged ? 10 : 8).join(' ');
    const head = headMode === ABSENT ? null : { mode: headMode, oid };
    entries.set(file, { path: file, head, mode, isThere: mode !== ABSENT, isUnmerged });
  }
  return [...entries.values()];
}

/**
 * A copy of git's index with the original's timestamp. Git considers a file unchanged if its size and time match the
 * index, unless the index is no newer than the file: a newer copy would hide an edit in the same second.
 */
export async function copyIndex(from: string, to: string, mode = 0): Promise<void> {
  const stats = await stat(from);
  // A pipe in its place would block forever.
  if (!stats.isFile()) throw new DomainError('INVALID_ARGUMENT', `${from} is not a file.`);
  await copyFile(from, to, mode);
  await dateLike(to, stats);
}

/** Never later than the original. */
export async function dateLike(copy: string, { atime, mtimeMs }: Stats): Promise<void> {
  await utimes(copy, atime, new Date(Math.floor(mtimeMs)));
}
