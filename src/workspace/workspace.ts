import { lstat, mkdir, readdir, realpath, rm } from 'node:fs/promises';
import path from 'node:path';
import { DomainError } from '../errors/errors.ts';
import type { AppliedWork, WorktreeRecord } from '../schema/worktree-record.ts';
import {
  applyApproved,
  applyWork,
  planApply,
  settleApply,
  type ApplyOptions,
  type ApplyOutcome,
  type ApprovedApply,
  type PlannedApply,
} from './worktree/apply.ts';
import { uncommittedInOrigin } from './worktree/users-checkout.ts';
import { findCheckout, shortBranch, type Checkout } from './git/checkout.ts';
import {
  compareSnapshots,
  cutPage,
  diffPage,
  sum,
  type Comparison,
  type DiffPage,
  type PageOptions,
} from './report/compare.ts';
import { collectEvidence, evidenceOfCalls, type CollectedEvidence } from './report/evidence.ts';
import { createWorktree, type WorktreeRequest } from './worktree/create-worktree.ts';
import {
  checkDiscardable,
  discardApproved,
  discardWork,
  planDiscard,
  retiredDir,
  sweepRetired,
  type ApprovedDiscard,
  type DiscardOptions,
  type DiscardOutcome,
  type PlannedDiscard,
} from './worktree/discard.ts';
import {
  exclusively,
  type Exclusively,
  type TakeLock,
  sandboxWrites,
  listRecordIds,
  loadRecord,
  recordDir,
  requireRecord,
  sealOf,
  withRecord,
  type RepositoryWrites,
  type WorktreeHost,
} from './worktree/worktree-records.ts';
import { findGit, type GitHost } from './git/git-process.ts';
import {
  keepMark,
  keepStart,
  loadMark,
  loadStart,
  snapshotOfTree,
  takeSnapshot,
  type KeptStart,
  type Snapshot,
} from './report/snapshot.ts';
import { pinSettings, type PinOptions } from './git/pinned-settings.ts';
import type { Seal } from './git/sealed.ts';
import { SEARCHED } from './git/searched-index.ts';
import { editedFiles, editedPath, reportedPatch, type ToolCall } from './report/work-report.ts';
import { listWorktrees, worktreeState, type WorktreeState } from './worktree/worktree-state.ts';

export interface WorkspacesOptions {
  /** The server's environment; only what git needs from it is used. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly worktreesDir: string;
  /** Where snapshots of sessions without a worktree are kept. */
  readonly snapshotsDir: string;
  /** How long those of a session are kept that nobody has used since. */
  readonly retainMs?: number;
  /** Where Claude keeps its plans; what it writes there is no work. */
  readonly plansDir?: string;
  /** Keeps other processes away from a worktree that this one is changing. */
  readonly lock?: TakeLock;
}

/** The baseline of work, for a turn or a session. Plain data; undefined without git. */
export type Mark = Snapshot | undefined;

/** A diff that is being read page by page. */
export interface DiffCursor {
  readonly comparison?: Comparison;
  readonly patch?: string;
}

/** Where one session works. */
export interface Workspace {
  readonly cwd: string;
  /** The checkout that work is measured in, or the directory itself. */
  readonly root: string;
  /** The state when the session started, if it is known without another look. */
  readonly begun?: Mark;
  /** The session has worked here before, under another server. */
  readonly isResumed?: boolean;
  /** The checkout whose project settings apply; only with a worktree. */
  readonly projectConfigRoot?: string;
  /** As answers name it. */
  readonly worktree?: { readonly id: string; readonly path: string; readonly branch: string; readonly base: string };
  /** The repository's own directory; only with a worktree. */
  readonly repository?: string;
  readonly notes: readonly string[];
  readonly sandbox?: RepositoryWrites;
  /** The current state. */
  mark(): Promise<Mark>;
  /** Keeps the baseline of a turn for a server that has to continue it. */
  keepMark(mark: Mark): Promise<void>;
  /** The last one kept, also by an earlier server; before the first, the state when the session started. */
  lastMark(): Promise<Mark>;
  /** What git saw change since the baseline, and the calls, as the work report needs them; `all`: of the whole session. */
  evidence(
    since: Mark,
    calls: readonly ToolCall[],
    shared: boolean,
    all?: readonly ToolCall[],
  ): Promise<CollectedEvidence>;
  /** The session's work: against its base, or since the session started. Pass the cursor back for the next page. */
  diff(
    page: PageOptions,
    calls: readonly ToolCall[],
    cursor?: DiffCursor,
  ): Promise<DiffPage & { readonly cursor: DiffCursor }>;
  /** Files with uncommitted changes in the checkout that a worktree was made from. */
  uncommittedInOrigin(): Promise<readonly string[]>;
  apply(options: ApplyOptions): Promise<ApplyOutcome>;
  /** Commits the work and shows what `applyApproved` would do with it; `commit`: with this one instead. */
  planApply(
    options: ApplyOptions & { readonly commit?: string },
    page: PageOptions,
  ): Promise<(PlannedApply & { readonly diff: DiffPage }) | Exclude<ApplyOutcome, { outcome: 'applied' }>>;
  applyApproved(approved: ApprovedApply & Pick<ApplyOptions, 'by'>): Promise<ApplyOutcome | 'moved'>;
  /** The last work that was applied from here, if any. */
  lastApplied(): Promise<AppliedWork | undefined>;
  appliedDiff(applied: AppliedWork, page: PageOptions): Promise<DiffPage>;
  /** Commits the work and shows what `discardApproved` would remove. */
  planDiscard(): Promise<PlannedDiscard>;
  discardApproved(approved: ApprovedDiscard): Promise<DiscardOutcome | 'moved'>;
  /** Refuses what `discard` without force would refuse. */
  checkDiscardable(): Promise<void>;
  discard(options?: DiscardOptions): Promise<DiscardOutcome>;
  /** Frees what only this server needs; never the worktree. */
  close(): Promise<void>;
}

export class Workspaces {
  readonly #options: WorkspacesOptions;
  #git: Promise<GitHost | undefined> | undefined;
  #sweptAt = 0;
  readonly #exclusively: Exclusively;

  constructor(options: WorkspacesOptions) {
    this.#options = options;
    this.#exclusively = exclusively(options.lock);
  }

  /** Removes the snapshots of sessions that nobody has continued for long, and commits of branches deleted long ago. */
  async sweep(): Promise<void> {
    const { snapshotsDir, retainMs: olderThanMs = 30 * DAY_MS } = this.#options;
    this.#sweptAt = Date.now();
    for (const name of await readdir(snapshotsDir).catch(() => [])) {
      const directory = path.join(snapshotsDir, name);
      const { mtimeMs } = await lstat(directory);
      if (Date.now() - mtimeMs > olderThanMs) await rm(directory, { recursive: true, force: true });
    }
    if (await lstat(retiredDir(this.#options)).catch(() => undefined))
      await sweepRetired(await this.host(), olderThanMs);
  }

  git(): Promise<GitHost | undefined> {
    return (this.#git ??= findGit(this.#options.env));
  }

  async host(): Promise<WorktreeHost> {
    const git = await this.git();
    if (!git) throw new DomainError('INVALID_ARGUMENT', 'A worktree requires git, which is not on the PATH.');
    return { git, worktreesDir: this.#options.worktreesDir, exclusively: this.#exclusively };
  }

  /** A session in a directory. Costs nothing where there is no git. */
  async openDirectory(sessionId: string, cwd: string, options?: PinOptions): Promise<Workspace> {
    const git = (await hasRepositoryAbove(cwd)) ? await this.git() : undefined;
    const found = git && (await findCheckout(git, cwd).catch(() => undefined));
    if (!git || !found) return this.#withoutPlans(directoryWithoutGit(cwd));
    const scratch = path.join(this.#options.snapshotsDir, sessionId);
    await mkdir(scratch, { recursive: true, mode: 0o700 });
    if (Date.now() - this.#sweptAt > DAY_MS) await this.sweep();
    const kept = await loadStart(scratch, found.workTree);
    const { pinned, begun } = kept ?? (await beginIn(git, found, scratch, options));
    const start: Snapshot = { ...begun, head: begun.head, branch: begun.branch, logged: begun.logged };
    return this.#withoutPlans({
      ...common({ host: git, checkout: found, pinned, scratch }, cwd, async () => start),
      // A turn after a restart starts from what is there by then.
      ...(kept ? { isResumed: true } : { begun: start }),
      close: () => rm(scratch, { recursive: true, force: true }),
    });
  }

  async openWorktree(request: WorktreeRequest): Promise<Workspace> {
    const host = await this.host();
    try {
      const { record, notes, begun } = await createWorktree(host, request);
      return this.#withoutPlans({ ...worktreeOf(host, record, notes), ...(begun && { begun }) });
    } catch (error) {
      await clearAway(host, request.sessionId).catch(() => undefined);
      throw error;
    }
  }

  /** A new worktree that continues from the last commit of another one's branch. */
  async forkWorktree(sessionId: string, { worktree }: Pick<Workspace, 'worktree'>): Promise<Workspace> {
    const host = await this.host();
    const of = await requireRecord(host, worktree?.id ?? '');
    const { dirty } = await worktreeState(host, of);
    const opened = await this.openWorktree({ sessionId, cwd: path.join(of.origin, of.prefix), of });
    if (dirty.length === 0) return opened;
    const left = `The fork starts at the last commit of ${shortBranch(of.branch)}: uncommitted changes in the original's worktree (${String(dirty.length)} file(s)) are not included.`;
    return { ...opened, notes: [...opened.notes, left] };
  }

  /** The worktree created for a session; undefined if there is none. */
  async findWorktree(sessionId: string): Promise<Workspace | undefined> {
    const host = await this.host();
    for (const id of await listRecordIds(host)) {
      const record = await loadRecord(host, id).catch(() => undefined);
      if (record?.sessionId === sessionId && record.state === 'ready') return this.reopenWorktree(id);
    }
    return undefined;
  }

  /** By session: where it works, and the checkout its worktree was made from. Does not run git. */
  async checkouts(): Promise<Map<string, { readonly cwd: string; readonly origin: string }>> {
    const host = { worktreesDir: this.#options.worktreesDir };
    const ids = await listRecordIds(host);
    const records = await Promise.all(ids.map((id) => loadRecord(host, id).catch(() => undefined)));
    return new Map(
      records.flatMap((record) =>
        record ? [[record.sessionId, { cwd: path.join(record.path, record.prefix), origin: record.origin }]] : [],
      ),
    );
  }

  /** All of them, or that of one session. */
  async worktrees(sessionId?: string): Promise<WorktreeState[]> {
    return (await listWorktrees(await this.host(), sessionId)).filter((listed) => 'sessionId' in listed);
  }

  /** A worktree created earlier, perhaps by another process. */
  async reopenWorktree(id: string): Promise<Workspace> {
    const host = await this.host();
    const record = await withRecord(host, id, (found) =>
      settleApply(host, found).catch((error: unknown) => {
        // Whoever applies or discards is told; the session can be read until then.
        if (error instanceof DomainError) return found;
        throw error;
      }),
    );
    return this.#withoutPlans({ ...worktreeOf(host, record, []), isResumed: true });
  }

  #withoutPlans(workspace: Workspace): Workspace {
    const { plansDir } = this.#options;
    if (plansDir === undefined) return workspace;
    const isWork = (call: ToolCall): boolean => path.dirname(editedPath(call) ?? '') !== path.resolve(plansDir);
    return {
      ...workspace,
      evidence: (since, calls, shared, all) =>
        workspace.evidence(since, calls.filter(isWork), shared, all?.filter(isWork)),
      diff: (page, calls, cursor) => workspace.diff(page, calls.filter(isWork), cursor),
    };
  }
}

const DAY_MS = 24 * 3_600_000;

/** The session's first look at its checkout: work is compared with it, and git keeps these settings. */
async function beginIn(host: GitHost, checkout: Checkout, scratch: string, options?: PinOptions): Promise<KeptStart> {
  const pinned = await pinSettings(host, checkout, options);
  const begun = await takeSnapshot({ host, checkout, pinned, scratch }, 'ahead');
  const start = { root: checkout.workTree, pinned, begun: { ...begun, changed: [...begun.changed] } };
  await keepStart(scratch, start);
  return start;
}

/** Checking the parent directories costs no process. */
async function hasRepositoryAbove(cwd: string): Promise<boolean> {
  let directory = await realpath(cwd).catch(() => cwd);
  for (;;) {
    if (await lstat(path.join(directory, '.git')).catch(() => undefined)) return true;
    const parent = path.dirname(directory);
    if (parent === directory) return false;
    directory = parent;
  }
}

/** What a failed creation left; its record says that no session has ever worked there. */
async function clearAway(host: WorktreeHost, sessionId: string): Promise<void> {
  for (const id of await listRecordIds(host)) {
    const record = await loadRecord(host, id).catch(() => undefined);
    if (record?.sessionId === sessionId && record.state === 'creating')
      await withRecord(host, id, (unfinished) => discardWork(host, unfinished));
  }
}

function worktreeOf(host: WorktreeHost, first: WorktreeRecord, notes: readonly string[]): Workspace {
  const { id, path: directory, branch, base, begun, entry = '', commonDir } = first;
  const current = (): Promise<WorktreeRecord> => requireRecord(host, id);
  const sandbox = sandboxWrites({ commonDir, entry, branch });
  const start = async (): Promise<Snapshot> => {
    const record = await current();
    return snapshotOfTree(record.base.commit, record.base.commit);
  };
  return {
    ...common(sealOf(host, first), path.join(directory, first.prefix), start, snapshotOfTree(begun, begun)),
    projectConfigRoot: first.origin,
    repository: commonDir,
    worktree: {
      id,
      path: directory,
      branch: shortBranch(branch),
      base: base.ref === undefined ? begun : shortBranch(base.ref),
    },
    notes,
    ...(sandbox && { sandbox }),
    uncommittedInOrigin: async () => uncommittedInOrigin(host, await current()),
    apply: (options) => withRecord(host, id, (record) => applyWork(host, record, options)),
    async planApply(options, page) {
      const planned = await withRecord(host, id, (record) => planApply(host, record, options));
      if (planned.outcome !== 'planned') return planned;
      const seal = sealOf(host, await current());
      const { from, to } = planned.change;
      const comparison = await compareSnapshots(seal, snapshotOfTree(from), snapshotOfTree(to));
      return { ...planned, diff: await diffPage(seal, comparison, page) };
    },
    applyApproved: (approved) => withRecord(host, id, (record) => applyApproved(host, record, approved)),
    lastApplied: async () => (await current()).applied,
    async appliedDiff({ from, to }, page) {
      const seal = sealOf(host, await current());
      return diffPage(seal, await compareSnapshots(seal, snapshotOfTree(from), snapshotOfTree(to)), page);
    },
    planDiscard: () => withRecord(host, id, (record) => planDiscard(host, record)),
    discardApproved: (approved) => withRecord(host, id, (record) => discardApproved(host, record, approved)),
    checkDiscardable: () => withRecord(host, id, (record) => checkDiscardable(host, record)),
    discard: (options) => withRecord(host, id, (record) => discardWork(host, record, options)),
    async close() {
      for (const name of ['objects', SEARCHED])
        await rm(path.join(recordDir(host, id), name), { recursive: true, force: true });
    },
  };
}

/** `start`: what the work is compared with; `begun`: the state when the session began, if that is another one. */
function common(seal: Seal, cwd: string, start: () => Promise<Snapshot>, begun?: Snapshot): Omit<Workspace, 'close'> {
  return {
    cwd,
    root: seal.checkout.workTree,
    notes: [],
    mark: () => takeSnapshot(seal, 'ahead'),
    keepMark: async (mark) => mark && keepMark(seal.scratch, mark),
    lastMark: async () => (await loadMark(seal.scratch)) ?? start(),
    async evidence(since, calls, shared, all = calls) {
      if (since === undefined) return evidenceOfCalls(cwd, calls, shared, all);
      return collectEvidence(seal, cwd, { begun: begun ?? (await start()), since }, { calls, shared, all });
    },
    ...WITHOUT_WORKTREE,
    async diff(page, _calls, cursor) {
      const comparison = cursor?.comparison ?? (await compareSnapshots(seal, await start(), await takeSnapshot(seal)));
      return { ...(await diffPage(seal, comparison, page)), cursor: { comparison } };
    },
  };
}

function directoryWithoutGit(cwd: string): Workspace {
  const root = path.resolve(cwd);
  return {
    cwd,
    root,
    notes: [],
    mark: async () => undefined,
    keepMark: async () => undefined,
    lastMark: async () => undefined,
    evidence: async (_, calls, shared, all = calls) => evidenceOfCalls(cwd, calls, shared, all),
    ...WITHOUT_WORKTREE,
    async diff(page, calls, cursor) {
      const patch = cursor?.patch ?? reportedPatch(calls, root);
      const files = editedFiles(calls, root);
      return {
        filesChanged: files.length,
        insertions: sum(files.map((file) => file.insertions)),
        deletions: sum(files.map((file) => file.deletions)),
        ...(page.offset === 0 && { files }),
        ...cutPage(Buffer.from(patch), page),
        cursor: { patch },
      };
    },
    close: async () => undefined,
  };
}

function withoutWorktree(action: 'apply' | 'discard'): () => Promise<never> {
  const why = `${action} requires a session with a worktree (advanced.workspace: { type: "worktree" }); this one works in the directory itself.`;
  return () => Promise.reject(new DomainError('INVALID_ARGUMENT', why));
}

const WITHOUT_WORKTREE = {
  uncommittedInOrigin: async () => [],
  apply: withoutWorktree('apply'),
  planApply: withoutWorktree('apply'),
  applyApproved: withoutWorktree('apply'),
  lastApplied: async () => undefined,
  appliedDiff: withoutWorktree('apply'),
  checkDiscardable: withoutWorktree('discard'),
  planDiscard: withoutWorktree('discard'),
  discard: withoutWorktree('discard'),
  discardApproved: withoutWorktree('discard'),
};
