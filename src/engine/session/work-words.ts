import type { ApplyOutcome } from '../../workspace/worktree/apply.ts';
import type { DiscardOutcome } from '../../workspace/worktree/discard.ts';

/** Another attempt of the same start, once the work of one of them was applied. */
export type OtherAttempt = { readonly sessionId: string } & (
  | { readonly discarded: DiscardOutcome }
  /** Why it was left. */
  | { readonly left: string }
);

export type AppliedWork = ApplyOutcome & { readonly others?: readonly OtherAttempt[] };

/** What an apply did. `later`: files that have changed in the worktree since the applied commit. */
export function describeApply(outcome: AppliedWork, later: readonly string[] = []): string {
  const others = outcome.others?.map(describeOther) ?? [];
  if (outcome.outcome === 'nothing-to-apply') return ['There is nothing to apply.', ...others].join(' ');
  const { detail, record } = outcome;
  return [
    whatWasApplied(outcome),
    ...(detail?.committedNow ? [`Uncommitted work was first committed to its branch as ${short(detail.work)}.`] : []),
    ...(detail && detail.leftAlone.length > 0
      ? [`Other uncommitted changes there were left alone: ${someOf(detail.leftAlone)}.`]
      : []),
    ...(later.length === 0 ? [] : [`Later work stays in the worktree and was not applied: ${someOf(later)}.`]),
    `The worktree ${record.path} and its branch ${record.branch.replace('refs/heads/', '')} remain: the session can continue; action "discard" removes them.`,
    ...others,
  ].join(' ');
}

const HOW = {
  'fast-forward': 'fast-forward',
  'merge-commit': 'a merge commit',
  'squash-commit': 'one commit',
  patch: 'a patch',
} as const;

function whatWasApplied({
  mode,
  branch,
  commit,
  checkout,
  detail,
}: Extract<ApplyOutcome, { outcome: 'applied' }>): string {
  if (mode === 'patch') return `Applied as uncommitted changes in ${checkout ?? 'the checkout'}.`;
  const where = checkout === undefined ? '' : ` and its checkout ${checkout}`;
  const how = detail ? ` by ${HOW[detail.how]}: ${short(detail.before)} ->` : ', now at';
  return `Applied (${mode}) to ${branch ?? 'the base'}${where}${how} ${short(commit)}.`;
}

function describeOther(other: OtherAttempt): string {
  return 'left' in other
    ? `Attempt ${other.sessionId} was left: ${other.left}`
    : `Attempt ${other.sessionId}: ${describeDiscard(other.discarded)}`;
}

export function describeDiscard(outcome: DiscardOutcome): string {
  const { path, deletedBranch, retired, keptBranches, keptDirectory, ignored } = outcome;
  return [
    `Removed the worktree ${path}.`,
    ...(deletedBranch === undefined || retired
      ? []
      : [`Its branch ${deletedBranch} had no commits of its own and was deleted too.`]),
    ...(retired
      ? [
          `Its branch ${deletedBranch ?? ''} was deleted at ${retired.commit}, which is kept as ${retired.ref} for a while (git branch <name> ${short(retired.commit)} brings it back).`,
        ]
      : []),
    ...(keptBranches.length === 0
      ? []
      : [`Kept: ${keptBranches.join(', ')}. To delete: git branch -D ${keptBranches.join(' ')}.`]),
    ...(keptDirectory === undefined ? [] : [`Files that git could not keep were moved to ${keptDirectory}.`]),
    ...(ignored.length === 0 ? [] : [`Ignored files were removed with it: ${ignored.join(', ')}.`]),
  ].join(' ');
}

function short(commit = ''): string {
  return commit.slice(0, 10);
}

const MAX_NAMED = 10;

export function someOf(names: readonly string[]): string {
  const more = names.length - MAX_NAMED;
  return `${names.slice(0, MAX_NAMED).join(', ')}${more > 0 ? ` and ${String(more)} more` : ''}`;
}
