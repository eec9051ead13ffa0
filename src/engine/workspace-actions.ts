import { DomainError } from '../errors/errors.ts';
import type { ApplyOptions, ApplyOutcome } from '../workspace/apply.ts';
import type { DiffPage, PageOptions } from '../workspace/diff.ts';
import type { DiscardOutcome } from '../workspace/discard.ts';
import type { ToolCall } from '../workspace/work-report.ts';
import type { DiffCursor, Workspace } from '../workspace/workspace.ts';
import type { Approvals } from './approvals.ts';
import type { Directories } from './directories.ts';
import { busy, notFound } from './session-errors.ts';
import type { ListedWorktree, SessionWorktrees } from './session-worktrees.ts';
import type { Session } from './session.ts';

export interface WorkspaceActionsContext {
  readonly worktrees: SessionWorktrees;
  readonly approvals: Approvals;
  readonly directories: Directories;
  findSession(id: string): Session | undefined;
}

interface Place {
  readonly session: Session | undefined;
  readonly workspace: Workspace;
  readonly calls: readonly ToolCall[];
}

/** What can be done with the work of a session. A worktree outlives its session: its work can be taken later too. */
export class WorkspaceActions {
  readonly #context: WorkspaceActionsContext;
  /** Pages after the first are of the same comparison. */
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

  async apply(sessionId: string, options: ApplyOptions): Promise<ApplyOutcome> {
    this.#checkMayDecide('apply');
    return this.#atRest(sessionId, ({ workspace }) => workspace.apply(options));
  }

  async discard(sessionId: string, { force }: { readonly force: boolean }): Promise<DiscardOutcome> {
    if (force) this.#checkMayDecide('discard with force');
    return this.#atRest(sessionId, async ({ session, workspace }) => {
      // Refused or not, is known before the process goes: it may have tasks in the background.
      if (!force) await workspace.checkDiscardable();
      await session?.dispose();
      const outcome = await workspace.discard({ force });
      this.#context.worktrees.forget(sessionId);
      return outcome;
    });
  }

  /** Those of directories that callers may use. */
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
      throw notFound(sessionId, 'It is not known to this server, and no worktree was made for it.');
    return { session: undefined, workspace: opened.workspace, calls: [] };
  }

  #checkMayDecide(what: string): void {
    if (this.#context.approvals.callerDecides) return;
    throw new DomainError(
      'PERMISSION_DENIED',
      `${what} changes the person’s own branches, and here only a person may decide that (CLAUDE_CODE_MCP_APPROVALS=human): ask them to merge the branch that the session’s workspace names.`,
    );
  }
}
