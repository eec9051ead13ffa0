import { randomUUID } from 'node:crypto';
import { cp, lstat, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { ActionOf } from '../../schema/own-action.ts';
import type { DiscardJournal, WorktreeRecord } from '../../schema/worktree-record.ts';
import { settleApply } from './apply.ts';
import { listGitWorktrees, operationOnBranch, refsHolding, resolveCommit, shortBranch } from '../git/checkout.ts';
import { commitWork, nameSome, refusal } from './commit-work.ts';
import { gitWithoutHooks, zeroSeparated } from '../git/git.ts';
import { sealed } from '../git/sealed.ts';
import { checkpoint, forgetRecord, saveRecord, sealOf, type WorktreeHost } from './worktree-records.ts';
import { isDone, worktreeState, type WorktreeState } from './worktree-state.ts';

export interface DiscardOutcome {
  readonly path: string;
  /** Branches that were kept because no other branch contains their commits. */
  readonly keptBranches: readonly string[];
  readonly deletedBranch?: string;
  /** The deleted branch had commits of its own: where they are kept for now. */
  readonly retired?: { readonly ref: string; readonly commit: string };
  /** Repositories inside the worktree, and files that git cannot read, moved aside. */
  readonly keptDirectory?: string;
  /** Some of the ignored files and directories that were removed with it. */
  readonly ignored: readonly string[];
}

export interface DiscardOptions {
  readonly force?: boolean;
  /** Also delete a branch with commits of its own, unless somebody else has moved it. */
  readonly deleteBranch?: boolean;
}

/**
 * Removes the worktree. Commits are never removed at once: a branch is deleted if another one contains all of it, or on
 * request, and then its commits stay under a ref of their own for a while.
 */
export async function discardWork(
  host: WorktreeHost,
  given: WorktreeRecord,
  { force = false, deleteBranch: retire = false }: DiscardOptions = {},
): Promise<DiscardOutcome> {
  if (given.state === 'creating') return removeUnfinished(host, given);
  if (given.journal?.operation === 'discard') return remove(host, given, given.journal, []);
  const record = await settleApply(host, given);
  const state = await worktreeState(host, record);
  if (!isDone(state) && !force) throw refusal(unmergedWork(state));
  return discardAll(host, record, state, retire);
}

/** Exactly what is discarded: for someone to approve. */
export type ApprovedDiscard = Omit<ActionOf<'discard'>, 'action'>;

export interface PlannedDiscard {
  readonly approve: ApprovedDiscard;
  /** The branches that stay because nothing else holds their commits. */
  readonly keptBranches: readonly string[];
}

/** Commits the work to its branch, so that what would be discarded is known. The worktree stays. */
export async function planDiscard(host: WorktreeHost, given: WorktreeRecord): Promise<PlannedDiscard> {
  if (isUnderWay(given)) return { approve: { uncommitted: [] }, keptBranches: [] };
  const record = await settleApply(host, given);
  await commitAll(host, record, await worktreeState(host, record));
  const state = await worktreeState(host, record);
  return { approve: approvable(state), keptBranches: branchesToKeep(record, state) };
}

/** Discards exactly what was approved. `moved`: there is other work in the worktree by now. */
export async function discardApproved(
  host: WorktreeHost,
  given: WorktreeRecord,
  { deleteBranch: retire, ...approved }: ApprovedDiscard,
): Promise<DiscardOutcome | 'moved'> {
  if (isUnderWay(given)) return discardWork(host, given);
  const record = await settleApply(host, given);
  const state = await worktreeState(host, record);
  return isDeepStrictEqual(approvable(state), approved) ? discardAll(host, record, state, retire === true) : 'moved';
}

function approvable({ tip, looseHead, dirty }: WorktreeState): Omit<ApprovedDiscard, 'deleteBranch'> {
  return {
    ...(tip !== undefined && { commit: tip }),
    ...(looseHead !== undefined && { looseHead }),
    uncommitted: [...dirty],
  };
}

function isUnderWay({ state, journal }: WorktreeRecord): boolean {
  return state === 'creating' || journal?.operation === 'discard';
}

function branchesToKeep(record: WorktreeRecord, { tip, isMerged, branch, looseHead }: WorktreeState): string[] {
  return [
    ...(tip !== undefined && !isMerged ? [branch] : []),
    ...(looseHead === undefined ? [] : [shortBranch(looseRef(record, looseHead))]),
  ];
}

/** Except directories with a repository of their own: they end in a slash. */
async function commitAll(host: WorktreeHost, record: WorktreeRecord, { dirty }: WorktreeState): Promise<void> {
  if (dirty.some((name) => !name.endsWith('/')))
    await commitWork(host, record, `Uncommitted work of Claude Code session ${record.id}`);
}

async function discardAll(
  host: WorktreeHost,
  record: WorktreeRecord,
  state: WorktreeState,
  retire: boolean,
): Promise<DiscardOutcome> {
  const isOwn = retire && state.tip !== undefined && (await movedOnlyHere(record, state.tip));
  const nested = state.dirty.filter((name) => name.endsWith('/'));
  await commitAll(host, record, state);
  if (state.looseHead !== undefined) await keepLooseHead(host, record, state.looseHead);
  const ignored = state.state === 'ready' && state.unreadable === undefined ? await ignoredFiles(host, record) : [];
  const after = await worktreeState(host, record);
  const retired = isOwn && !after.isMerged ? after.tip : undefined;
  const kept = { ...after, isMerged: after.isMerged || retired !== undefined, looseHead: state.looseHead };
  const keptBranches = branchesToKeep(record, kept);
  await checkpoint(host, 'discard-journal');
  const journal: DiscardJournal = {
    operation: 'discard',
    ...(after.isMerged && after.tip !== undefined && { deleteBranchAt: after.tip }),
    ...(retired !== undefined && { retireBranchAt: retired }),
    keep: state.unreadable === undefined ? nested : [WHOLE],
    keptBranches,
  };
  return remove(host, await saveRecord(host, { ...record, journal }), journal, ignored);
}

/** Refuses anything that only `force` would remove. */
export async function checkDiscardable(host: WorktreeHost, given: WorktreeRecord): Promise<void> {
  if (isUnderWay(given)) return;
  const state = await worktreeState(host, await settleApply(host, given));
  if (!isDone(state)) throw refusal(unmergedWork(state));
}

function unmergedWork(state: WorktreeState): string {
  if (state.unreadable !== undefined)
    return `Git cannot tell which files in ${state.path} are committed: ${state.unreadable}. Discarding with force: true moves them aside.`;
  const parts = [
    ...(state.unmergedCommits > 0
      ? [`${state.unmergedCommits} commit(s) on ${state.branch} that are on no other branch`]
      : []),
    ...(state.looseHead === undefined ? [] : [`the commit ${state.looseHead.slice(0, 10)} that is not on its branch`]),
    ...(state.dirty.length > 0 ? [`uncommitted changes in ${nameSome(state.dirty)}`] : []),
  ];
  return `The worktree ${state.path} has ${parts.join(' and ')}. Apply them, or discard with force: true, which keeps the branch.`;
}

/** No session has worked in it. Its branch is deleted only if git created it for this worktree. */
async function removeUnfinished(host: WorktreeHost, record: WorktreeRecord): Promise<DiscardOutcome> {
  const listed = await listGitWorktrees(host.git, record.commonDir).catch(() => []);
  const isOwn = listed.some(({ path: place, branch }) => place === record.path && branch === record.branch);
  const tip = isOwn ? await resolveCommit(host.git, record.commonDir, record.branch) : undefined;
  return remove(host, record, { operation: 'discard', ...(tip !== undefined && { deleteBranchAt: tip }) }, []);
}

/** The worktree itself, as named among what is kept. */
const WHOLE = './';

/** Every step can be repeated. */
async function remove(
  host: WorktreeHost,
  record: WorktreeRecord,
  { keep = [], keptBranches = [], deleteBranchAt, retireBranchAt }: DiscardJournal,
  ignored: readonly string[],
): Promise<DiscardOutcome> {
  const { commonDir } = record;
  await checkpoint(host, 'discard-keep');
  const keptDirectory = await keepRepositories(host, record, keep);
  await checkpoint(host, 'discard-files');
  await rm(record.path, { recursive: true, force: true, maxRetries: 3 });
  await checkpoint(host, 'discard-entry');
  const isThere = (await stat(commonDir).catch(() => undefined)) !== undefined;
  if (isThere && (await listGitWorktrees(host.git, commonDir)).some((listed) => listed.path === record.path))
    await (
      await gitWithoutHooks(host.git, commonDir)
    )(['worktree', 'remove', '--force', '--force', '--', record.path]);
  await checkpoint(host, 'discard-branch');
  const isDeleted = isThere && deleteBranchAt !== undefined && (await deleteBranch(host, record, deleteBranchAt));
  const retired =
    isThere && retireBranchAt !== undefined ? await retireBranch(host, record, retireBranchAt) : undefined;
  await checkpoint(host, 'discard-record');
  await forgetRecord(host, record.id);
  const own = shortBranch(record.branch);
  const isGone = isDeleted || retired !== undefined;
  const isLeft = (deleteBranchAt ?? retireBranchAt) !== undefined && !isGone && !keptBranches.includes(own);
  return {
    path: record.path,
    keptBranches: isLeft ? [own, ...keptBranches] : keptBranches,
    ...(isGone && { deletedBranch: own }),
    ...(retired && { retired }),
    ...(keptDirectory !== undefined && { keptDirectory }),
    ignored,
  };
}

/**
 * Only while another ref contains its commit, checked in the same transaction: of two that contain each other, one
 * stays.
 */
async function deleteBranch({ git }: WorktreeHost, record: WorktreeRecord, tip: string): Promise<boolean> {
  const { commonDir, branch } = record;
  const isInUse = (await listGitWorktrees(git, commonDir)).some((listed) => listed.branch === branch);
  if (isInUse || (await operationOnBranch(commonDir, branch)) !== undefined) return false;
  for (const { ref, oid } of await refsHolding(git, commonDir, tip)) {
    if (ref === branch) continue;
    const input = `start\nverify ${ref} ${oid}\ndelete ${branch} ${tip}\nprepare\ncommit\n`;
    const withoutHooks = await gitWithoutHooks(git, commonDir);
    const { code } = await withoutHooks.bytes(['update-ref', '--stdin'], { input, codes: [0, 128] });
    if (code === 0) return true;
    if ((await resolveCommit(git, commonDir, branch)) !== tip) return false;
  }
  return false;
}

/**
 * Whether every move of the branch was made in its worktree: git writes down where HEAD was there, and nothing else
 * does. Without that log the branch counts as the session's own: it is deleted only at the commit that was seen.
 */
async function movedOnlyHere({ commonDir, entry = '' }: WorktreeRecord, tip: string): Promise<boolean> {
  const log = await readFile(path.join(commonDir, 'worktrees', entry, 'logs', 'HEAD'), 'utf8').catch(() => '');
  const last = log.trimEnd().split('\n').at(-1) ?? '';
  return last === '' || last.split(' ')[1] === tip;
}

/** Deletes the branch and keeps its commits under another name, in one transaction. */
async function retireBranch(
  host: WorktreeHost,
  record: WorktreeRecord,
  commit: string,
): Promise<DiscardOutcome['retired']> {
  const { commonDir, branch, sessionId } = record;
  const retired = { ref: `refs/claude/discarded/${sessionId}`, commit };
  const isInUse = (await listGitWorktrees(host.git, commonDir)).some((listed) => listed.branch === branch);
  if (isInUse || (await operationOnBranch(commonDir, branch)) !== undefined) return undefined;
  if ((await resolveCommit(host.git, commonDir, retired.ref)) === commit) return retired;
  await rememberRetired(host, { ...retired, commonDir });
  const input = `start\nupdate ${retired.ref} ${commit}\ndelete ${branch} ${commit}\nprepare\ncommit\n`;
  const git = await gitWithoutHooks(host.git, commonDir);
  const { code } = await git.bytes(['update-ref', '--stdin'], { input, codes: [0, 128] });
  return code === 0 ? retired : undefined;
}

interface Retired {
  readonly commonDir: string;
  readonly ref: string;
  readonly commit: string;
}

/** What is remembered of deleted branches, one file each. */
export function retiredDir({ worktreesDir }: Pick<WorktreeHost, 'worktreesDir'>): string {
  return path.join(worktreesDir, '.retired');
}

async function rememberRetired(host: WorktreeHost, retired: Retired): Promise<void> {
  await mkdir(retiredDir(host), { recursive: true, mode: 0o700 });
  const file = path.join(retiredDir(host), `${path.basename(retired.ref)}.json`);
  await writeFile(file, JSON.stringify(retired), { mode: 0o600 });
}

/** Lets go of the commits of branches that were deleted longer ago than that. */
export async function sweepRetired(host: WorktreeHost, olderThanMs: number): Promise<void> {
  for (const name of await readdir(retiredDir(host)).catch(() => [])) {
    const file = path.join(retiredDir(host), name);
    // Another server may be sweeping too.
    const found = await stat(file).catch(() => undefined);
    if (!found || Date.now() - found.mtimeMs <= olderThanMs) continue;
    // What fails is tried again by the next sweep, and does not keep this one from the others.
    await letGo(host, file).catch(() => undefined);
  }
}

async function letGo(host: WorktreeHost, file: string): Promise<void> {
  const { commonDir, ref, commit } = JSON.parse(await readFile(file, 'utf8')) as Retired;
  const tip = await resolveCommit(host.git, commonDir, ref).catch(() => undefined);
  if (tip === commit) {
    const git = await gitWithoutHooks(host.git, commonDir);
    await git(['update-ref', '-d', ref, commit]);
  }
  await rm(file, { force: true });
}

function looseRef({ branch }: WorktreeRecord, commit: string): string {
  return `${branch}-head-${commit.slice(0, 7)}`;
}

async function keepLooseHead(host: WorktreeHost, record: WorktreeRecord, commit: string): Promise<void> {
  const git = await gitWithoutHooks(host.git, record.commonDir);
  await git(['update-ref', looseRef(record, commit), commit]);
}

const MAX_NAMED = 10;

/** What the repository itself considers not worth keeping is not asked about, but named. */
async function ignoredFiles(host: WorktreeHost, record: WorktreeRecord): Promise<string[]> {
  const seal = sealOf(host, record);
  const index = path.join(seal.checkout.gitDir, 'index');
  const list = ['ls-files', '--others', '--ignored', '--exclude-standard', '--directory', '-z'];
  const text = await sealed(seal, { objects: 'scratch', index, files: true }, (git) => git(list)).catch(() => '');
  return zeroSeparated(text).slice(0, MAX_NAMED);
}

/** Commits of submodules and of repositories inside the worktree are in directories that would be removed with it. */
async function keepRepositories(
  host: WorktreeHost,
  record: WorktreeRecord,
  names: readonly string[],
): Promise<string | undefined> {
  const directory = path.join(host.worktreesDir, '.kept', record.id);
  const modules = record.entry === undefined ? '' : path.join(record.commonDir, 'worktrees', record.entry, 'modules');
  const found = [
    ...((await readdir(modules).catch(() => [])).length > 0 ? [[modules, 'submodules'] as const] : []),
    ...names.map((name) => [path.join(record.path, name), name === WHOLE ? 'files' : name.replace(/\/$/, '')] as const),
  ];
  for (const [from, name] of found) await moveIfExists(from, path.join(directory, name));
  return (await stat(directory).catch(() => undefined)) ? directory : undefined;
}

async function moveIfExists(from: string, to: string): Promise<void> {
  if (!(await lstat(from).catch(() => undefined))) return;
  await mkdir(path.dirname(to), { recursive: true, mode: 0o700 });
  // An earlier worktree with this id may have left something.
  const free = (await lstat(to).catch(() => undefined)) ? `${to}-${randomUUID().slice(0, 8)}` : to;
  try {
    await rename(from, free);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
    await cp(from, free, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
    await rm(from, { recursive: true, force: true });
  }
}
