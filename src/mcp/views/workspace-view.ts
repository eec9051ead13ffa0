import type { ListedWorktree } from '../../engine/session-worktrees.ts';
import type { Session } from '../../engine/session.ts';
import type { WorktreeShown } from '../../schema/listed-sessions.ts';
import type { CheckAnswer } from '../../schema/results.ts';
import type { ApplyOutcome } from '../../workspace/apply.ts';
import type { DiscardOutcome } from '../../workspace/discard.ts';

/** What the response to a start says about the new worktree. */
export function startedWorkspace({ worktree }: Session): Pick<CheckAnswer, 'workspace'> {
  if (!worktree?.worktree) return {};
  const { path, branch, base } = worktree.worktree;
  return { workspace: { path, branch, base } };
}

/** A worktree and how far its work has been applied; `sensitive` shows where it is. */
export function worktreeView(listed: ListedWorktree, sensitive: boolean): WorktreeShown {
  const { path, repository, branch, base, state, dirty, unmergedCommits } = listed;
  return {
    ...(sensitive && { path, repository }),
    branch,
    base,
    state: state === 'ready' ? (isTaken(listed) ? 'merged' : 'unmerged') : state,
    uncommittedFiles: dirty.length,
    unmergedCommits,
  };
}

function isTaken({ dirty, unmergedCommits, looseHead, unreadable }: ListedWorktree): boolean {
  return dirty.length === 0 && unmergedCommits === 0 && looseHead === undefined && unreadable === undefined;
}

export function appliedMessage(outcome: ApplyOutcome): string {
  if (outcome.outcome === 'nothing-to-apply') return 'There is nothing to apply.';
  const { mode, branch, commit, checkout } = outcome;
  if (mode === 'patch') return `Applied as uncommitted changes in ${checkout ?? 'the checkout'}.`;
  const where = checkout === undefined ? '' : ` and its checkout ${checkout}`;
  return `Applied (${mode}) to ${branch ?? 'the base'}${where}, now at ${commit?.slice(0, 10) ?? ''}. The session can continue.`;
}

export function discardedMessage(outcome: DiscardOutcome): string {
  const { path, deletedBranch, keptBranches, keptDirectory, ignored } = outcome;
  return [
    `Removed the worktree ${path}.`,
    ...(deletedBranch === undefined
      ? []
      : [`Its branch ${deletedBranch} had no commits of its own and was deleted too.`]),
    ...(keptBranches.length === 0 ? [] : [`Kept: ${keptBranches.join(', ')}.`]),
    ...(keptDirectory === undefined ? [] : [`Files that git could not keep were moved to ${keptDirectory}.`]),
    ...(ignored.length === 0 ? [] : [`Ignored files were removed with it: ${ignored.join(', ')}.`]),
  ].join(' ');
}
