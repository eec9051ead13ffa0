import type { SessionReading } from '../engine/conversation/reading.ts';
import { textsIn } from '../engine/conversation/shortening.ts';
import { questionTexts, summarizeTool, oneLine } from '../engine/conversation/tool-summary.ts';
import { alwaysOffer, type AlwaysOffer, type LastingRule, type OfferedAsk } from '../engine/requests/always.ts';
import { shownRequest } from '../engine/requests/shown-request.ts';
import type { RequestRecord } from '../schema/events.ts';
import type { Action, PendingInput } from '../schema/results.ts';

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

/** Lasting grants must be readable in full too: rules longer than this are not offered. */
const MAX_RULES_LENGTH = 2_000;

const EXACT = 'exactly this command (this session only)';

/** What a form offers as "always allow". */
export function offerInForm(ask: OfferedAsk): AlwaysOffer {
  const offer = alwaysOffer(ask);
  return (describeInForm(offer) ?? '').length < MAX_RULES_LENGTH ? offer : { kind: 'nothing' };
}

const PLACES: Record<LastingRule['destination'], string> = {
  userSettings: 'your settings for all projects',
  projectSettings: 'the shared settings of this project',
  localSettings: 'your own settings for this project',
  session: 'this session only',
  cliArg: 'this session only',
};

/** With the destinations that Claude Code suggests: a person may change their own settings. */
export function describeInForm(offer: AlwaysOffer): string | undefined {
  return describe(offer, (rules) =>
    rules.map((update) => `${ruleNames(update).join(', ')} (${PLACES[update.destination]})`).join('; '),
  );
}

export function describeOffer(offer: AlwaysOffer): string | undefined {
  return describe(offer, (rules) => `${rules.flatMap(ruleNames).join(', ')} (this session only)`);
}

function describe(offer: AlwaysOffer, rulesText: (rules: readonly LastingRule[]) => string): string | undefined {
  switch (offer.kind) {
    case 'rules':
      return rulesText(offer.rules);
    case 'exact':
      return EXACT;
    case 'nothing':
      return undefined;
  }
}

function ruleNames({ rules }: LastingRule): string[] {
  return rules.map(({ toolName, ruleContent }) =>
    oneLine(ruleContent === undefined ? toolName : `${toolName}(${ruleContent})`, MAX_RULES_LENGTH),
  );
}
