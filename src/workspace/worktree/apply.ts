import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { DomainError, messageOf } from '../../errors/errors.ts';
import type { ApplyMode } from '../../schema/enums.ts';
import type { ActionOf } from '../../schema/own-action.ts';
import type { ApplyJournal, WorktreeRecord } from '../../schema/worktree-record.ts';
import {
  checkoutOf,
  findCheckout,
  isAncestor,
  messageOfCommit,
  operationOnBranch,
  readHead,
  resolveCommit,
  shortBranch,
  treeOf,
  type Checkout,
} from '../git/checkout.ts';
import { copyIndex } from '../git/status.ts';
import {
  commitTree,
  identityOf,
  nameSome,
  refusal,
  mergeTrees,
  withWorkCommit,
  type WorkCommit,
} from './commit-work.ts';
import { GitError, gitWithoutHooks, RefBusyError, UnfinishedError, withRefLocked } from '../git/git.ts';
import { sealed, type Seal } from '../git/sealed.ts';
import { enterFinishedFiles, filesInTheWay, updateCheckout } from './check-out-files.ts';
import { requireRoom, sealFor, uncommittedIn } from './users-checkout.ts';
import {
  checkpoint,
  listRecordIds,
  loadRecord,
  saveRecord,
  withRecord,
  type WorktreeHost,
} from './worktree-records.ts';

export interface ApplyOptions {
  readonly mode: ApplyMode;
  /** Commit message; by default a plain sentence that names the session. */
  readonly message?: string | undefined;
  /** Who asked for it, by name. */
  readonly by?: string | undefined;
}

export type ApplyOutcome =
  | { readonly outcome: 'nothing-to-apply'; readonly record: WorktreeRecord }
  | {
      readonly outcome: 'applied';
      readonly mode: ApplyMode;
      readonly record: WorktreeRecord;
      /** Where the work is now: a commit on the base branch, or uncommitted in a checkout. */
      readonly commit?: string;
      readonly branch?: string;
      readonly checkout?: string;
      /** Absent if an earlier attempt did it, of which no more is known. */
      readonly detail?: ApplyDetail;
    };

export interface ApplyDetail {
  /** How the base branch got there; a patch changes files only. */
  readonly how: 'fast-forward' | 'merge-commit' | 'squash-commit' | 'patch';
  /** Where the base was. */
  readonly before: string;
  /** The last commit of the session's branch. */
  readonly work: string;
  /** That commit was made now, of what was uncommitted in the worktree. */
  readonly committedNow: boolean;
  /** Other uncommitted changes in the checkout. */
  readonly leftAlone: readonly string[];
}

interface Target {
  readonly ref: string | undefined;
  readonly tip: string;
  readonly checkout: Checkout | undefined;
}

/** Exactly what is applied, and where: for someone to approve. */
export type ApprovedApply = Omit<ActionOf<'apply'>, 'action'>;

export interface PlannedApply {
  readonly outcome: 'planned';
  readonly approve: ApprovedApply;
  /** The branch, or the checkout for a patch, that it goes to. */
  readonly target: string;
  /** The trees of the target before and after. */
  readonly change: { readonly from: string; readonly to: string };
  /** Of the commit that the target gets; of the applied commit itself if none is created. */
  readonly message: string;
}

type NothingToApply = Extract<ApplyOutcome, { outcome: 'nothing-to-apply' }>;

/**
 * Brings the session's work to its base, or refuses and changes nothing, neither there nor in the worktree, whose files
 * always stay as they are. Later work counts from here.
 */
export async function applyWork(
  host: WorktreeHost,
  given: WorktreeRecord,
  options: ApplyOptions,
): Promise<ApplyOutcome> {
  const record = await settleApply(host, given);
  const wanted = named(record, options);
  return withWorkCommit(host, record, wanted.message, async (work) => {
    const ready = await prepare(host, record, { ...wanted, commit: work.commit });
    return 'outcome' in ready ? ready : perform(host, ready, work);
  });
}

/** Commits the work and finds out what applying it would do, or why it is impossible. The base stays as it is. */
export async function planApply(
  host: WorktreeHost,
  given: WorktreeRecord,
  options: ApplyOptions & { readonly commit?: string },
): Promise<PlannedApply | NothingToApply> {
  const record = await settleApply(host, given);
  const { commit } = options;
  const wanted = named(record, options);
  const ready =
    commit === undefined
      ? await commitAndPrepare(host, record, wanted)
      : await prepare(host, record, { ...wanted, commit });
  if ('outcome' in ready) return ready;
  const { mode, message, work, target, to } = ready;
  const { commonDir } = record;
  const isNew = mode !== 'patch' && to !== work;
  return {
    outcome: 'planned',
    approve: { mode, message, commit: work, onto: target.tip },
    target: target.ref === undefined ? record.origin : shortBranch(target.ref),
    change: {
      from: await treeOf(host.git, commonDir, target.tip),
      to: mode === 'patch' ? to : await treeOf(host.git, commonDir, to),
    },
    message: await messageOfCommit(host.git, commonDir, isNew ? to : work),
  };
}

/**
 * Applies exactly the commit that was approved. `moved`: the base is no longer where it was. An earlier attempt that was
 * interrupted is finished first, so that repeating it does not apply the commit twice.
 */
export async function applyApproved(
  host: WorktreeHost,
  given: WorktreeRecord,
  { commit, onto, ...options }: ApprovedApply & Pick<ApplyOptions, 'by'>,
): Promise<ApplyOutcome | 'moved'> {
  const record = await settleApply(host, given);
  if (record.base.commit === commit) return doneBefore(host, record, options.mode);
  const ready = await prepare(host, record, { ...options, commit });
  if ('outcome' in ready) return ready;
  return ready.target.tip === onto ? perform(host, ready) : 'moved';
}

interface Wanted {
  readonly by?: string | undefined;
  readonly mode: ApplyMode;
  readonly message: string;
  readonly commit: string;
}

interface Ready extends Omit<Wanted, 'commit'> {
  readonly record: WorktreeRecord;
  readonly work: string;
  readonly target: Target;
  /** The commit or, for a patch, the tree that the base becomes. */
  readonly to: string;
}

function named({ id }: WorktreeRecord, { mode, message, by }: ApplyOptions): Omit<Wanted, 'commit'> {
  return { mode, by, message: message ?? `Work of Claude Code session ${id}` };
}

/** The work is committed to its branch only if it can be applied: a refusal changes nothing. */
function commitAndPrepare(
  host: WorktreeHost,
  record: WorktreeRecord,
  wanted: Omit<Wanted, 'commit'>,
): Promise<Ready | NothingToApply> {
  return withWorkCommit(host, record, wanted.message, async ({ commit, take }) => {
    const ready = await prepare(host, record, { ...wanted, commit });
    if (!('outcome' in ready)) await take();
    return ready;
  });
}

/** Everything up to the first change that others could see. */
async function prepare(
  host: WorktreeHost,
  record: WorktreeRecord,
  { mode, message, by, commit: work }: Wanted,
): Promise<Ready | NothingToApply> {
  const { commonDir, base } = record;
  if ((await treeOf(host.git, commonDir, work)) === (await treeOf(host.git, commonDir, base.commit)))
    return { outcome: 'nothing-to-apply', record };

  let target = await targetOf(host, record, mode);
  if (await finishOthers(host, record, target)) target = await targetOf(host, record, mode);
  if (mode !== 'patch' && (await isAncestor(host.git, commonDir, work, target.tip)))
    return {
      outcome: 'nothing-to-apply',
      record: await saveRecord(host, { ...record, base: { ...base, commit: work } }),
    };
  const to = await resultOf(host, record, { mode, message, work, target });
  if (target.checkout) await requireRoom(host, record, target.checkout, { from: target.tip, to });
  return { record, mode, message, by, work, target, to };
}

async function perform(
  host: WorktreeHost,
  { record: settled, mode, by, work, target, to }: Ready,
  uncommitted?: WorkCommit,
): Promise<ApplyOutcome> {
  const leftAlone = target.checkout ? await uncommittedIn(host, settled, target.checkout) : [];
  const journal: ApplyJournal = {
    operation: 'apply',
    mode,
    ...(target.checkout && { checkout: { workTree: target.checkout.workTree, gitDir: target.checkout.gitDir } }),
    ...(target.ref !== undefined && { ref: target.ref }),
    from: target.tip,
    to,
    work,
    ...(by !== undefined && { by }),
    ...(target.ref !== undefined && { waits: true }),
  };
  await checkpoint(host, 'apply-journal');
  const record = await saveRecord(host, { ...settled, journal });
  try {
    await carryOut(host, record, journal, { take: uncommitted?.take });
  } catch (error) {
    // Refused before anything was written: there is nothing to finish.
    if (error instanceof DomainError && !(error instanceof UnfinishedError)) await saveRecord(host, settled);
    throw error;
  }
  const committedNow = uncommitted?.isNew === true;
  const detail = { how: howOf(journal), before: journal.from, work, committedNow, leftAlone };
  return { ...(await finish(host, record, journal)), detail };
}

/**
 * The work is taken last, when nothing can be refused any more. Cut off before that, it stays uncommitted in the worktree
 * although it has been applied, which the next apply sees.
 */
async function carryOut(
  host: WorktreeHost,
  record: WorktreeRecord,
  journal: ApplyJournal,
  { take, again = false }: { readonly take?: WorkCommit['take'] | undefined; readonly again?: boolean },
): Promise<void> {
  const { waits, ...begun } = journal;
  const { ref, from, to, checkout } = begun;
  const update = async (): Promise<void> => {
    if (waits === true) {
      // Two that wrote from the same base could not both be finished.
      const other = (await othersHere(host, record, begun)).find((one) => one.journal.waits !== true);
      if (other)
        throw refusal(
          `An apply of session ${other.sessionId} is under way, or was interrupted in the meantime; try again.`,
        );
      await saveRecord(host, { ...record, journal: begun });
    }
    await checkpoint(host, 'apply-files');
    if (checkout) await updateFiles(host, record, journal, again);
    await take?.();
    await checkpoint(host, 'apply-ref');
  };
  if (ref === undefined) return update();
  await checkpoint(host, 'apply-lock');
  const git = await gitWithoutHooks(host.git, checkout?.gitDir ?? record.commonDir);
  const isDone = await withRefLocked(git, { ref, from, to, message: `claude-code-mcp: ${journal.mode}` }, async () => {
    await update();
    return true;
  });
  if (!isDone) throw refusal(`${shortBranch(ref)} moved on while the work was being applied; try again.`);
}

async function updateFiles(
  host: WorktreeHost,
  record: WorktreeRecord,
  journal: ApplyJournal,
  again: boolean,
): Promise<void> {
  const { checkout, from, to, mode } = journal;
  if (!checkout) return;
  const seal = await sealFor(host, record, { ...checkout, commonDir: record.commonDir });
  await withIndex(seal, mode, async (index) => {
    const update = { from, to, index };
    const finished = again ? await enterFinishedFiles(seal, update) : 0;
    try {
      await updateCheckout(seal, update);
    } catch (error) {
      // Stopped by us, or for an unknown reason: it is unclear how far it got.
      if (!(error instanceof GitError))
        throw new UnfinishedError(`${checkout.workTree} may be half updated: ${messageOf(error)}`, { cause: error });
      const why = `git cannot update ${checkout.workTree}: ${error.stderr.trim()}`;
      // Git checks every file before it writes one, but a full disk shows only while writing.
      const isUntouched = again ? finished === 0 : (await filesInTheWay(seal, update)).length === 0;
      throw isUntouched ? refusal(`${why}.`) : new UnfinishedError(why, { cause: error });
    }
  });
}

/** A patch is left unstaged: the checkout's own index is not written. */
async function withIndex<T>(seal: Seal, mode: ApplyMode, work: (index: string) => Promise<T>): Promise<T> {
  const own = path.join(seal.checkout.gitDir, 'index');
  if (mode !== 'patch') return work(own);
  const copy = path.join(seal.scratch, `patch-index-${randomUUID()}`);
  try {
    // It does not exist until a file is first added.
    await copyIndex(own, copy).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    });
    return await work(copy);
  } finally {
    await rm(copy, { force: true });
  }
}

async function finish(
  host: WorktreeHost,
  record: WorktreeRecord,
  journal: ApplyJournal,
): Promise<Extract<ApplyOutcome, { outcome: 'applied' }>> {
  await checkpoint(host, 'apply-done');
  const { journal: _, ...others } = record;
  const { mode, ref, checkout, from, to, work, by } = journal;
  const where = {
    ...(ref !== undefined && { commit: to, branch: shortBranch(ref) }),
    ...(checkout && { checkout: checkout.workTree }),
  };
  const applied = { at: new Date().toISOString(), mode, ...where, ...(by !== undefined && { by }), from, to };
  const done = await saveRecord(host, { ...others, base: { ...record.base, commit: work }, applied });
  return { outcome: 'applied', mode, record: done, ...where };
}

function howOf({ mode, to, work }: ApplyJournal): ApplyDetail['how'] {
  if (mode === 'patch') return 'patch';
  return mode === 'squash' ? 'squash-commit' : to === work ? 'fast-forward' : 'merge-commit';
}

/** Finishes an interrupted `apply`: it has then happened exactly once and completely, or not at all. */
export async function settleApply(host: WorktreeHost, record: WorktreeRecord): Promise<WorktreeRecord> {
  const { journal } = record;
  if (journal?.operation !== 'apply') return record;
  const { ref, from, to, checkout, waits } = journal;
  const { commonDir, journal: _, ...others } = record;
  if (waits === true) return saveRecord(host, { ...others, commonDir });
  const now = ref === undefined ? from : await resolveCommit(host.git, commonDir, ref);
  if (ref !== undefined && now === to) return (await finish(host, record, journal)).record;
  const head = checkout && (await readHead(host.git, checkout.gitDir).catch(() => undefined));
  const isUnmoved = now === from && (!checkout || head?.commit === from);
  // The base has moved: whoever moved it saw the state of the checkout.
  if (!isUnmoved) return saveRecord(host, { ...others, commonDir });
  try {
    await carryOut(host, record, journal, { again: true });
  } catch (error) {
    if (error instanceof RefBusyError) throw error;
    // No file had been written: it has not happened, and need not.
    if (error instanceof DomainError && !(error instanceof UnfinishedError))
      return saveRecord(host, { ...others, commonDir });
    if (!(error instanceof UnfinishedError)) throw error;
    throw new DomainError(
      'INVALID_ARGUMENT',
      `An apply of session ${record.sessionId} was interrupted and cannot be finished: ${error.message} Restore the named files (git restore) or commit them, then try again.`,
    );
  }
  return (await finish(host, record, journal)).record;
}

/**
 * Interrupted applies of other sessions to the same place. Once the base has moved they can no longer be finished, and
 * the files that they had written would stay behind as uncommitted changes. Returns whether there were any. No deadlock:
 * whoever waits here for another's lock has no journal that its holder could be waiting for.
 */
async function finishOthers(host: WorktreeHost, record: WorktreeRecord, target: Target): Promise<boolean> {
  const others = await othersHere(host, record, target);
  for (const { id } of others) await withRecord(host, id, (other) => settleApply(host, other));
  return others.length > 0;
}

type Applying = WorktreeRecord & { readonly journal: ApplyJournal };

/** Other sessions with an `apply` to the same place that is under way or was interrupted. */
async function othersHere(
  host: WorktreeHost,
  { id: own, commonDir }: WorktreeRecord,
  { ref, checkout }: Pick<ApplyJournal, 'ref' | 'checkout'>,
): Promise<Applying[]> {
  const isHere = (other: WorktreeRecord): other is Applying =>
    other.journal?.operation === 'apply' &&
    other.commonDir === commonDir &&
    ((other.journal.ref !== undefined && other.journal.ref === ref) ||
      (other.journal.checkout !== undefined && other.journal.checkout.workTree === checkout?.workTree));
  const found: Applying[] = [];
  for (const id of await listRecordIds(host)) {
    const other = id === own ? undefined : await loadRecord(host, id).catch(() => undefined);
    if (other && isHere(other)) found.push(other);
  }
  return found;
}

async function targetOf(host: WorktreeHost, record: WorktreeRecord, mode: ApplyMode): Promise<Target> {
  const { commonDir, base, branch, begun } = record;
  if (mode === 'patch') {
    const checkout = await findCheckout(host.git, record.origin).catch(() => undefined);
    const head = checkout && (await readHead(host.git, checkout.gitDir));
    if (checkout?.commonDir !== commonDir || head?.commit === undefined)
      throw refusal(`The checkout ${record.origin} that the session started in is gone; use merge or squash.`);
    return { ref: undefined, tip: head.commit, checkout };
  }
  const { ref } = base;
  if (ref === undefined)
    throw refusal(
      `The session started at a commit, not on a branch; use mode patch, or merge ${shortBranch(branch)} yourself.`,
    );
  const tip = await resolveCommit(host.git, commonDir, ref);
  if (tip === undefined)
    throw refusal(`The branch ${shortBranch(ref)} is gone; merge ${shortBranch(branch)} yourself.`);
  if (!(await isAncestor(host.git, commonDir, begun, tip)))
    throw refusal(
      `${shortBranch(ref)} was rewritten and no longer contains ${begun.slice(0, 10)}, where the session started; use mode patch, or rebase ${shortBranch(branch)} in the worktree.`,
    );
  const operation = await operationOnBranch(commonDir, ref);
  if (operation !== undefined)
    throw refusal(`A ${operation} of ${shortBranch(ref)} is in progress; finish or abort it first.`);
  return { ref, tip, checkout: await checkoutOf(host.git, commonDir, ref, record.path) };
}

async function doneBefore(host: WorktreeHost, record: WorktreeRecord, mode: ApplyMode): Promise<ApplyOutcome> {
  const { ref } = record.base;
  if (mode === 'patch' || ref === undefined) return { outcome: 'applied', mode, record, checkout: record.origin };
  const commit = await resolveCommit(host.git, record.commonDir, ref);
  return { outcome: 'applied', mode, record, branch: shortBranch(ref), ...(commit !== undefined && { commit }) };
}

/** The commit or, for a patch, the tree that the base becomes. */
async function resultOf(
  host: WorktreeHost,
  record: WorktreeRecord,
  { mode, message, work, target }: Omit<Ready, 'record' | 'to'>,
): Promise<string> {
  const { commonDir, base } = record;
  if (mode === 'merge' && (await isAncestor(host.git, commonDir, target.tip, work))) return work;
  const seal = await sealFor(host, record, target.checkout ?? { workTree: record.path, gitDir: commonDir, commonDir });
  const merged = await mergeTrees(seal, { ours: target.tip, theirs: work, taken: base.commit });
  if ('conflicts' in merged)
    throw refusal(
      `The work conflicts with ${target.ref === undefined ? record.origin : shortBranch(target.ref)} in ${nameSome(merged.conflicts)}. Commit the work and merge ${target.ref === undefined ? 'its HEAD' : shortBranch(target.ref)} in the worktree, resolve the conflicts there, then try again.`,
    );
  if (mode === 'patch') return merged.tree;
  const parents = mode === 'merge' ? [target.tip, work] : [target.tip];
  const subject = mode === 'merge' ? `Merge branch '${shortBranch(record.branch)}'\n\n${message}` : message;
  return sealed(seal, { objects: 'repository', files: false }, async (git) =>
    (await git(commitTree(merged.tree, parents, subject), { env: identityOf(record.pinned) })).trim(),
  );
}
