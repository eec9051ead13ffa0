import { lstat } from 'node:fs/promises';
import path from 'node:path';
import { readHead } from './checkout.ts';
import { copyIndex } from './copy-index.ts';
import { GitError, zeroSeparated, type Git } from './git.ts';
import { readIndex, type StagedFile } from './object-files.ts';
import { objectFormat } from './pinned-settings.ts';
import { readPlainFile } from './plain-file.ts';
import { sealed, type Seal } from './sealed.ts';

export interface FileState {
  readonly mode: string;
  /** The object, or `stat:…` for what is not read: a large file, a directory with its own repository. */
  readonly oid: string;
}

/** A file that differs from HEAD. */
export interface ChangedPath {
  readonly path: string;
  readonly head: FileState | null;
  readonly now: FileState | null;
}

/**
 * The contents of a working tree at one moment, excluding ignored files. Plain data; its objects are in the scratch
 * directory.
 */
export interface Snapshot {
  readonly head: string | undefined;
  /** Tree or commit. */
  readonly tree: string;
  readonly changed: readonly ChangedPath[];
  /** When the latest of the changed files was written, in milliseconds; 0 without any. */
  readonly lastWrite: number;
}

/**
 * Beyond these limits a file is judged by size and time, so that a data set next to the code does not delay an answer.
 */
const LARGEST_FILE = 16 * 1024 * 1024;
const MOST_BYTES = 256 * 1024 * 1024;
const MOST_FILES = 20_000;

const ABSENT = '000000';
const EMPTY_TREE = {
  sha1: '4b825dc642cb6eb9a060e54bf8d69288fbee4904',
  sha256: '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321',
};

export async function takeSnapshot(seal: Seal): Promise<Snapshot> {
  const { checkout, pinned } = seal;
  const format = objectFormat(pinned);
  const head = await headCommit(seal);
  // A commit stands for its tree wherever trees are compared.
  const tree = head ?? EMPTY_TREE[format];
  const index = path.join(checkout.gitDir, 'index');
  return sealed(seal, { head, objects: 'scratch', index, files: true }, async (git, directory) => {
    const status = await readStatus(git, checkout.workTree);
    const { now, lastWrite } = await readFiles(git, directory, checkout.workTree, status, format === 'sha1' ? 20 : 32);
    const changed = status.map((entry) => ({ path: entry.path, head: entry.head, now: now.get(entry.path) ?? null }));
    return { head, tree, changed, lastWrite };
  });
}

const OID = /^([0-9a-f]{40}|[0-9a-f]{64})\n?$/;
const BRANCH = /^ref: (refs\/heads\/.+)\n?$/;

/** Usually read from a file; git is asked only if that fails. Undefined before the first commit. */
async function headCommit({ host, checkout: { gitDir, commonDir } }: Seal): Promise<string | undefined> {
  const read = (...names: string[]): Promise<string> => readPlainFile(path.join(...names));
  const head = await read(gitDir, 'HEAD');
  const branch = BRANCH.exec(head)?.[1];
  const found = branch === undefined ? OID.exec(head)?.[1] : await branchTip(branch);
  return found ?? (await readHead(host, gitDir)).commit;

  async function branchTip(name: string): Promise<string | undefined> {
    const loose = await read(commonDir, name);
    if (loose !== '') return OID.exec(loose)?.[1];
    const line = (await read(commonDir, 'packed-refs')).split('\n').find((packed) => packed.endsWith(` ${name}`));
    return OID.exec(line?.slice(0, -name.length - 1) ?? '')?.[1];
  }
}

/** Everything in the working tree matches the commit. */
export function snapshotOfTree(tree: string, head?: string): Snapshot {
  return { head, tree, changed: [], lastWrite: 0 };
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
  const entries = parseStatus(text + untracked.map((name) => `? ${name}\0`).join(''));
  const isReal = await Promise.all(entries.map(async (entry) => !(await isMountPoint(entry, workTree))));
  return entries.filter((_, index) => isReal[index]);
}

const STATUS = ['status', '--porcelain=v2', '-z', '--untracked-files=no', '--no-renames', '--ignore-submodules=dirty'];

/** Files whose changes git is told not to look for (`update-index --assume-unchanged`, `--skip-worktree`). */
export async function hiddenFiles(git: Git, workTree: string): Promise<string[]> {
  return hiddenAmong((await listFiles(git, false)).marked, workTree);
}

interface ListedFiles {
  /** With the letter of the mark and a space before the name. */
  readonly marked: readonly string[];
  readonly untracked: readonly string[];
}

async function listFiles(git: Git, withUntracked: boolean): Promise<ListedFiles> {
  const others = withUntracked ? ['--others', '--exclude-standard'] : [];
  const { stdout } = await git.bytes(['ls-files', '--cached', ...others, '-v', '-z']);
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

export function parseStatus(text: string): StatusEntry[] {
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

interface ReadFiles {
  readonly now: ReadonlyMap<string, FileState>;
  readonly lastWrite: number;
}

async function readFiles(
  git: Git,
  directory: string,
  workTree: string,
  status: readonly StatusEntry[],
  oidBytes: number,
): Promise<ReadFiles> {
  const now = new Map<string, FileState>();
  const toHash: string[] = [];
  let bytes = 0;
  let lastWrite = 0;
  for (const entry of status.filter(({ isThere }) => isThere)) {
    const stats = await lstat(path.join(workTree, entry.path)).catch(() => undefined);
    if (!stats) continue;
    lastWrite = Math.max(lastWrite, stats.mtimeMs);
    const size = stats.isFile() ? stats.size : 0;
    const isRepository = entry.path.endsWith('/');
    if (isRepository || size > LARGEST_FILE || bytes + size > MOST_BYTES || toHash.length === MOST_FILES) {
      const mode = isRepository ? '160000' : (stats.mode & 0o100) !== 0 ? '100755' : '100644';
      now.set(entry.path, { mode, oid: `stat:${isRepository ? '' : `${size}:${stats.mtimeMs}`}` });
    } else {
      bytes += size;
      toHash.push(entry.path);
    }
  }
  const modes = new Map(status.map((entry) => [entry.path, entry.mode]));
  for (const [file, state] of await hashFiles(git, path.join(directory, 'hashed'), toHash, oidBytes)) {
    const mode = modes.get(file);
    now.set(file, mode === undefined || mode === ABSENT ? state : { ...state, mode });
  }
  return { now, lastWrite };
}

/** Through a separate index: it handles links, modes and submodules, where hash-object would follow a link. */
async function hashFiles(
  git: Git,
  index: string,
  files: readonly string[],
  oidBytes: number,
): Promise<readonly StagedFile[]> {
  if (files.length === 0) return [];
  const env = { GIT_INDEX_FILE: index };
  try {
    await git(['update-index', '--add', '--remove', '--replace', '-z', '--stdin'], {
      env,
      input: `${files.join('\0')}\0`,
    });
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    // One file that cannot be read must not hide the others.
    if (files.length === 1) return [[files[0] ?? '', { mode: '100644', oid: 'stat:unreadable' }]];
    const middle = files.length >> 1;
    return [
      ...(await hashFiles(git, `${index}-`, files.slice(0, middle), oidBytes)),
      ...(await hashFiles(git, `${index}+`, files.slice(middle), oidBytes)),
    ];
  }
  const written = await readIndex(index, oidBytes);
  if (written) return written;
  const listed = zeroSeparated(await git(['ls-files', '--stage', '-z'], { env }));
  return listed.map((line) => {
    const tab = line.indexOf('\t');
    const [mode = '', oid = ''] = line.slice(0, tab).split(' ');
    return [line.slice(tab + 1), { mode, oid }];
  });
}
