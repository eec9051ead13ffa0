import type { ListedWorktree } from '../engine/session/session-worktrees.ts';
import type { WorktreeShown } from '../schema/listed-sessions.ts';
import type { SessionRecord } from '../schema/records.ts';
import type { CheckAnswer } from '../schema/results.ts';

/** What the response to a start says about the new worktree. */
export function startedWorkspace({ workspace }: SessionRecord): Pick<CheckAnswer, 'workspace'> {
  if (workspace.type !== 'worktree') return {};
  const { path, branch, base } = workspace;
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
