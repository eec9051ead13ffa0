import type { SessionRecord } from '../../schema/records.ts';
import type { PermissionDenial } from '../../schema/results.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { Activity, ToolUse } from '../conversation/activity.ts';
import { secretNamesOf } from './mobility.ts';
import { RULE_SETTINGS } from '../rules/rule-intersection.ts';
import type { Session } from './session.ts';

/** Silence of this length while Claude works is worth mentioning. */
export const QUIET_AFTER_MS = 30_000;

/** A live session as plain data. */
export function sessionRecord(session: Session): SessionRecord {
  const { owner, totals, cancellation, result, work, model, permissionMode, tools, activity, lastAction } = session;
  const options = withoutSecrets(session.options);
  const { lastToolUseId } = activity;
  return {
    id: session.id,
    owner,
    state: session.state,
    title: options.title ?? session.topic,
    createdAt: session.createdAt,
    lastActiveAt: session.lastActiveAt,
    options,
    workspace: workspaceRecord(session),
    ...(model !== undefined && { model }),
    ...(permissionMode !== undefined && { permissionMode }),
    ...(tools && { tools }),
    totals: { ...totals.kept, costKnown: totals.costKnown },
    activity: activityLine(session),
    ...(lastToolUseId !== undefined && { lastToolUseId }),
    quietMs: session.quietMs,
    backgroundTasks: session.backgroundTasks,
    ...(cancellation && { cancellation }),
    ...(result && { turn: result }),
    denials: result && session.atRest ? denialsOf(result.permissionDenials, activity) : [],
    ...(work && { work }),
    ...(lastAction && { lastAction }),
    lastMessageAt: session.lastMessageAt,
    continuity: continuityRecord(session),
  };
}

export function activityLine(session: Session): string {
  const { atRest, requests, totals, quietMs } = session;
  const { costUsd, results } = totals.call;
  const line = session.activity.line(results > 0 ? costUsd : undefined, !atRest);
  // A session that waits for an answer is expected to be silent.
  if (atRest || requests.length > 0 || quietMs < QUIET_AFTER_MS) return line;
  return `quiet for ${String(Math.round(quietMs / 1000))} s, ${line}`.slice(0, 200);
}

function continuityRecord(session: Session): SessionRecord['continuity'] {
  const { rules, missing } = session;
  return {
    ...session.continuity,
    rules: Object.fromEntries(RULE_SETTINGS.map((name) => [name, rules.settings[name]])),
    // Those not provided again since the last restart are still needed.
    secretNames: [...new Set([...secretNamesOf(session.options), ...missing.filter(isSecretName)])],
    environment: [...new Set([...rules.ownVariables, ...missing.filter((name) => !isSecretName(name))])],
    movable: session.movable,
  };
}

function workspaceRecord({ worktree }: Session): SessionRecord['workspace'] {
  if (!worktree?.worktree) return { type: 'directory' };
  const { path, branch, base } = worktree.worktree;
  return { type: 'worktree', path, branch, base };
}

/** Never stored: whoever continues the session after a restart must provide it again. */
function withoutSecrets(options: SessionOptions): SessionOptions {
  const { env: _, mcpServers: _servers, settings: _settings, ...rest } = options;
  const { agents, ...others } = rest;
  return secretNamesOf({ agents }).length > 0 ? others : rest;
}

/** The others are variables that a connection brought. */
function isSecretName(name: string): boolean {
  return name.startsWith('env.') || ['mcpServers', 'settings', 'agents'].includes(name);
}

/** What Claude Code counts as denied, and what else was. */
function denialsOf(reported: readonly unknown[], activity: Activity): PermissionDenial[] {
  const shown = reported.map((denial): PermissionDenial => {
    const { tool_name: name, tool_use_id: id } = denial as { tool_name?: unknown; tool_use_id?: unknown };
    const use = typeof id === 'string' ? activity.findToolUse(id) : undefined;
    return { toolName: String(name), ...(typeof id === 'string' && { toolUseID: id }), ...whoDenied(use) };
  });
  const ids = new Set(shown.map(({ toolUseID }) => toolUseID));
  const others = activity.callProblems.filter(({ id, status }) => status === 'denied' && !ids.has(id));
  return [...shown, ...others.map((use) => ({ toolName: use.toolName, toolUseID: use.id, ...whoDenied(use) }))];
}

function whoDenied(use: ToolUse | undefined): Pick<PermissionDenial, 'what' | 'by'> {
  if (!use) return {};
  return { what: use.summary, ...(use.deniedBy !== undefined && { by: use.deniedBy }) };
}
