import { describeDiscard, type AppliedWork } from '../engine/session/work-words.ts';
import { isAtRest } from '../engine/conversation/state.ts';
import { classOf } from '../driver/options-table.ts';
import { oneLine } from '../engine/conversation/tool-summary.ts';
import { roundUsd } from '../engine/conversation/totals.ts';
import type { DiskSession } from '../transcripts/disk-sessions.ts';
import type { ListedWorktree } from '../engine/session/session-worktrees.ts';
import type {
  AppliedShown,
  ComparedSession,
  DiskSessionShown,
  SessionShown,
  WorktreeShown,
} from '../schema/listed-sessions.ts';
import type { ShownRecord } from '../schema/records.ts';
import type { CheckAnswer, Work } from '../schema/results.ts';
import type { SessionOptionName, SessionOptions } from '../schema/session-options.ts';
import { compactStatus } from './status.ts';

/**
 * A session with the options that contain no secrets; `sensitive` also shows those that reveal details of the machine.
 */
export function sessionView(session: ShownRecord, sensitive: boolean): SessionShown {
  return {
    sessionId: session.id,
    status: compactStatus(session),
    createdAt: new Date(session.createdAt).toISOString(),
    lastActiveAt: new Date(session.lastActiveAt).toISOString(),
    totalTurns: session.totals.turns,
    totalCostUsd: roundUsd(session.totals.costUsd),
    ...(session.totals.costUnknown && { costUnknown: true }),
    ...shownOptions(session, sensitive),
    ...(session.model !== undefined && { model: session.model }),
    ...(session.permissionMode !== undefined && { permissionMode: session.permissionMode }),
    ...(session.backgroundTasks > 0 && { backgroundTasks: session.backgroundTasks }),
    ...(session.cancellation && {
      cancelledReason: session.cancellation.reason,
      cancelledSource: session.cancellation.source,
    }),
    ...(session.lastAction && { lastAction: session.lastAction }),
  };
}

/** `sensitive` shows where it was and what it was about. */
export function diskSessionView(
  disk: DiskSession,
  live: ShownRecord | undefined,
  sensitive: boolean,
): DiskSessionShown {
  return {
    sessionId: disk.sessionId,
    ...(live && { status: compactStatus(live) }),
    ...(disk.createdAt !== undefined && { createdAt: new Date(disk.createdAt).toISOString() }),
    lastActiveAt: new Date(disk.lastModified).toISOString(),
    ...(sensitive && { displayText: disk.displayText }),
    ...(sensitive && disk.projectDirectory !== undefined && { projectDirectory: disk.projectDirectory }),
  };
}

/** `workspace` is where it works, not what was requested. */
function shownOptions(
  { options: { workspace: _asked, ...options } }: ShownRecord,
  sensitive: boolean,
): Omit<SessionOptions, 'workspace'> {
  const names = (Object.keys(options) as Exclude<SessionOptionName, 'workspace'>[]).filter((name) => {
    const { show } = classOf(name);
    return options[name] !== undefined && (show === 'always' || (sensitive && show === 'sensitive'));
  });
  return Object.fromEntries(names.map((name) => [name, options[name]]));
}

/** What the response to a start says about the new worktree. */
export function startedWorkspace({ workspace }: ShownRecord): Pick<CheckAnswer, 'workspace'> {
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

const RULES_CHARS = 300;

/** One line on what a session actually runs under, for a caller that relied on defaults. */
export function effectiveLine({
  options,
  permissionMode,
  sandbox,
}: Pick<ShownRecord, 'options' | 'permissionMode' | 'sandbox'>): string {
  const { cwd, allowedTools = [], disallowedTools = [] } = options;
  return [
    `permissionMode ${permissionMode ?? 'default'}`,
    ...(cwd === undefined ? [] : [`cwd ${cwd}`]),
    ...(allowedTools.length === 0 ? [] : [`allowed ${oneLine(allowedTools.join(', '), RULES_CHARS)}`]),
    ...(disallowedTools.length === 0 ? [] : [`disallowed ${oneLine(disallowedTools.join(', '), RULES_CHARS)}`]),
    ...(sandbox === undefined ? [] : [oneLine(sandbox, RULES_CHARS)]),
  ].join('; ');
}

const MAX_LEFT_ALONE = 10;

const CLAIM_CHARS = 300;

/** One of the sessions of a comparison. The diff stands in one place, though the evidence may have a small one too. */
export function comparedSession(
  sessionId: string,
  record: ShownRecord | undefined,
  page: {
    readonly diff: string;
    readonly totalBytes?: number;
    readonly nextOffset?: number;
    readonly diffError?: string;
  },
): ComparedSession {
  const { diff, totalBytes, nextOffset, diffError } = page;
  const { diff: _, ...work }: Work & { diff?: unknown } = record?.work ?? {};
  const claim = record && isAtRest(record.state) ? record.turn?.text.trim().split('\n', 1)[0] : undefined;
  return {
    sessionId,
    ...(record && { status: compactStatus(record), ...startedWorkspace(record) }),
    ...(record?.model !== undefined && { model: record.model }),
    ...(claim !== undefined && { claim: oneLine(claim, CLAIM_CHARS) }),
    ...(record?.work && { work }),
    diff,
    ...(nextOffset !== undefined && { diffBytes: totalBytes, nextOffset }),
    ...(diffError !== undefined && { diffError }),
  };
}

/** `remove`: the call that removes what remains of the session. */
export function appliedView(
  outcome: Extract<AppliedWork, { outcome: 'applied' }>,
  remove: (sessionId: string) => string,
): AppliedShown {
  const { mode, branch, checkout, commit, detail, record, others } = outcome;
  return {
    mode,
    ...(detail && { result: detail.how }),
    ...(branch !== undefined && { branch }),
    ...(checkout !== undefined && { checkout }),
    ...(detail && { before: detail.before }),
    ...(commit !== undefined && { after: commit }),
    ...(detail?.committedNow && { committed: detail.work }),
    ...(detail && detail.leftAlone.length > 0 && { leftAlone: detail.leftAlone.slice(0, MAX_LEFT_ALONE) }),
    remains: {
      worktree: record.path,
      branch: record.branch.replace('refs/heads/', ''),
      remove: remove(record.sessionId),
    },
    ...othersView(others),
  };
}

export function othersView(others: AppliedWork['others']): Pick<AppliedShown, 'others'> {
  if (!others) return {};
  return {
    others: others.map((other) =>
      'left' in other
        ? { sessionId: other.sessionId, outcome: 'left' as const, message: other.left }
        : { sessionId: other.sessionId, outcome: 'discarded' as const, message: describeDiscard(other.discarded) },
    ),
  };
}
