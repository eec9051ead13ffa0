import { randomUUID, createHash } from 'node:crypto';
import { lstat, readFile, rename, writeFile, access, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { deflateSync } from 'node:zlib';
import { z } from 'zod';
import { pinnedSettings } from '../../schema/worktree-record.ts';
import { headLogEnd, headOf } from '../git/checkout.ts';
import { GitError, zeroSeparated, type Git } from '../git/git.ts';
import { objectFormat } from '../git/pinned-settings.ts';
import { sealed, type Seal } from '../git/sealed.ts';
import { quickStatus, searchAhead } from '../git/searched-index.ts';
import { ABSENT, readStatus, type FileState, type StatusEntry } from '../git/status.ts';

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
  /** Full name; undefined when HEAD is detached. */
  readonly branch: string | undefined;
  /** How far the log of HEAD goes; undefined without one. */
  readonly logged: number | undefined;
  /** Tree or commit. */
  readonly tree: string;
  readonly changed: readonly ChangedPath[];
}

/**
 * Beyond these limits a file is judged by size and time, so that a data set next to the code does not delay an answer.
 */
const MAX_FILE_BYTES = 16 * 1024 * 1024;
const MAX_BYTES = 256 * 1024 * 1024;
const MAX_FILES = 20_000;

const EMPTY_TREE = {
  sha1: '4b825dc642cb6eb9a060e54bf8d69288fbee4904',
  sha256: '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321',
};

/** `ahead`: nobody waits for it, so that it may prepare the next one. */
export async function takeSnapshot(seal: Seal, when?: 'ahead'): Promise<Snapshot> {
  const { host, checkout, pinned } = seal;
  const [{ commit: head, branch }, logged] = await Promise.all([headOf(host, checkout), headLogEnd(checkout)]);
  // A commit stands for its tree wherever trees are compared.
  const tree = head ?? EMPTY_TREE[objectFormat(pinned)];
  const index = path.join(checkout.gitDir, 'index');
  return sealed(seal, { head, objects: 'scratch', index, files: true }, async (git, directory) => {
    const known = when === 'ahead' ? await searchAhead(seal, git) : await quickStatus(seal, git);
    const status = known ?? (await readStatus(git, checkout.workTree));
    const now = await readFiles(git, directory, checkout.workTree, status);
    const changed = status.map((entry) => ({ path: entry.path, head: entry.head, now: now.get(entry.path) ?? null }));
    return { head, branch, logged, tree, changed };
  });
}

/** Everything in the working tree matches the commit. With `head`, the worktree was just made. */
export function snapshotOfTree(tree: string, head?: string): Snapshot {
  return { head, branch: undefined, logged: head === undefined ? undefined : 0, tree, changed: [] };
}

async function readFiles(
  git: Git,
  directory: string,
  workTree: string,
  status: readonly StatusEntry[],
): Promise<ReadonlyMap<string, FileState>> {
  const now = new Map<string, FileState>();
  const toHash: string[] = [];
  let bytes = 0;
  for (const entry of status.filter(({ isThere }) => isThere)) {
    const stats = await lstat(path.join(workTree, entry.path)).catch(() => undefined);
    if (!stats) continue;
    const size = stats.isFile() ? stats.size : 0;
    const isRepository = entry.path.endsWith('/');
    if (isRepository || size > MAX_FILE_BYTES || bytes + size > MAX_BYTES || toHash.length === MAX_FILES) {
      const mode = isRepository ? '160000' : (stats.mode & 0o100) !== 0 ? '100755' : '100644';
      now.set(entry.path, { mode, oid: `stat:${isRepository ? '' : `${size}:${stats.mtimeMs}`}` });
    } else {
      bytes += size;
      toHash.push(entry.path);
    }
  }
  const modes = new Map(status.map((entry) => [entry.path, entry.mode]));
  for (const [file, state] of await hashFiles(git, path.join(directory, 'hashed'), toHash)) {
    const mode = modes.get(file);
    now.set(file, mode === undefined || mode === ABSENT ? state : { ...state, mode });
  }
  return now;
}

/** Through a separate index: it handles links, modes and submodules, where hash-object would follow a link. */
async function hashFiles(git: Git, index: string, files: readonly string[]): Promise<readonly StagedFile[]> {
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
      ...(await hashFiles(git, `${index}-`, files.slice(0, middle))),
      ...(await hashFiles(git, `${index}+`, files.slice(middle))),
    ];
  }
  const listed = zeroSeparated(await git(['ls-files', '--stage', '-z'], { env }));
  return listed.map((line) => {
    const tab = line.indexOf('\t');
    const [mode = '', oid = ''] = line.slice(0, tab).split(' ');
    return [line.slice(tab + 1), { mode, oid }];
  });
}

/**
 * The baselines of a session, beside the objects that they refer to. They belong to the session: a server that
 * continues it after a restart compares with them, not with what it finds.
 */

const fileState = z.object({ mode: z.string(), oid: z.string() }).nullable();

const snapshot = z.object({
  head: z.string().optional(),
  tree: z.string(),
  changed: z.array(z.object({ path: z.string(), head: fileState, now: fileState })),
  branch: z.string().optional(),
  logged: z.number().optional(),
});

const keptStart = z.object({ root: z.string(), pinned: pinnedSettings, begun: snapshot });
export type KeptStart = z.infer<typeof keptStart>;

const START = 'start.json';
const LAST = 'last.json';

/** How the session began in this checkout; undefined if it did not, or if that is unknown. */
export async function loadStart(scratch: string, root: string): Promise<KeptStart | undefined> {
  const { data } = keptStart.safeParse(await read(scratch, START));
  return data?.root === root ? data : undefined;
}

export async function keepStart(scratch: string, start: KeptStart): Promise<void> {
  await write(scratch, START, start);
}

/** What the next report starts from if no server has taken a newer look; undefined before the first. */
export async function loadMark(scratch: string): Promise<Snapshot | undefined> {
  const { data } = snapshot.safeParse(await read(scratch, LAST));
  return data && { ...data, head: data.head, branch: data.branch, logged: data.logged };
}

export async function keepMark(scratch: string, mark: Snapshot): Promise<void> {
  await write(scratch, LAST, mark);
}

async function read(scratch: string, name: string): Promise<unknown> {
  return readFile(path.join(scratch, name), 'utf8').then(JSON.parse, () => undefined);
}

/** Replaced as a whole: a killed server leaves the old content or the new. */
async function write(scratch: string, name: string, content: object): Promise<void> {
  const file = path.join(scratch, name);
  const beside = `${file}.${randomUUID()}`;
  await writeFile(beside, JSON.stringify(content), { mode: 0o600 });
  await rename(beside, file);
}

/** Git's loose objects, written here: through an index of git's own, an answer would wait for four processes. */

export type StagedFile = readonly [path: string, state: FileState];

interface Directory {
  readonly files: Map<string, FileState>;
  readonly directories: Map<string, Directory>;
}

/** Writes the trees that contain these files. Returns the root tree. */
export async function writeTrees(
  objects: string,
  files: readonly StagedFile[],
  algorithm: 'sha1' | 'sha256',
): Promise<string> {
  const top: Directory = { files: new Map(), directories: new Map() };
  for (const [file, state] of files) {
    const parts = file.split('/');
    const name = parts.pop() ?? '';
    let directory = top;
    for (const part of parts) {
      const below = directory.directories.get(part) ?? { files: new Map(), directories: new Map() };
      directory.directories.set(part, below);
      directory = below;
    }
    directory.files.set(name, state);
  }
  return writeTree(objects, top, algorithm);
}

async function writeTree(objects: string, { files, directories }: Directory, algorithm: string): Promise<string> {
  const entries = [...files].map(([name, { mode, oid }]) => ({ name, sortedAs: Buffer.from(name), mode, oid }));
  for (const [name, below] of directories) {
    const oid = await writeTree(objects, below, algorithm);
    entries.push({ name, sortedAs: Buffer.from(`${name}/`), mode: '40000', oid });
  }
  entries.sort((a, b) => Buffer.compare(a.sortedAs, b.sortedAs));
  const content = entries.map(({ name, mode, oid }) =>
    Buffer.concat([Buffer.from(`${mode.replace(/^0/, '')} ${name}\0`), Buffer.from(oid, 'hex')]),
  );
  const body = Buffer.concat(content);
  return writeObject(objects, Buffer.concat([Buffer.from(`tree ${body.length}\0`), body]), algorithm);
}

async function writeObject(objects: string, object: Buffer, algorithm: string): Promise<string> {
  const oid = createHash(algorithm).update(object).digest('hex');
  const directory = path.join(objects, oid.slice(0, 2));
  const file = path.join(directory, oid.slice(2));
  const isThere = await access(file).then(
    () => true,
    () => false,
  );
  if (isThere) return oid;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const temporary = path.join(directory, `tmp_${randomUUID()}`);
  await writeFile(temporary, deflateSync(object, { level: 1 }), { mode: 0o600 });
  await rename(temporary, file);
  return oid;
}
