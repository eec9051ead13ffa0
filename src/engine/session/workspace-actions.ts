import { DomainError, messageOf } from '../../errors/errors.ts';
import type { CommandOf } from '../../schema/commands.ts';
import type { ActionOf } from '../../schema/own-action.ts';
import type { AppliedWork as AppliedRecord } from '../../schema/worktree-record.ts';
import type { ApplyOptions, ApplyOutcome } from '../../workspace/worktree/apply.ts';
import type { DiffPage, PageOptions } from '../../workspace/report/compare.ts';
import type {
  ApprovedDiscard,
  DiscardOptions,
  DiscardOutcome,
  PlannedDiscard,
} from '../../workspace/worktree/discard.ts';
import type { ToolCall } from '../../workspace/report/work-report.ts';
import type { DiffCursor, Workspace } from '../../workspace/workspace.ts';
import type { ConnectedClient } from '../requests/approvals.ts';
import type { Directories } from '../rules/directories.ts';
import type { Asked, OwnActions, Performed, Since } from '../requests/own-actions.ts';
import type { Proposal } from '../requests/requests.ts';
import { busy, notFound } from './session-errors.ts';
import type { ListedWorktree, SessionWorktrees } from './session-worktrees.ts';
import type { SessionTrail } from './session-trail.ts';
import type { Session } from './session.ts';
import { describeApply, describeDiscard, type AppliedWork, type OtherAttempt } from './work-words.ts';

export interface WorkspaceActionsContext {
  readonly worktrees: SessionWorktrees;
  /** Whether the caller may decide alone, without asking a person. */
  decides(session: Session | undefined, by: ConnectedClient | undefined): boolean;
  readonly actions: Pick<OwnActions, 'ask' | 'checkCanAsk'>;
  readonly directories: Directories;
  findSession(id: string): Session | undefined;
  branchDeleted: SessionTrail['branchDeleted'];
}

export type DiffOutcome = DiffPage & { readonly applied?: Omit<AppliedRecord, 'from' | 'to'> };

interface Place {
  readonly session: Session | undefined;
  readonly workspace: Workspace;
  readonly calls: readonly ToolCall[];
}

/** Operations on the work of a session. A worktree outlives its session: its work can be applied later too. */
export class WorkspaceActions {
  readonly #context: WorkspaceActionsContext;
  /** Pages after the first come from the same comparison. */
  readonly #cursors = new WeakMap<Workspace, DiffCursor>();

  constructor(context: WorkspaceActionsContext) {
    this.#context = context;
  }

  async diff(sessionId: string, { of, ...page }: PageOptions & Pick<CommandOf<'diff'>, 'of'>): Promise<DiffOutcome> {
    const { workspace, calls } = await this.#place(sessionId);
    const applied = of && (await workspace.lastApplied());
    const { from: _from, to: _to, ...told } = applied ?? {};
    const said = applied && { applied: told as Omit<AppliedRecord, 'from' | 'to'> };
    if (applied && of === 'applied') return { ...(await workspace.appliedDiff(applied, page)), ...said };
    const cursor = page.offset === 0 ? undefined : this.#cursors.get(workspace);
    const { cursor: next, ...shown } = await workspace.diff(page, calls, cursor);
    this.#cursors.set(workspace, next);
    return { ...shown, ...said };
  }

  /** `discardOthers`: what becomes of the other attempts of the same start is part of the outcome. */
  async apply(
    sessionId: string,
    { discardOthers = false, ...options }: ApplyOptions & { readonly discardOthers?: boolean | undefined },
    by?: ConnectedClient,
  ): Promise<AppliedWork | Asked> {
    const others = discardOthers ? await this.#otherAttempts(sessionId) : undefined;
    if (this.#mustAsk(sessionId, by))
      return this.#asked<AppliedWork>(sessionId, async ({ workspace }) => {
        const planned = await workspace.planApply(options, DIFF_PAGE);
        if (planned.outcome === 'planned') return this.#proposeApply(planned, workspace, others);
        return { ...planned, ...(others && { others: others.map((id) => ({ sessionId: id, left: NOTHING_ASKED })) }) };
      });
    const name = by?.principal.name;
    const outcome = await this.#atRest(sessionId, async ({ workspace }) =>
      this.#applied(sessionId, await workspace.apply({ ...options, by: name }), name),
    );
    if (!others) return outcome;
    return { ...outcome, others: await eachOf(others, (id) => this.#discardHere(id, { force: true })) };
  }

  async discard(
    sessionId: string,
    options: { readonly force: boolean; readonly deleteBranch?: boolean | undefined },
    by?: ConnectedClient,
  ): Promise<DiscardOutcome | Asked> {
    const { force, deleteBranch = false } = options;
    if (deleteBranch && !force)
      throw new DomainError('INVALID_ARGUMENT', 'deleteBranch is only valid with force: true.');
    if (force && this.#mustAsk(sessionId, by))
      return this.#asked<DiscardOutcome>(sessionId, async ({ workspace, calls }) => {
        // Refused where there is no worktree, without asking anyone.
        const planned = await workspace.planDiscard();
        return proposeDiscard(planned, workspace, await workspace.diff(DIFF_PAGE, calls), deleteBranch);
      });
    return this.#discardHere(sessionId, { force, deleteBranch });
  }

  #discardHere(sessionId: string, options: DiscardOptions): Promise<DiscardOutcome> {
    return this.#atRest(sessionId, async ({ session, workspace }) => {
      // Checked before the process ends: it may have background tasks.
      if (options.force !== true) await workspace.checkDiscardable();
      await session?.dispose();
      return this.#discarded(sessionId, await workspace.discard(options));
    });
  }

  /** The other attempts of the same start that still have a worktree. */
  async #otherAttempts(sessionId: string): Promise<string[]> {
    const attempts = this.#context.findSession(sessionId)?.attempts;
    if (!attempts)
      throw new DomainError(
        'INVALID_ARGUMENT',
        `Session ${sessionId} is not one of several attempts that this server knows; discard the others with sessionIds instead.`,
      );
    const others: string[] = [];
    for (const id of attempts) {
      const session = this.#context.findSession(id);
      const worktree = session ? session.worktree : await this.#context.worktrees.find(id);
      if (id !== sessionId && worktree) others.push(id);
    }
    return others;
  }

  /** Does what a person has allowed, unless it is no longer what they were shown. */
  async perform(
    session: Session,
    action: ActionOf<'apply' | 'discard'>,
    since: Since,
    by: string | undefined,
  ): Promise<Performed> {
    return session.oneReplyAtATime(() =>
      action.action === 'apply'
        ? this.#performApply(session, action, by)
        : this.#performDiscard(session, action, since),
    );
  }

  async #performApply(
    session: Session,
    { action: _, discardOthers, ...approved }: ActionOf<'apply'>,
    by: string | undefined,
  ): Promise<Performed> {
    const workspace = await session.work.workspace();
    const outcome = await workspace.applyApproved({ ...approved, by });
    if (outcome === 'moved') {
      const planned = await workspace.planApply(approved, DIFF_PAGE);
      if (planned.outcome === 'planned')
        return {
          again: await this.#proposeApply(
            planned,
            workspace,
            discardOthers?.map(({ sessionId }) => sessionId),
            `${planned.target} has moved since this was allowed.`,
          ),
        };
      return { outcome: 'nothing_to_apply', message: describeApply(planned) };
    }
    this.#applied(session.id, outcome, by);
    const others = discardOthers && (await this.#discardOthers(session.id, discardOthers));
    if (outcome.outcome === 'nothing-to-apply')
      return { outcome: 'nothing_to_apply', message: describeApply({ ...outcome, ...(others && { others }) }) };
    const { files = [] } = await workspace.diff({ maxBytes: 1, offset: 0 }, session.conversation.activity.log.all);
    return {
      outcome: 'applied',
      message: describeApply(
        { ...outcome, ...(others && { others }) },
        files.map((file) => file.path),
      ),
    };
  }

  /** Those that the person was shown; the rest is left and named. */
  async #discardOthers(
    applied: string,
    shown: NonNullable<ActionOf<'apply'>['discardOthers']>,
  ): Promise<OtherAttempt[]> {
    const rest = (await this.#otherAttempts(applied)).filter((id) => !shown.some(({ sessionId }) => sessionId === id));
    const done = await eachOf(shown, ({ sessionId, ...discard }) => this.#discardApproved(sessionId, discard));
    return [...done, ...rest.map((sessionId) => ({ sessionId, left: 'It was at work when this was asked.' }))];
  }

  /** One of the other attempts, exactly as the person saw it. */
  async #discardApproved(sessionId: string, approved: ApprovedDiscard): Promise<DiscardOutcome> {
    return this.#atRest(sessionId, async ({ session, workspace }) => {
      await session?.dispose();
      const outcome = await workspace.discardApproved(approved);
      if (outcome === 'moved')
        throw new DomainError('INVALID_ARGUMENT', 'The worktree has changed since this was allowed.');
      return this.#discarded(sessionId, outcome);
    });
  }

  /** With the other attempts that would be discarded; those that cannot be are named when it is done. */
  async #proposeApply(
    planned: Planned,
    workspace: Workspace,
    others: readonly string[] | undefined,
    why?: string,
  ): Promise<Proposal> {
    const proposal = proposeApply(planned, workspace, why);
    const { action } = proposal;
    if (!others || action.action !== 'apply') return proposal;
    const plans = await Promise.all(
      others.map(async (sessionId) => {
        const place = await this.#place(sessionId).catch(() => undefined);
        const isFree = place?.workspace.worktree && place.session?.atRest !== false;
        const discard = isFree ? await place.workspace.planDiscard() : undefined;
        return { sessionId, worktree: place?.workspace.worktree, discard };
      }),
    );
    const found = plans.flatMap(({ discard, ...one }) => (discard ? [{ ...one, discard }] : []));
    const left = others.length - found.length;
    return {
      ...proposal,
      opening: sentences(
        proposal.opening,
        `The worktrees of ${String(found.length)} other attempt(s) would then be removed; their branches are kept.`,
        left === 0 ? undefined : `${String(left)} that are at work would be left.`,
      ),
      input: {
        ...proposal.input,
        discardOthers: found.map(({ sessionId, worktree, discard: { approve, keptBranches } }) => ({
          sessionId,
          worktree: worktree?.path,
          commit: approve.commit,
          keptBranches,
        })),
      },
      action: {
        ...action,
        discardOthers: found.map(({ sessionId, discard }) => ({ sessionId, ...discard.approve })),
      },
    };
  }

  async #performDiscard(
    session: Session,
    { action: _, ...approved }: ActionOf<'discard'>,
    since: Since,
  ): Promise<Performed> {
    if (since === 'restart' && !session.worktree)
      return { outcome: 'discarded', message: 'The worktree is removed. Branches with unmerged work are kept.' };
    const workspace = await session.work.workspace();
    await session.dispose();
    const outcome = await workspace.discardApproved(approved);
    if (outcome !== 'moved')
      return { outcome: 'discarded', message: describeDiscard(this.#discarded(session.id, outcome)) };
    const planned = await workspace.planDiscard();
    const diff = await workspace.diff(DIFF_PAGE, session.conversation.activity.log.all);
    const isDeleted = approved.deleteBranch === true;
    const why = 'The worktree has changed since this was allowed.';
    return { again: proposeDiscard(planned, workspace, diff, isDeleted, why) };
  }

  #applied(sessionId: string, outcome: ApplyOutcome, by: string | undefined): ApplyOutcome {
    const session = this.#context.findSession(sessionId);
    const { commit, branch, checkout } = outcome.outcome === 'applied' ? outcome : {};
    const where = {
      ...(branch !== undefined && { branch }),
      ...(commit !== undefined && { commit }),
      ...(checkout !== undefined && { checkout }),
    };
    session?.conversation.log.append(
      { kind: 'apply', outcome: outcome.outcome, ...where, ...(by !== undefined && { by }) },
      session.services.clock.wallTime(),
    );
    return outcome;
  }

  #discarded(sessionId: string, outcome: DiscardOutcome): DiscardOutcome {
    this.#context.worktrees.forget(sessionId);
    const session = this.#context.findSession(sessionId);
    const { keptBranches, deletedBranch = '', retired } = outcome;
    if (retired) this.#context.branchDeleted({ id: sessionId, owner: session?.owner }, deletedBranch, retired);
    const deleted = retired ? [`deleted ${deletedBranch} at ${retired.commit}`] : [];
    const said = [...deleted, `kept ${keptBranches.join(', ') || 'no branch'}`].join(', ');
    session?.conversation.log.append({ kind: 'discard', outcome: said }, session.services.clock.wallTime());
    return outcome;
  }

  /** Those in directories that callers may use. */
  async list(sessionId?: string): Promise<ListedWorktree[]> {
    const { worktrees, directories } = this.#context;
    return (await worktrees.list(sessionId)).filter(({ repository }) => directories.isInside(repository));
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
    if (session)
      return { session, workspace: await session.work.workspace(), calls: session.conversation.activity.log.all };
    const opened = await worktrees.find(sessionId);
    const origin = opened?.workspace.projectConfigRoot;
    if (!opened || origin === undefined || !directories.isInside(origin))
      throw notFound(sessionId, 'It is not known to this server, and it has no worktree.');
    return { session: undefined, workspace: opened.workspace, calls: [] };
  }

  #mustAsk(sessionId: string, by: ConnectedClient | undefined): boolean {
    return !this.#context.decides(this.#context.findSession(sessionId), by);
  }

  /** Asks the person, unless it turns out that there is nothing to ask. */
  async #asked<T extends object>(
    sessionId: string,
    propose: (place: Place) => Promise<Proposal | T>,
  ): Promise<Asked | T> {
    return this.#atRest(sessionId, async (place) => {
      const { session, workspace } = place;
      if (!session && workspace.worktree) throw noPersonToAsk(sessionId);
      if (session) this.#context.actions.checkCanAsk(session);
      const proposed = await propose(place);
      if (!session || !('opening' in proposed)) return proposed as T;
      return this.#context.actions.ask(session, proposed);
    });
  }
}

/** Discarding by force takes a person, and there is nothing that they would be shown. */
const NOTHING_ASKED =
  'There is nothing to apply, so nobody was asked about the other attempts: discard them with force.';

/** What a form can show in full, with room for the rest of the request. */
const DIFF_PAGE: PageOptions = { maxBytes: 16_000, offset: 0 };
const MAX_FILES_SHOWN = 100;

type Planned = Exclude<Awaited<ReturnType<Workspace['planApply']>>, { outcome: 'nothing-to-apply' }>;

function proposeApply(
  { approve, target, message, change, diff }: Planned,
  { worktree }: Workspace,
  why?: string,
): Proposal {
  const { mode, commit } = approve;
  const size = `${String(diff.filesChanged)} file(s), +${String(diff.insertions)} -${String(diff.deletions)}`;
  return {
    opening: sentences(why, `The caller wants to apply the work of a session (${size}) to ${target}.`),
    input: {
      mode,
      branch: worktree?.branch,
      base: target,
      commit,
      message,
      worktree: worktree?.path,
      ...shownDiff(diff, `git diff ${change.from} ${change.to}`),
    },
    action: { action: 'apply', ...approve },
  };
}

function proposeDiscard(
  { approve, keptBranches }: PlannedDiscard,
  { worktree }: Workspace,
  diff: DiffPage,
  deleteBranch: boolean,
  why?: string,
): Proposal {
  const size = `${String(diff.filesChanged)} file(s), +${String(diff.insertions)} -${String(diff.deletions)}`;
  const branch = deleteBranch ? 'Its branch is deleted.' : 'Its branch is kept.';
  const kept = keptBranches.length === 0 ? 'All of it is on other branches.' : branch;
  return {
    opening: sentences(why, `The caller wants to remove a worktree with the work of a session (${size}). ${kept}`),
    input: {
      force: true,
      branch: worktree?.branch,
      base: worktree?.base,
      ...(approve.commit !== undefined && { commit: approve.commit }),
      ...(deleteBranch ? { deleteBranch } : { keptBranches }),
      ...(approve.uncommitted.length > 0 && { movedAside: approve.uncommitted }),
      worktree: worktree?.path,
      ...shownDiff(diff, `git diff ${worktree?.base ?? ''}...${approve.commit ?? ''}`),
    },
    action: { action: 'discard', ...approve, ...(deleteBranch && { deleteBranch }) },
  };
}

/** What became of each: one that cannot be discarded is left and says why. */
async function eachOf<T extends string | { readonly sessionId: string }>(
  attempts: readonly T[],
  discard: (attempt: T) => Promise<DiscardOutcome>,
): Promise<OtherAttempt[]> {
  const others: OtherAttempt[] = [];
  for (const attempt of attempts) {
    const sessionId = typeof attempt === 'string' ? attempt : attempt.sessionId;
    try {
      others.push({ sessionId, discarded: await discard(attempt) });
    } catch (error) {
      others.push({ sessionId, left: messageOf(error) });
    }
  }
  return others;
}

function sentences(...parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined).join(' ');
}

function shownDiff(page: DiffPage, command: string): Record<string, unknown> {
  const { filesChanged, files = [], diff, totalBytes, nextOffset } = page;
  const names = files.slice(0, MAX_FILES_SHOWN).map(({ status, path }) => `${status} ${path}`);
  const more = files.length - names.length;
  return {
    filesChanged,
    files: more > 0 ? [...names, `and ${String(more)} more`] : names,
    diff,
    ...(nextOffset !== undefined && {
      diffCut: `Only the first ${String(nextOffset)} of ${String(totalBytes)} bytes are shown; see all of it with: ${command}`,
    }),
  };
}

function noPersonToAsk(sessionId: string): DomainError {
  return new DomainError(
    'PERMISSION_DENIED',
    `Only a person may decide this (CLAUDE_CODE_MCP_APPROVALS=human), and session ${sessionId} is not running here, so they cannot be asked: reply to it first.`,
  );
}
