import type { ApplyOutcome } from '../../workspace/worktree/apply.ts';
import type { DiscardOutcome } from '../../workspace/worktree/discard.ts';

/** What an apply did. `later`: files that have changed in the worktree since the applied commit. */
export function describeApply(outcome: ApplyOutcome, later: readonly string[] = []): string {
  if (outcome.outcome === 'nothing-to-apply') return 'There is nothing to apply.';
  const { mode, branch, commit, checkout } = outcome;
  const left = later.length === 0 ? '' : ` Later work stays in the worktree and was not applied: ${someOf(later)}.`;
  if (mode === 'patch') return `Applied as uncommitted changes in ${checkout ?? 'the checkout'}.${left}`;
  const where = checkout === undefined ? '' : ` and its checkout ${checkout}`;
  return `Applied (${mode}) to ${branch ?? 'the base'}${where}, now at ${commit?.slice(0, 10) ?? ''}. The session can continue.${left}`;
}

export function describeDiscard(outcome: DiscardOutcome): string {
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

const MAX_NAMED = 10;

function someOf(names: readonly string[]): string {
  const more = names.length - MAX_NAMED;
  return `${names.slice(0, MAX_NAMED).join(', ')}${more > 0 ? ` and ${String(more)} more` : ''}`;
}
