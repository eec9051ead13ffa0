import type { SessionRecord, ShownRecord } from '../../schema/records.ts';
import type { PermissionDenial } from '../../schema/results.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { Activity, ToolUse } from '../conversation/activity.ts';
import type { WholeReading } from '../conversation/reading.ts';
import { recordOf } from '../requests/requests.ts';
import { secretNamesOf } from './mobility.ts';
import type { Session } from './session.ts';

/** Silence of this length while Claude works is worth mentioning. */
export const QUIET_AFTER_MS = 30_000;

/** A live session as plain data, with what is needed to continue it in another process. */
export function sessionRecord(session: Session): SessionRecord {
  return { ...shownRecord(session), continuity: continuityRecord(session) };
}

/** What readers get of it. Made for every poll: fields are assigned, since spreading each costs more than all of them. */
function shownRecord(session: Session): ShownRecord {
  const { conversation, atRest } = session;
  const { times, totals, setup, activity, cancellation, result, own } = conversation;
  const { model, permissionMode, tools } = setup;
  const { lastToolUseId, problems } = activity;
  const options = withoutSecrets(setup.options);
  const work = session.work.short(problems);
  const queued = conversation.outbox.undelivered.map(({ id }) => id);
  const record: ShownRecord = {
    id: session.id,
    owner: session.owner,
    state: session.state,
    title: options.title ?? conversation.topic,
    createdAt: times.createdAt,
    lastActiveAt: times.lastActiveAt,
    options,
    workspace: workspaceRecord(session),
    ...(session.attempts && { attempts: [...session.attempts] }),
    ...(session.sandbox !== undefined && { sandbox: session.sandbox }),
    totals: totals.record,
    activity: activityLine(session),
    quietMs: times.quietMs,
    backgroundTasks: conversation.backgroundTasks,
    denials: result && atRest ? denialsOf(result.permissionDenials, activity) : [],
    lastMessageAt: conversation.lastMessageAt,
  };
  if (model !== undefined) record.model = model;
  if (permissionMode !== undefined) record.permissionMode = permissionMode;
  if (tools) record.tools = tools;
  if (times.archivedAt !== undefined) record.archivedAt = times.archivedAt;
  if (lastToolUseId !== undefined) record.lastToolUseId = lastToolUseId;
  if (cancellation) record.cancellation = cancellation;
  if (result) record.turn = result;
  if (work) record.work = work;
  if (queued.length > 0) record.queued = queued;
  if (own.last) record.lastAction = own.last;
  return record;
}

/** What a reader gets of a live session. */
export function readingOf(session: Session): WholeReading {
  const { conversation, services } = session;
  const { activity } = conversation;
  return {
    record: shownRecord(session),
    now: services.clock.wallTime(),
    log: conversation.log,
    requests: session.requests.map(recordOf),
    unfinishedText: conversation.unfinishedText,
    toolUses: (since) => (since === 'all' ? activity.toolUses : activity.latestToolUses),
    findToolUse: (id) => activity.findToolUse(id),
    fullWork: () => session.work.full(activity.problems),
  };
}

/** One line on what it is doing. */
export function activityLine({ atRest, conversation, requests: open }: Session): string {
  const { requests, totals, times, activity } = conversation;
  const { costUsd, results } = totals.call;
  const { quietMs } = times;
  const own = open.find((request) => request.own)?.ask.toolName;
  const line = activity.line(results > 0 ? costUsd : undefined, !atRest, own);
  // A session that waits for an answer is expected to be silent.
  if (atRest || requests.size > 0 || quietMs < QUIET_AFTER_MS) return line;
  return `quiet for ${String(Math.round(quietMs / 1000))} s, ${line}`.slice(0, 200);
}

/** What is needed to continue it in another process. */
function continuityRecord(session: Session): SessionRecord['continuity'] {
  const { conversation, launches, mobility, rules, missing } = session;
  const { ownVariables } = rules;
  const secretNames = secretNamesOf(conversation.setup.options);
  return {
    reporting: session.reporting ? conversation.state : undefined,
    position: session.process.live?.position,
    permissionTimeoutMs: conversation.permissionTimeoutMs,
    startTimeoutMs: launches.initTimeoutMs,
    streamsText: launches.streamsText,
    hasAnswered: launches.hasAnswered,
    origin: launches.origin,
    arrivedAt: launches.arrivedAt,
    handover: [...conversation.decidedAway.lines],
    actionUnderWay: conversation.own.underWay,
    rules: rules.kept,
    // Those not provided again since the last restart are still needed.
    secretNames: missing.length === 0 ? secretNames : union(secretNames, missing.filter(isSecretName)),
    environment: missing.length === 0 ? ownVariables : union(ownVariables, missing.filter(isVariable)),
    movable: mobility.movable,
  };
}

function union(names: readonly string[], others: readonly string[]): string[] {
  return [...new Set([...names, ...others])];
}

function workspaceRecord({ worktree }: Session): SessionRecord['workspace'] {
  if (!worktree?.worktree) return { type: 'directory' };
  const { path, branch, base } = worktree.worktree;
  const { projectConfigRoot: origin } = worktree;
  return { type: 'worktree', path, branch, base, ...(origin !== undefined && { origin }) };
}

/** Never stored: whoever continues the session after a restart must provide it again. */
function withoutSecrets(options: SessionOptions): SessionOptions {
  if (secretNamesOf(options).length === 0) return options;
  const { env: _, mcpServers: _servers, settings: _settings, ...rest } = options;
  const { agents, ...others } = rest;
  return secretNamesOf({ agents }).length > 0 ? others : rest;
}

/** The others are variables that a connection brought. */
function isSecretName(name: string): boolean {
  return name.startsWith('env.') || ['mcpServers', 'settings', 'agents'].includes(name);
}

function isVariable(name: string): boolean {
  return !isSecretName(name);
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

function whoDenied(use: ToolUse | undefined): Pick<PermissionDenial, 'what' | 'by' | 'rule'> {
  if (!use) return {};
  // Claude Code does not report which rule kept a file tool from a path.
  const { summary, refusal, deniedBy = refusal?.by } = use;
  const rule = use.rule ?? (deniedBy === 'rule' && refusal?.by === 'rule' ? refusal.rule : undefined);
  return { what: summary, ...(deniedBy !== undefined && { by: deniedBy }), ...(rule && { rule }) };
}
