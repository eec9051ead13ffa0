import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { WorktreeRecord } from '../schema/worktree-record.ts';
import { listGitWorktrees, resolveCommit, shortBranch } from './checkout.ts';
import { commitWork, nameSome, refusal } from './commit-work.ts';
import { gitIn } from './git.ts';
import { settleApply } from './apply.ts';
import { checkpoint, forgetRecord, saveRecord, type WorktreeHost } from './worktree-records.ts';
import { isDone, worktreeState, type WorktreeState } from './worktree-state.ts';

export interface DiscardOutcome {
  readonly path: string;
  /** Branches that were left because no other branch holds their commits. */
  readonly keptBranches: readonly string[];
  readonly deletedBranch?: string;
  /** Repositories inside the worktree, moved out of the way. */
  readonly keptDirectory?: string;
}

/** Removes the worktree. Commits are never removed: a branch goes only when another one holds all of it. */
export async function discardWork(
  host: WorktreeHost,
  given: WorktreeRecord,
  { force = false }: { readonly force?: boolean } = {},
): Promise<DiscardOutcome> {
  if (given.state === 'creating')
    return remove(host, given, { deleteBranchAt: given.begun, keptBranches: [], nested: [] });
  if (given.journal?.operation === 'discard') {
    const tip = await resolveCommit(host.git, given.commonDir, given.branch);
    const { deleteBranchAt } = given.journal;
    const keptBranches = tip === undefined || tip === deleteBranchAt ? [] : [shortBranch(given.branch)];
    return remove(host, given, { deleteBranchAt, keptBranches, nested: [] });
  }
  const record = await settleApply(host, given);
  const state = await worktreeState(host, record);
  if (!isDone(state) && !force) throw refusal(unmergedWork(state));
  const nested = state.dirty.filter((name) => name.endsWith('/'));
  if (state.dirty.length > nested.length)
    await commitWork(host, record, `Uncommitted work of Claude Code session ${record.id}`);
  const loose = state.looseHead === undefined ? undefined : await keepLooseHead(host, record, state.looseHead);
  const after = await worktreeState(host, record);
  const deleteBranchAt = after.isMerged ? after.tip : undefined;
  const keptBranches = [...(after.tip !== undefined && !after.isMerged ? [after.branch] : []), ...(loose ?? [])];
  await checkpoint(host, 'discard-journal');
  const journal = { operation: 'discard', ...(deleteBranchAt !== undefined && { deleteBranchAt }) } as const;
  return remove(host, await saveRecord(host, { ...record, journal }), { deleteBranchAt, keptBranches, nested });
}

/** Refuses what only `force` would remove. */
export async function checkDiscardable(host: WorktreeHost, given: WorktreeRecord): Promise<void> {
  if (given.state === 'creating' || given.journal?.operation === 'discard') return;
  const state = await worktreeState(host, await settleApply(host, given));
  if (!isDone(state)) throw refusal(unmergedWork(state));
}

function unmergedWork(state: WorktreeState): string {
  const parts = [
    ...(state.unmergedCommits > 0
      ? [`${state.unmergedCommits} commit(s) on ${state.branch} that no other branch holds`]
      : []),
    ...(state.looseHead === undefined ? [] : [`the commit ${state.looseHead.slice(0, 10)} outside of its branch`]),
    ...(state.dirty.length > 0 ? [`uncommitted changes in ${nameSome(state.dirty)}`] : []),
  ];
  return `The worktree ${state.path} has ${parts.join(' and ')}. Apply them, or discard with force: true; the branch is kept then.`;
}

interface Removal {
  readonly deleteBranchAt: string | undefined;
  readonly keptBranches: readonly string[];
  /** Repositories among the untracked files. */
  readonly nested: readonly string[];
}

/** Every step may be repeated. */
async function remove(host: WorktreeHost, record: WorktreeRecord, removal: Removal): Promise<DiscardOutcome> {
  const { commonDir, branch } = record;
  await checkpoint(host, 'discard-keep');
  const keptDirectory = await keepRepositories(host, record, removal.nested);
  await checkpoint(host, 'discard-files');
  await rm(record.path, { recursive: true, force: true, maxRetries: 3 });
  await checkpoint(host, 'discard-entry');
  const repository = gitIn(host.git, commonDir);
  const isThere = (await stat(commonDir).catch(() => undefined)) !== undefined;
  if (isThere && (await listGitWorktrees(host.git, commonDir)).some((listed) => listed.path === record.path))
    await repository(['worktree', 'remove', '--force', '--force', '--', record.path]);
  await checkpoint(host, 'discard-branch');
  const { deleteBranchAt } = removal;
  const isDeletable =
    isThere && deleteBranchAt !== undefined && (await resolveCommit(host.git, commonDir, branch)) === deleteBranchAt;
  if (isDeletable) await repository(['update-ref', '-d', branch, deleteBranchAt]);
  await checkpoint(host, 'discard-record');
  await forgetRecord(host, record.id);
  return {
    path: record.path,
    keptBranches: removal.keptBranches,
    ...(isDeletable && { deletedBranch: shortBranch(branch) }),
    ...(keptDirectory !== undefined && { keptDirectory }),
  };
}

async function keepLooseHead(host: WorktreeHost, record: WorktreeRecord, commit: string): Promise<string[]> {
  const ref = `${record.branch}-head-${commit.slice(0, 7)}`;
  await gitIn(host.git, record.commonDir)(['update-ref', ref, commit]);
  return [shortBranch(ref)];
}

/** Commits of submodules and of repositories inside the worktree lie in directories that would go with it. */
async function keepRepositories(
  host: WorktreeHost,
  record: WorktreeRecord,
  nested: readonly string[],
): Promise<string | undefined> {
  const directory = path.join(host.worktreesDir, '.kept', record.id);
  const modules = record.entry === undefined ? '' : path.join(record.commonDir, 'worktrees', record.entry, 'modules');
  const found = [
    ...((await readdir(modules).catch(() => [])).length > 0 ? [[modules, 'submodules'] as const] : []),
    ...nested.map((name) => [path.join(record.path, name), name.replace(/\/$/, '')] as const),
  ];
  for (const [from, name] of found) {
    const to = path.join(directory, name);
    await mkdir(path.dirname(to), { recursive: true, mode: 0o700 });
    await rename(from, to);
  }
  return found.length > 0 || (await stat(directory).catch(() => undefined)) ? directory : undefined;
}
