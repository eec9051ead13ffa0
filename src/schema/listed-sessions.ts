/** What the tools answer about sessions and their worktrees when they list or manage them: see `results.ts`. */

import { z } from 'zod';
import { APPLY_MODES, FILE_STATUSES } from './enums.ts';
import { LastAction } from './own-action.ts';
import { checkAnswer, compactStatus, costUnknown, explicitStatus, work } from './results.ts';
import { permissionMode } from './session-options.ts';

/** A worktree, and how far its work has been applied. */
export const worktreeShown = z.object({
  path: z.string().optional().meta({ note: 'With `includeSensitive`: where it lies.' }),
  repository: z.string().optional().meta({ note: 'With `includeSensitive`: the checkout it was made from.' }),
  branch: z.string().optional().meta({ note: 'Its branch.' }),
  base: z.string().optional().meta({ note: 'What it started from, and where `apply` goes.' }),
  state: z.string().meta({
    note: '`merged`: removing it loses nothing; `unmerged`; `unfinished`: an operation was interrupted, the next one resumes it; `missing`; `removed`.',
  }),
  uncommittedFiles: z.number().optional().meta({ note: 'Files with uncommitted changes.' }),
  unmergedCommits: z.number().optional().meta({ note: 'Commits that are on no other branch and were not applied.' }),
});
export type WorktreeShown = z.infer<typeof worktreeShown>;

/** A session of this server, with the options that may be shown. */
export const sessionShown = z.looseObject({
  sessionId: z.string().meta({ note: 'Id of the session.' }),
  status: compactStatus.meta({
    note: '`running`, `waiting_permission`, `idle`, `error` or `cancelled`; on disk only for sessions this server knows.',
  }),
  createdAt: z.string().meta({ note: 'When it was started.' }),
  lastActiveAt: z.string().meta({ note: 'When something last happened.' }),
  totalTurns: z.number().meta({ note: 'Turns so far.' }),
  totalCostUsd: z.number().meta({ note: 'Cost so far, in US dollars.' }),
  costUnknown,
  model: z.string().optional().meta({ note: 'Model in use.' }),
  permissionMode: permissionMode.optional().meta({ note: 'Permission mode in use.' }),
  backgroundTasks: z.number().optional().meta({ note: 'Tasks running in the background.' }),
  cancelledReason: z.string().optional().meta({ note: 'Why it was cancelled.' }),
  cancelledSource: z.string().optional().meta({ note: 'Who cancelled it.' }),
  lastAction: LastAction.optional(),
  workspace: worktreeShown.optional().meta({ note: 'For a session with a worktree.' }),
});
export type SessionShown = z.infer<typeof sessionShown>;

/** A session that Claude Code keeps on disk; it has a status where this server knows it. */
export const diskSessionShown = z.object({
  sessionId: sessionShown.shape.sessionId,
  status: sessionShown.shape.status.optional(),
  createdAt: sessionShown.shape.createdAt.optional(),
  lastActiveAt: sessionShown.shape.lastActiveAt,
  displayText: z.string().optional().meta({ note: 'On disk: its title or first words.' }),
  projectDirectory: z.string().optional().meta({ note: 'On disk: its directory.' }),
});
export type DiskSessionShown = z.infer<typeof diskSessionShown>;

/** A session in an answer about its work, or in one about several: see `claude_code_session`. */
export const briefSession = z.object({
  sessionId: sessionShown.shape.sessionId,
  status: sessionShown.shape.status.optional(),
  workspace: worktreeShown.optional().meta({ note: 'Its worktree.' }),
  message: z.string().optional().meta({ note: 'With `sessionIds`: what was done, in words.' }),
  requestId: z.string().optional().meta({ note: 'With `sessionIds`: the request that a person must allow first.' }),
  isError: z.boolean().optional().meta({ note: 'With `sessionIds`: `true` if it failed for this session.' }),
  error: z.string().optional().meta({ note: 'With `sessionIds`: why.' }),
});
export type BriefSession = z.infer<typeof briefSession>;

/** One of the sessions of a comparison. */
export const comparedSession = z.object({
  sessionId: sessionShown.shape.sessionId,
  status: sessionShown.shape.status.optional(),
  model: sessionShown.shape.model,
  claim: z.string().optional().meta({ note: 'For `compare`: the first line of what Claude says it did.' }),
  workspace: checkAnswer.shape.workspace,
  work: work.optional().meta({ note: 'For `compare`: the evidence, as in `result.work`.' }),
  diff: z.string().optional().meta({ note: 'For `compare`: its unified diff, up to its share of `maxBytes`.' }),
  diffBytes: z.number().optional().meta({ note: 'For `compare`: size of the whole diff, if it is cut.' }),
  nextOffset: z.number().optional().meta({ note: 'For `compare`: where `diff` of that session continues.' }),
  diffError: z.string().optional().meta({ note: 'For `compare`: why there is no diff.' }),
});
export type ComparedSession = z.infer<typeof comparedSession>;

/** What an apply did. */
export const appliedShown = z.object({
  mode: z.enum(APPLY_MODES).meta({ note: 'As asked for.' }),
  result: z
    .enum(['fast-forward', 'merge-commit', 'squash-commit', 'patch'])
    .optional()
    .meta({ note: '`fast-forward`, `merge-commit`, `squash-commit` or `patch`.' }),
  branch: z.string().optional().meta({ note: 'The branch that has the work now.' }),
  checkout: z.string().optional().meta({ note: 'The checkout whose files were updated.' }),
  before: z.string().optional().meta({ note: 'Commit of the base before.' }),
  after: z.string().optional().meta({ note: 'Commit of the base now.' }),
  committed: z
    .string()
    .optional()
    .meta({ note: 'The commit that was made on the session’s branch, of uncommitted work.' }),
  leftAlone: z.array(z.string()).optional().meta({ note: 'Other uncommitted changes in the checkout.' }),
  remains: z
    .object({
      worktree: z.string().meta({ note: 'The session’s worktree.' }),
      branch: z.string().meta({ note: 'Its branch.' }),
      remove: z.string().meta({ note: 'How to remove both.' }),
    })
    .meta({ note: 'What is left of it.' }),
  others: z
    .array(
      z.object({
        sessionId: z.string().meta({ note: 'Which attempt.' }),
        outcome: z.enum(['discarded', 'left']).meta({ note: '`discarded` or `left`.' }),
        message: z.string().meta({ note: 'The same in words.' }),
      }),
    )
    .optional()
    .meta({ note: 'With `discardOthers`: what became of the other attempts.' }),
});
export type AppliedShown = z.infer<typeof appliedShown>;

const fileChange = z.object({
  path: z.string().meta({ note: 'Relative to the root of the checkout.' }),
  oldPath: z.string().optional().meta({ note: 'For a renamed file.' }),
  status: z.enum(FILE_STATUSES).meta({ note: '`added`, `modified`, `deleted`, `renamed` or `type-changed`.' }),
  insertions: z.number().meta({ note: 'Lines added.' }),
  deletions: z.number().meta({ note: 'Lines removed.' }),
  isBinary: z.boolean().meta({ note: 'No lines to count or show.' }),
});

const diffPage = z.object({
  filesChanged: z.number().meta({ note: 'How many files changed.' }),
  insertions: z.number().meta({ note: 'Lines added.' }),
  deletions: z.number().meta({ note: 'Lines removed.' }),
  files: z.array(fileChange).readonly().optional().meta({ note: 'On the first page: every file.' }),
  diff: z.string().meta({ note: 'Unified diff.' }),
  totalBytes: z.number().meta({ note: 'Size of all pages together.' }),
  nextOffset: z.number().optional().meta({ note: 'Where the next page starts; absent on the last one.' }),
});

/** What `claude_code_session` answers. */
export const sessionsAnswer = z.object({
  sessions: z.array(z.union([sessionShown, diskSessionShown, comparedSession, briefSession])).meta({
    note: 'The requested sessions, with the options they were started with, except those that can contain secrets (`env`, `mcpServers`, `settings`).',
  }),
  worktrees: z
    .array(
      z.object({
        sessionId: z.string().meta({ note: 'Id of the session; accepted by `diff`, `apply` and `discard`.' }),
        ...worktreeShown.shape,
      }),
    )
    .optional()
    .meta({ note: 'For `list`: worktrees of sessions that the server no longer knows.' }),
  message: z.string().optional().meta({ note: 'What was done, in words.' }),
  status: compactStatus.optional().meta({
    note: '`waiting_permission` if a person must allow it first; for a failed call the status of the session it was about, if known.',
  }),
  requestId: z.string().optional().meta({ note: 'The request that a person must allow first.' }),
  diff: diffPage.optional().meta({ note: 'For `diff`: one page of it.' }),
  applied: appliedShown.optional().meta({ note: 'For `apply`: what it did; absent if there was nothing to apply.' }),
});
export type SessionsAnswer = z.infer<typeof sessionsAnswer>;

/** A session of the machine, as `claude_list_sessions` shows it. */
export const listedSession = z.looseObject({
  sessionId: z.string().meta({ note: 'Id of the session.' }),
  projectDirectory: z.string().optional().meta({ note: 'Its directory.' }),
  displayText: z.string().meta({ note: 'Its title or first words.' }),
  timestamp: z.string().meta({ note: 'When something last happened in it.' }),
  isActive: z.boolean().meta({ note: 'Whether this server has a process for it.' }),
  activeStatus: explicitStatus.optional().meta({ note: 'Its status here, if it is active.' }),
});
export type ListedSessionShown = z.infer<typeof listedSession>;
