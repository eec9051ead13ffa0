import { lstat, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { messageOf } from '../../errors/errors.ts';
import type { WorktreeRecord } from '../../schema/worktree-record.ts';
import { readHead, refsHolding, resolveCommit, shortBranch } from '../git/checkout.ts';
import { gitIn, zeroSeparated, readPlainFile } from '../git/git.ts';
import { sealed, type Seal, type SealedUse } from '../git/sealed.ts';
import { readStatus } from '../git/status.ts';
import { checkoutOfRecord, listRecordIds, loadRecord, sealOf, type WorktreeHost } from './worktree-records.ts';

export interface WorktreeState {
  readonly id: string;
  readonly sessionId: string;
  readonly path: string;
  readonly repository: string;
  readonly branch: string;
  readonly base: string;
  readonly createdAt: string;
  /** When its files or its branch were last written, in milliseconds. */
  readonly lastUsed: number;
  /** `unfinished`: an operation was interrupted; the next one resumes it. */
  readonly state: 'ready' | 'unfinished' | 'missing';
  /** Uncommitted files; a directory with its own repository ends in a slash. */
  readonly dirty: readonly string[];
  /** Commits that are on no other branch and were not taken by squash or patch. */
  readonly unmergedCommits: number;
  /** Another branch contains all of its commits: deleting the branch loses nothing. */
  readonly isMerged: boolean;
  readonly tip: string | undefined;
  /** A commit that is not on its branch and that only the worktree's HEAD holds. */
  readonly looseHead: string | undefined;
  /** Why it is unknown which of its files are committed; they then count as work. */
  readonly unreadable: string | undefined;
}

export async function worktreeState(host: WorktreeHost, record: WorktreeRecord): Promise<WorktreeState> {
  const { git } = host;
  const isThere = await isDirectory(record.path);
  const repositoryExists = await isDirectory(record.commonDir);
  const tip = repositoryExists ? await resolveCommit(git, record.commonDir, record.branch) : undefined;
  const isReady = record.state === 'ready' && record.journal === undefined;
  const { head, dirty, unreadable } = isThere && isReady ? await filesOf(host, record) : NO_FILES;
  const isMerged = tip === undefined || (await isHeldElsewhere(host, record, tip));
  const looseHead =
    head !== undefined && head !== tip && !(await isHeldElsewhere(host, record, head, true)) ? head : undefined;
  return {
    id: record.id,
    sessionId: record.sessionId,
    path: record.path,
    repository: record.origin,
    branch: shortBranch(record.branch),
    base: record.base.ref === undefined ? record.begun : shortBranch(record.base.ref),
    createdAt: record.createdAt,
    lastUsed: await lastUse(record),
    state: !isThere ? 'missing' : isReady ? 'ready' : 'unfinished',
    dirty,
    unmergedCommits: isMerged || tip === undefined ? 0 : await countCommits(host, record, tip),
    isMerged,
    tip,
    looseHead,
    unreadable,
  };
}

interface Files extends Pick<WorktreeState, 'dirty' | 'unreadable'> {
  readonly head: string | undefined;
}

const NO_FILES: Files = { head: undefined, dirty: [], unreadable: undefined };

/** A moved repository, or a pruned entry, must not make it look as if there were no files. */
async function filesOf(host: WorktreeHost, record: WorktreeRecord): Promise<Files> {
  const { gitDir, commonDir } = checkoutOfRecord(record);
  try {
    if (!(await isDirectory(commonDir))) throw new Error(`its repository ${commonDir} does not exist`);
    if (!(await isDirectory(gitDir))) throw new Error(`git no longer knows it (${gitDir} is gone)`);
    const { commit: head } = await readHead(host.git, gitDir);
    return { head, dirty: await dirtyFiles(host, record, head), unreadable: undefined };
  } catch (error) {
    if ((await readdir(record.path).catch(() => [])).length === 0) return NO_FILES;
    return { ...NO_FILES, unreadable: messageOf(error) };
  }
}

/** Nothing in it would be lost: what is on no other branch was taken by squash or patch. */
export function isDone(state: WorktreeState): boolean {
  const { dirty, unmergedCommits, looseHead, unreadable } = state;
  return dirty.length === 0 && unmergedCommits === 0 && looseHead === undefined && unreadable === undefined;
}

export interface Unreadable {
  readonly id: string;
  readonly problem: string;
}

/** All of them, or that of one session. */
export async function listWorktrees(host: WorktreeHost, sessionId?: string): Promise<(WorktreeState | Unreadable)[]> {
  const listed: (WorktreeState | Unreadable)[] = [];
  for (const id of await listRecordIds(host)) {
    try {
      const record = await loadRecord(host, id);
      if (!record) continue;
      if (sessionId === undefined || sessionId === record.sessionId) listed.push(await worktreeState(host, record));
    } catch (error) {
      listed.push({ id, problem: messageOf(error) });
    }
  }
  return listed;
}

async function dirtyFiles(host: WorktreeHost, record: WorktreeRecord, head: string | undefined): Promise<string[]> {
  const index = path.join(checkoutOfRecord(record).gitDir, 'index');
  const use = { head, objects: 'scratch', index, files: true } as const;
  const seal = sealOf(host, record);
  const status = await sealed(seal, use, (git) => readStatus(git, record.path));
  return [...status.map((entry) => entry.path), ...(await dirtySubmodules(seal, use))];
}

/** Whether another ref holds the commit. */
async function isHeldElsewhere(
  { git }: WorktreeHost,
  { commonDir, branch }: WorktreeRecord,
  commit: string,
  orOwnBranch = false,
): Promise<boolean> {
  return (await refsHolding(git, commonDir, commit)).some(({ ref }) => orOwnBranch || ref !== branch);
}

async function countCommits({ git }: WorktreeHost, record: WorktreeRecord, tip: string): Promise<number> {
  const { commonDir, branch, base } = record;
  const others = ['--not', base.commit, `--exclude=${shortBranch(branch)}`, '--branches', '--remotes'];
  return Number(await gitIn(git, commonDir)(['rev-list', '--count', tip, ...others]));
}

async function lastUse(record: WorktreeRecord): Promise<number> {
  const entry = record.entry === undefined ? [] : ['index', 'HEAD', path.join('logs', 'HEAD')];
  const files = entry.map((name) => path.join(record.commonDir, 'worktrees', record.entry ?? '', name));
  const times = await Promise.all(
    [record.path, ...files].map(async (file) => (await stat(file).catch(() => undefined))?.mtimeMs ?? 0),
  );
  return Math.max(Date.parse(record.createdAt), ...times);
}

async function isDirectory(file: string): Promise<boolean> {
  return (await lstat(file).catch(() => undefined))?.isDirectory() === true;
}

const SUBMODULE = '160000 ';
const MAX_DEPTH = 5;

/**
 * Submodules with uncommitted changes, each with a trailing slash. The status of the outer repository does not show
 * these: it would let the submodule's own configuration run programs.
 */
async function dirtySubmodules(seal: Seal, use: SealedUse, depth = 0): Promise<string[]> {
  const staged = await sealed(seal, use, (git) => git(['ls-files', '--stage', '-z']));
  const links = zeroSeparated(staged).filter((line) => line.startsWith(SUBMODULE));
  const names = links.map((line) => line.slice(line.indexOf('\t') + 1));
  const dirty: string[] = [];
  for (const name of names) if (await isDirty(seal, name, depth)) dirty.push(`${name}/`);
  return dirty;
}

async function isDirty(seal: Seal, name: string, depth: number): Promise<boolean> {
  const workTree = path.join(seal.checkout.workTree, name);
  const gitDir = await gitDirOf(workTree);
  if (gitDir === undefined) return false;
  if (depth === MAX_DEPTH) return true;
  const config = seal.pinned.config.filter(([key]) => !key.startsWith('filter.') && !key.startsWith('core.sparse'));
  const inner: Seal = {
    ...seal,
    checkout: { workTree, gitDir, commonDir: gitDir },
    pinned: { config, exclude: '', attributes: '', sparse: '' },
  };
  try {
    const { commit: head } = await readHead(seal.host, gitDir);
    const use = { head, objects: 'scratch', index: path.join(gitDir, 'index'), files: true } as const;
    const status = await sealed(inner, use, (git) => readStatus(git, workTree));
    return status.length > 0 || (await dirtySubmodules(inner, use, depth + 1)).length > 0;
  } catch {
    // What cannot be read is not known to be clean.
    return true;
  }
}

/** Undefined where the submodule is not checked out. */
async function gitDirOf(workTree: string): Promise<string | undefined> {
  const link = path.join(workTree, '.git');
  const stats = await lstat(link).catch(() => undefined);
  if (stats?.isDirectory() === true) return link;
  if (stats?.isFile() !== true) return undefined;
  const target = /^gitdir: (.*)$/m.exec(await readPlainFile(link))?.[1];
  return target === undefined ? undefined : path.resolve(workTree, target);
}
