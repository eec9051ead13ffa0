import { alwaysOffer } from '../engine/requests/always.ts';
import type { SessionReading } from '../engine/conversation/reading.ts';
import { shownRequest } from '../engine/requests/shown-request.ts';
import { textsIn } from '../engine/conversation/shortening.ts';
import { questionTexts, summarizeTool } from '../engine/conversation/tool-summary.ts';
import type { RequestRecord } from '../schema/events.ts';
import type { Action, PendingInput } from '../schema/results.ts';
import { describeOffer } from './lasting-rules.ts';

/** How a request is shown: at what time, and whether in full. */
export interface RequestViewOptions {
  now: number;
  whole: boolean;
}

/** An unanswered request, as a caller sees it. */
export function actionView(request: RequestRecord, options: RequestViewOptions): Action {
  const { ask, kind } = request;
  const { input, plan, fullChars } = shownRequest(request, options.whole);
  return {
    type: kind,
    requestId: request.id,
    toolName: ask.toolName,
    input,
    ...(fullChars !== undefined && { inputTruncated: true, inputChars: fullChars }),
    summary: requestSummary(request),
    ...(ask.title !== undefined && { title: ask.title }),
    ...ownDescription(request),
    ...(plan !== undefined && { plan }),
    ...(kind === 'user_question' && { questions: input['questions'] }),
    ...(ask.decisionReason !== undefined && { decisionReason: ask.decisionReason }),
    ...(ask.blockedPath !== undefined && { blockedPath: ask.blockedPath }),
    ...decisionAids(request, options.now),
    toolUseID: ask.toolUseId,
    ...(ask.agentId !== undefined && { agentID: ask.agentId }),
    ...(request.own && { asShown: true as const }),
    ...(ask.suggestions && { suggestions: ask.suggestions }),
    createdAt: new Date(request.createdAt).toISOString(),
  };
}

/** The same for the explicit tools. The plan is shown wherever Claude Code put it, since someone has to judge it. */
export function pendingInputView(request: RequestRecord, options: RequestViewOptions): PendingInput {
  const { input, plan, fullChars } = shownRequest(request, options.whole);
  return {
    inputId: request.id,
    type: request.kind,
    toolName: request.ask.toolName,
    toolInput: input,
    ...(fullChars !== undefined && { inputTruncated: true, inputChars: fullChars }),
    description: plan ?? requestSummary(request),
    ...decisionAids(request, options.now),
  };
}

type DecisionAids = Pick<Action, 'cwd' | 'said' | 'edit' | 'alwaysAllows' | 'expiresAt' | 'expiresInMs' | 'onExpiry'>;

function decisionAids({ ask, cwd, said, edit, expiresAt }: RequestRecord, now: number): DecisionAids {
  const alwaysAllows = describeOffer(alwaysOffer(ask));
  return {
    ...(cwd !== undefined && { cwd }),
    ...(said !== undefined && { said }),
    ...(edit && { edit }),
    ...(alwaysAllows !== undefined && { alwaysAllows }),
    ...(expiresAt !== undefined && {
      expiresAt: new Date(expiresAt).toISOString(),
      expiresInMs: Math.max(0, expiresAt - now),
      onExpiry: 'deny' as const,
    }),
  };
}

/** Claude Code often repeats the command or its description here. */
function ownDescription({ ask: { description, input } }: RequestRecord): Pick<Action, 'description'> {
  return description === undefined || textsIn(input).includes(description) ? {} : { description };
}

/** Whether a person has a form for it open: the caller may leave it to them. */
export function askedPerson(reading: SessionReading, { id }: RequestRecord): { askedPerson?: true } {
  return reading.isAskingPerson(id) ? { askedPerson: true } : {};
}

export function requestSummary({ ask, kind }: Pick<RequestRecord, 'ask' | 'kind'>): string {
  if (kind === 'user_question') return questionTexts(ask.input).join(' | ') || 'Claude asks a question';
  if (kind === 'plan_review') return 'Claude asks to leave plan mode and start the work';
  const what = summarizeTool(ask.toolName, ask.input);
  return what === '' ? ask.toolName : `${ask.toolName}: ${what}`;
}
