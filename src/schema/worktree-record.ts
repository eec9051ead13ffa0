import { z } from 'zod';
import { APPLY_MODES } from './enums.ts';

export const pinnedSettings = z.object({
  config: z.array(z.tuple([z.string(), z.string()])),
  /** Contents of files below `info`. */
  exclude: z.string(),
  attributes: z.string(),
  sparse: z.string(),
});

/** What git may know about a repository while it works for a session. */
export type PinnedSettings = z.infer<typeof pinnedSettings>;

const base = z.object({
  /** The branch that `apply` goes to; undefined if the session started at a commit. */
  ref: z.string().optional(),
  /** Where the unapplied work starts. */
  commit: z.string(),
});

/** An `apply` that changes what others see, or is about to. */
const applyJournal = z.object({
  operation: z.literal('apply'),
  mode: z.enum(APPLY_MODES),
  checkout: z.object({ workTree: z.string(), gitDir: z.string() }).optional(),
  ref: z.string().optional(),
  from: z.string(),
  to: z.string(),
  work: z.string(),
  /** Who asked for it, by name. */
  by: z.string().optional(),
  /** It has not had the lock of the ref yet, so nothing is written. */
  waits: z.boolean().optional(),
});

/** The last `apply` that was carried out. */
export const appliedWork = z.object({
  at: z.string(),
  mode: z.enum(APPLY_MODES),
  /** Where the work is now: a commit on a branch, or uncommitted in a checkout. */
  commit: z.string().optional(),
  branch: z.string().optional(),
  checkout: z.string().optional(),
  by: z.string().optional(),
  /** What it changed there: two commits or trees. */
  from: z.string(),
  to: z.string(),
});
export type AppliedWork = z.infer<typeof appliedWork>;

const discardJournal = z.object({
  operation: z.literal('discard'),
  deleteBranchAt: z.string().optional(),
  /** The branch is deleted with commits of its own; another ref keeps them for a while. */
  retireBranchAt: z.string().optional(),
  /** What is moved aside from the worktree rather than removed. */
  keep: z.array(z.string()).optional(),
  keptBranches: z.array(z.string()).optional(),
});

export const worktreeRecord = z.object({
  version: z.literal(1),
  id: z.string(),
  sessionId: z.string(),
  createdAt: z.string(),
  /** The directory that the session was started for; its repository's trusted checkout. */
  origin: z.string(),
  commonDir: z.string(),
  /** Name of the entry below `worktrees`. */
  entry: z.string().optional(),
  path: z.string(),
  /** Where in the worktree the session works. */
  prefix: z.string(),
  branch: z.string(),
  base,
  begun: z.string(),
  state: z.enum(['creating', 'ready', 'removed']),
  pinned: pinnedSettings,
  journal: z.union([applyJournal, discardJournal]).optional(),
  applied: appliedWork.optional(),
});

export type WorktreeRecord = z.infer<typeof worktreeRecord>;
export type DiscardJournal = z.infer<typeof discardJournal>;
export type ApplyJournal = z.infer<typeof applyJournal>;
