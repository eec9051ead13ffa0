import type { Settings } from '../../config/load-settings.ts';
import { classOf } from '../../driver/options-table.ts';
import { originalMessage } from '../../driver/original.ts';
import { imagesIn } from '../../driver/translate.ts';
import { alwaysOffer } from '../../engine/requests/always.ts';
import { roundUsd } from '../../engine/conversation/totals.ts';
import { questionTexts, summarizeTool } from '../../engine/conversation/tool-summary.ts';
import { describeOffer } from '../../views/action-view.ts';
import { resultView } from '../../views/result-view.ts';
import { COMPACT_STATUS } from '../../views/status.ts';
import type { PermissionUpdate } from '../../driver/permission-ask.ts';
import type { ApiRequest, ApiSession, ApiSessionDetail, RequestOutcomeView } from '../../schema/api.ts';
import { IMAGE_TYPES, type ApiEvent, type ImagesAnswer } from '../../schema/api-events.ts';
import type { ApiToken } from '../../schema/api-admin.ts';
import { isObject } from '../../schema/json.ts';
import type { LastAction } from '../../schema/own-action.ts';
import { sessionOptions, type PermissionMode, type SessionOptionName } from '../../schema/session-options.ts';
import type { StoredEvent, StoredMessage, StoredRequest, StoredSession, StoredToken } from '../../schema/store.ts';
import { answersAsPerson, mayAnswer, type Principal } from '../../engine/rules/access.ts';
import { suggestRule } from '../../engine/rules/standing/suggest.ts';
import { ruleFields } from '../../schema/standing-rules.ts';
import type { EventBody, Original, RequestRecord } from '../../schema/events.ts';
import { messageOfRow, readableRecord } from '../../fleet/session-codec.ts';
import { controlsOf } from './rights.ts';

/** Who a row is shown to, and what is needed besides the row. */
export interface ViewContext {
  readonly principal: Principal;
  readonly approvals: Settings['approvals'];
  /** Whether the operator allows showing options that reveal details of the machine. */
  readonly showsDetails: boolean;
  /** Display name of a principal. */
  nameOf(principalId: string): Promise<string>;
}

interface ShownState {
  owner?: { name: string };
  activity?: string;
  model?: string;
  permissionMode?: PermissionMode;
  backgroundTasks?: number;
  queued?: string[];
  cancellation?: { reason: string; source: string };
  lastAction?: LastAction;
  continuity?: { origin?: { kind: string; of?: string; through?: number } };
  attempts?: string[];
}

interface ShownTotals {
  turns?: number;
  costUsd?: number;
  costUnknown?: true;
  spending?: true;
}

export async function sessionView(row: StoredSession, view: ViewContext): Promise<ApiSession> {
  const {
    activity,
    model,
    permissionMode,
    backgroundTasks = 0,
    queued,
    cancellation,
    lastAction,
    attempts,
  } = row.state as ShownState;
  const { turns = 0, costUsd = 0, costUnknown, spending } = row.totals as ShownTotals;
  return {
    sessionId: row.id,
    status: COMPACT_STATUS[row.state.tag],
    state: row.state.tag,
    ...texts({ title: row.title, activity, model }),
    cwd: row.cwd,
    owner: await ownerOf(row, view),
    createdAt: iso(row.createdAt),
    lastActiveAt: iso(row.lastActiveAt),
    ...(row.archivedAt !== undefined && { archivedAt: iso(row.archivedAt) }),
    totalTurns: turns,
    totalCostUsd: roundUsd(costUsd),
    ...(costUnknown && { costUnknown }),
    ...(spending && !costUnknown && { costPending: true as const }),
    ...forkOf(row),
    ...(permissionMode && { permissionMode }),
    ...(backgroundTasks > 0 && { backgroundTasks }),
    ...(queued && { queuedIds: queued }),
    workspace: workspaceView(row),
    ...(attempts && { attempts }),
    hub: row.runsOn.hub,
    ...(cancellation && { cancelledReason: cancellation.reason, cancelledSource: cancellation.source }),
    ...(lastAction && { lastAction }),
    may: controlsOf(view.principal, row),
  };
}

function workspaceView({ workspace }: StoredSession): NonNullable<ApiSession['workspace']> {
  const { type, path, branch, base, origin, state } = workspace as Record<string, unknown>;
  return { type: String(type), ...texts({ path, branch, base, origin, state }) };
}

function forkOf({ state }: StoredSession): Pick<ApiSession, 'forkOf'> {
  const { origin } = (state as ShownState).continuity ?? {};
  if (origin?.kind !== 'fork' || origin.of === undefined) return {};
  return { forkOf: { sessionId: origin.of, ...(origin.through !== undefined && { through: origin.through }) } };
}

async function ownerOf({ principal: id, state }: StoredSession, view: ViewContext): Promise<ApiSession['owner']> {
  return { id, name: (state as ShownState).owner?.name ?? (await view.nameOf(id)) };
}

export interface SessionParts {
  readonly requests: readonly StoredRequest[];
  readonly messages: readonly StoredMessage[];
  readonly lastEventId: number;
}

export async function sessionDetail(
  row: StoredSession,
  { requests, messages, lastEventId }: SessionParts,
  view: ViewContext,
): Promise<ApiSessionDetail> {
  const record = readableRecord(row);
  const options = {
    includeUsage: true,
    includeModelUsage: false,
    includeStructuredOutput: true,
    includeWork: 'short',
    offset: 0,
    maxChars: Infinity,
  } as const;
  const shown = record && resultView(record, options);
  return {
    ...(await sessionView(row, view)),
    options: shownOptions(row.options, view),
    needs: row.secretNames,
    ...(shown && { result: shown.result }),
    requests: await Promise.all(requests.map((request) => requestView(request, row, view))),
    queued: messages.flatMap(queuedView),
    lastEventId,
  };
}

function shownOptions(options: StoredSession['options'], { showsDetails }: ViewContext): StoredSession['options'] {
  const isShown = (name: string): boolean =>
    Object.hasOwn(sessionOptions.shape, name) && classOf(name as SessionOptionName).show === 'always';
  return showsDetails ? options : Object.fromEntries(Object.entries(options).filter(([name]) => isShown(name)));
}

interface ShownAsk {
  toolName?: string;
  input?: Record<string, unknown>;
  suggestions?: PermissionUpdate[];
  onceOnly?: boolean;
  [name: string]: unknown;
}

export async function requestView(row: StoredRequest, session: StoredSession, view: ViewContext): Promise<ApiRequest> {
  const ask = row.ask as ShownAsk;
  const { toolName = '', input = {}, suggestions, onceOnly = false } = ask;
  const alwaysAllows = describeOffer(alwaysOffer({ toolName, input, suggestions, onceOnly }));
  const { expiresAt, outcome } = row;
  return {
    requestId: row.id,
    sessionId: row.sessionId,
    type: row.kind,
    status: outcome ? 'settled' : 'open',
    toolName,
    input,
    summary: summaryOf(row.kind, toolName, input),
    ...texts({
      title: ask['title'],
      description: ask['description'],
      plan: ask['plan'],
      decisionReason: ask['decisionReason'],
      blockedPath: ask['blockedPath'],
      toolUseID: ask['toolUseId'],
      agentID: ask['agentId'],
      cwd: ask['cwd'],
      said: ask['said'],
      agent: ask['agent'],
    }),
    ...(row.kind === 'user_question' && { questions: input['questions'] }),
    ...(ask['own'] !== undefined && { asShown: true as const }),
    ...(suggestions && { suggestions }),
    ...(alwaysAllows !== undefined && { alwaysAllows }),
    ...(ask['edit'] !== undefined && { edit: ask['edit'] as NonNullable<ApiRequest['edit']> }),
    createdAt: iso(row.createdAt),
    ...(expiresAt !== undefined && { expiresAt: iso(expiresAt), onExpiry: 'deny' as const }),
    session: {
      ...texts({ title: session.title }),
      cwd: session.cwd,
      workspace: workspaceView(session),
      owner: await ownerOf(session, view),
    },
    ...(outcome && { outcome: await outcomeView(outcome, view) }),
    mayAnswer: !outcome && mayAnswer(view.principal, session.principal, view.approvals),
    ...(!outcome && ruleFor(row, view.principal)),
  };
}

/** For people who may decide in advance. */
function ruleFor({ kind, ask }: StoredRequest, principal: Principal): Pick<ApiRequest, 'suggestedRule' | 'noRule'> {
  if (kind !== 'permission' || !answersAsPerson(principal)) return {};
  const asked = ask as RequestRecord['ask'] & RequestRecord;
  const suggestion = suggestRule(asked, asked);
  if ('problem' in suggestion) return { noRule: suggestion.problem };
  return ruleFields.safeParse(suggestion.rule).success
    ? { suggestedRule: suggestion.rule }
    : { noRule: 'No rule can say what this call does: it contains line breaks or invisible characters.' };
}

export async function outcomeView(
  outcome: NonNullable<StoredRequest['outcome']>,
  { nameOf }: Pick<ViewContext, 'nameOf'>,
): Promise<RequestOutcomeView> {
  const { decision, by, source, at, given, inputChanged, message } = outcome;
  const { updatedInput } = isObject(given) ? given : {};
  const ran = ranInput(outcome);
  const { answers } = isObject(updatedInput) ? updatedInput : {};
  return {
    decision,
    by: await nameOf(by),
    source,
    at: iso(at),
    ...texts({ message }),
    ...(inputChanged === true && { inputChanged }),
    ...(ran && { ran }),
    ...(inputChanged !== true && isObject(answers) && { answers }),
  };
}

/** As text in JSON: a browser that opens the address gets no picture, and nothing else that it would act on. */
export function imagesView({ data }: StoredEvent): ImagesAnswer {
  const { body, original } = data as { body: EventBody; original?: Original };
  const images = original ? imagesIn(originalMessage(original, body)) : [];
  return {
    images: images.flatMap(({ toolUseId, mediaType: type, data: base64 }) => {
      const mediaType = IMAGE_TYPES.find((known) => known === type);
      return mediaType ? [{ toolUseID: toolUseId, mediaType, data: base64 }] : [];
    }),
  };
}

/** Without the Claude Code message it was derived from. */
export function eventView({ id, type, at, data }: StoredEvent): ApiEvent {
  const { body } = data as { body: ApiEvent['data'] };
  return { id, type: type as ApiEvent['type'], timestamp: iso(at), data: body };
}

export function tokenView(row: Omit<StoredToken, 'hash'>, now: number, used?: number, current = false): ApiToken {
  const { id, kind, name, role, attended, device, createdAt, expiresAt, revokedAt } = row;
  const expired = expiresAt !== undefined && expiresAt <= now;
  return {
    ...{ id, kind, name, role, attended },
    ...(device !== undefined && { device }),
    createdAt: iso(createdAt),
    ...(used !== undefined && { lastUsedAt: iso(used) }),
    ...(current && { current }),
    ...(expiresAt !== undefined && { expiresAt: iso(expiresAt) }),
    ...(revokedAt !== undefined && { revokedAt: iso(revokedAt) }),
    status: revokedAt !== undefined ? 'revoked' : expired ? 'expired' : 'active',
  };
}

export function iso(at: number): string {
  return new Date(at).toISOString();
}

function summaryOf(kind: StoredRequest['kind'], toolName: string, input: Record<string, unknown>): string {
  if (kind === 'user_question') return questionTexts(input).join(' | ') || 'Claude asks a question';
  if (kind === 'plan_review') return 'Claude asks to leave plan mode and start the work';
  const what = summarizeTool(toolName, input);
  return what === '' ? toolName : `${toolName}: ${what}`;
}

/** What a request was about, without the name of its tool. `as`: what was asked, or what was decided. */
export function requestTarget({ kind, ask, outcome }: StoredRequest, as: 'asked' | 'decided'): string {
  const { toolName = '', input = {} } = ask as ShownAsk;
  if (kind === 'user_question') return questionTexts(input).join(' | ');
  const asked = summarizeTool(toolName, input);
  const ran = as === 'decided' && outcome ? ranInput(outcome) : undefined;
  return ran ? `${asked}, changed to: ${summarizeTool(toolName, ran)}` : asked;
}

/** What ran instead of what was requested. */
function ranInput({ inputChanged, given }: NonNullable<StoredRequest['outcome']>): Record<string, unknown> | undefined {
  const { updatedInput } = isObject(given) ? given : {};
  return inputChanged === true && isObject(updatedInput) ? updatedInput : undefined;
}

/** What a person or a caller wrote: the hub's own words are left out, and so is a message of nothing else. */
function queuedView(row: StoredMessage): ApiSessionDetail['queued'] {
  const { id, text, preamble = 0 } = messageOfRow(row);
  const said = text.slice(preamble).trimStart();
  return said === '' ? [] : [{ id, at: iso(row.at), text: said }];
}

/** The values that are strings. */
function texts<Name extends string>(values: Readonly<Record<Name, unknown>>): Partial<Record<Name, string>> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => typeof value === 'string')) as Partial<
    Record<Name, string>
  >;
}
