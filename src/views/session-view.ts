import { classOf } from '../driver/options-table.ts';
import type { DiskSession } from '../engine/ports.ts';
import { roundUsd } from '../engine/conversation/totals.ts';
import type { DiskSessionShown, SessionShown } from '../schema/listed-sessions.ts';
import type { SessionRecord } from '../schema/records.ts';
import type { SessionOptionName, SessionOptions } from '../schema/session-options.ts';
import { compactStatus } from './status.ts';

/**
 * A session with the options that contain no secrets; `sensitive` also shows those that reveal details of the machine.
 */
export function sessionView(session: SessionRecord, sensitive: boolean): SessionShown {
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
  live: SessionRecord | undefined,
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
  { options: { workspace: _asked, ...options } }: SessionRecord,
  sensitive: boolean,
): Omit<SessionOptions, 'workspace'> {
  const names = (Object.keys(options) as Exclude<SessionOptionName, 'workspace'>[]).filter((name) => {
    const { show } = classOf(name);
    return options[name] !== undefined && (show === 'always' || (sensitive && show === 'sensitive'));
  });
  return Object.fromEntries(names.map((name) => [name, options[name]]));
}
