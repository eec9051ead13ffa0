import { secretNamesOf } from '../engine/mobility.ts';
import { RULE_SETTINGS } from '../engine/rule-intersection.ts';
import type { OpenRequest, Outcome } from '../engine/requests.ts';
import type { Session } from '../engine/session.ts';
import { ranInstead } from '../engine/shown-request.ts';
import { activityLine } from '../mcp/views/activity-line.ts';
import { resultView } from '../mcp/views/result-view.ts';
import type { StateRecord, TotalsRecord } from '../schema/records.ts';
import type { SessionOptions } from '../schema/session-options.ts';
import type { HubRef, RequestOutcome, StoredRequest, StoredSession } from '../schema/store.ts';

/** A session in the form in which it is stored. */
export function sessionRow(session: Session, runsOn: HubRef): StoredSession {
  const options = withoutSecrets(session.options);
  const { topic, totals } = session;
  const title = options.title ?? topic;
  const costs: TotalsRecord = totals.kept;
  return {
    id: session.id,
    principal: session.owner.id,
    ...(title !== '' && { title: withoutNul(title) }),
    cwd: withoutNul(options.cwd ?? ''),
    options: asJson(options),
    // Those not provided again since the last restart are still needed.
    secretNames: [...new Set([...secretNamesOf(session.options), ...session.missing.filter(isSecretName)])],
    workspace: workspaceRow(session),
    totals: asJson(costs),
    state: asJson(stateRow(session)) as StoredSession['state'],
    createdAt: Math.trunc(session.createdAt),
    lastActiveAt: Math.trunc(session.lastActiveAt),
    runsOn,
    ...(session.movable && { movable: true }),
  };
}

function stateRow(session: Session): StateRecord {
  const { id: _, ...owner } = session.owner;
  const { model, permissionMode, backgroundTasks, cancellation, work, tools } = session;
  const result = resultView(session, {
    includeUsage: true,
    includeModelUsage: false,
    includeStructuredOutput: true,
    includeWork: 'short',
    offset: 0,
    maxChars: Infinity,
  })?.result;
  return {
    tag: session.state,
    owner,
    activity: activityLine(session),
    ...(model !== undefined && { model }),
    ...(permissionMode !== undefined && { permissionMode }),
    ...(backgroundTasks > 0 && { backgroundTasks }),
    ...(cancellation && { cancellation }),
    ...(result && { result }),
    ...(session.result && { turn: session.result }),
    ...(work && { work }),
    ...(tools && { tools }),
    lastMessageAt: session.lastMessageAt,
    ...session.continuity,
    rules: Object.fromEntries(RULE_SETTINGS.map((name) => [name, session.rules.settings[name]])),
    environment: [
      ...new Set([...session.rules.ownVariables, ...session.missing.filter((name) => !isSecretName(name))]),
    ],
  };
}

function workspaceRow({ worktree }: Session): StoredSession['workspace'] {
  if (!worktree?.worktree) return { type: 'directory' };
  const { path, branch, base } = worktree.worktree;
  return { type: 'worktree', path, branch, base };
}

/** Never stored: whoever continues the session after a restart must provide it again. */
function withoutSecrets({
  env: _,
  mcpServers: _servers,
  settings: _settings,
  ...rest
}: SessionOptions): SessionOptions {
  const { agents, ...others } = rest;
  return secretNamesOf({ agents }).length > 0 ? others : rest;
}

/** The others are variables that a connection brought. */
function isSecretName(name: string): boolean {
  return name.startsWith('env.') || ['mcpServers', 'settings', 'agents'].includes(name);
}

/** A request with everything needed to show and answer it, whichever process asked. */
export function requestRow(sessionId: string, request: OpenRequest): Omit<StoredRequest, 'outcome'> {
  const { withdrawn: _, ...ask } = request.ask;
  const { plan, said, cwd, edit, target, own } = request;
  return {
    id: request.id,
    sessionId,
    kind: request.kind,
    ask: asJson({ ...ask, plan, said, cwd, edit, target, own }),
    createdAt: Math.trunc(request.createdAt),
    ...(request.expiresAt !== undefined && { expiresAt: Math.trunc(request.expiresAt) }),
  };
}

export function outcomeRow(request: OpenRequest, { decision, source, by }: Outcome, at: number): RequestOutcome {
  return {
    decision: decision.behavior,
    by: by ?? source,
    source,
    at: Math.trunc(at),
    ...(decision.behavior === 'deny' && { message: decision.message }),
    ...(ranInstead(request, decision) && { inputChanged: true }),
  };
}

/** Values omitted in JSON are omitted here too. */
function asJson(value: object): Record<string, unknown> {
  return JSON.parse(JSON.stringify(value)) as Record<string, unknown>;
}

/** Postgres has no NUL in text. */
function withoutNul(text: string): string {
  return text.replaceAll('\0', '');
}
