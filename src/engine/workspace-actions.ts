import { DomainError } from '../errors/errors.ts';
import type { ApplyOptions, ApplyOutcome } from '../workspace/apply.ts';
import type { DiffPage, PageOptions } from '../workspace/diff.ts';
import type { DiscardOutcome } from '../workspace/discard.ts';
import type { ToolCall } from '../workspace/work-report.ts';
import type { DiffCursor, Workspace } from '../workspace/workspace.ts';
import type { ConnectedClient } from './approvals.ts';
import type { Directories } from './directories.ts';
import { busy, notFound } from './session-errors.ts';
import type { ListedWorktree, SessionWorktrees } from './session-worktrees.ts';
import type { Session } from './session.ts';

export interface WorkspaceActionsContext {
  readonly worktrees: SessionWorktrees;
  /** Whether the caller may decide alone, without asking a person. */
  decides(session: Session | undefined, by: ConnectedClient | undefined): boolean;
  readonly directories: Directories;
  findSession(id: string): Session | undefined;
}

interface Place {
  readonly session: Session | undefined;
  readonly workspace: Workspace;
  readonly calls: readonly ToolCall[];
}

interface WorkspaceAsk {
  readonly toolName: 'Apply' | 'Discard';
  readonly input: Record<string, unknown>;
  readonly by: ConnectedClient | undefined;
}

/** Operations on the work of a session. A worktree outlives its session: its work can be applied later too. */
export class WorkspaceActions {
  readonly #context: WorkspaceActionsContext;
  /** Pages after the first come from the same comparison. */
  readonly #cursors = new WeakMap<Workspace, DiffCursor>();

  constructor(context: WorkspaceActionsContext) {
    this.#context = context;
  }

  async diff(sessionId: string, page: PageOptions): Promise<DiffPage> {
    const { workspace, calls } = await this.#place(sessionId);
    const cursor = page.offset === 0 ? undefined : this.#cursors.get(workspace);
    const { cursor: next, ...shown } = await workspace.diff(page, calls, cursor);
    this.#cursors.set(workspace, next);
    return shown;
  }

  async apply(sessionId: string, options: ApplyOptions, by?: ConnectedClient): Promise<ApplyOutcome> {
    const ask = { toolName: 'Apply' as const, input: { mode: options.mode }, by };
    const outcome = await this.#decided(sessionId, ask, ({ workspace }) => workspace.apply(options));
    this.#log(sessionId, 'apply', outcome.outcome);
    return outcome;
  }

  async discard(
    sessionId: string,
    { force }: { readonly force: boolean },
    by?: ConnectedClient,
  ): Promise<DiscardOutcome> {
    const discard = async ({ session, workspace }: Place): Promise<DiscardOutcome> => {
      // Checked before the process ends: it may have background tasks.
      if (!force) await workspace.checkDiscardable();
      await session?.dispose();
      const outcome = await workspace.discard({ force });
      this.#context.worktrees.forget(sessionId);
      return outcome;
    };
    if (!force) return this.#atRest(sessionId, discard);
    const outcome = await this.#decided(sessionId, { toolName: 'Discard', input: { force }, by }, discard);
    this.#log(sessionId, 'discard', `kept ${outcome.keptBranches.join(', ') || 'no branch'}`);
    return outcome;
  }

  /** Those in directories that callers may use. */
  async list(): Promise<ListedWorktree[]> {
    const { worktrees, directories } = this.#context;
    return (await worktrees.list()).filter(({ repository }) => directories.isInside(repository));
  }

  async #atRest<T>(sessionId: string, work: (place: Place) => Promise<T>): Promise<T> {
    const place = await this.#place(sessionId);
    const { session } = place;
    if (!session) return work(place);
    return session.oneReplyAtATime(async () => {
      if (!session.atRest) throw busy(session);
      return work(place);
    });
  }

  async #place(sessionId: string): Promise<Place> {
    const { worktrees, directories } = this.#context;
    const session = this.#context.findSession(sessionId);
    if (session) return { session, workspace: await session.workspace(), calls: session.activity.log.all };
    const opened = await worktrees.find(sessionId);
    const origin = opened?.workspace.projectConfigRoot;
    if (!opened || origin === undefined || !directories.isInside(origin))
      throw notFound(sessionId, 'It is not known to this server, and it has no worktree.');
    return { session: undefined, workspace: opened.workspace, calls: [] };
  }

  /** If only a person may decide, they are asked first, and see what it is about. */
  async #decided<T>(
    sessionId: string,
    { toolName, input, by }: WorkspaceAsk,
    work: (place: Place) => Promise<T>,
  ): Promise<T> {
    if (this.#context.decides(this.#context.findSession(sessionId), by)) return this.#atRest(sessionId, work);
    const { session, workspace, calls } = await this.#place(sessionId);
    const { worktree } = workspace;
    // Impossible operations are refused without asking anyone.
    if (!worktree) return this.#atRest(sessionId, work);
    if (!session) throw noPersonToAsk(sessionId);
    if (!session.atRest) throw busy(session);
    const { filesChanged, insertions, deletions, files = [] } = await workspace.diff({ maxBytes: 1, offset: 0 }, calls);
    const { branch, base, path } = worktree;
    const lines = `+${String(insertions)} -${String(deletions)}`;
    const shown = files.slice(0, MAX_FILES_SHOWN).map((file) => `${file.status} ${file.path}`);
    const opening =
      toolName === 'Apply'
        ? `The caller wants to apply the work of a session (${String(filesChanged)} file(s), ${lines}) to ${base}.`
        : `The caller wants to remove a worktree with unmerged work (${String(filesChanged)} file(s), ${lines}). Its branch is kept.`;
    await session.askPerson(toolName, { ...input, branch, base, worktree: path, filesChanged, files: shown }, opening);
    return this.#atRest(sessionId, work);
  }

  /** The caller may not have waited for the person's answer. */
  #log(sessionId: string, kind: 'apply' | 'discard', outcome: string): void {
    const session = this.#context.findSession(sessionId);
    session?.log.append({ kind, outcome }, session.now);
  }
}

const MAX_FILES_SHOWN = 200;

function noPersonToAsk(sessionId: string): DomainError {
  return new DomainError(
    'PERMISSION_DENIED',
    `Only a person may decide this (CLAUDE_CODE_MCP_APPROVALS=human), and session ${sessionId} is not running here, so they cannot be asked: reply to it first.`,
  );
}
