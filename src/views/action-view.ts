import type { SessionReading } from '../engine/conversation/reading.ts';
import { oneLine, questionTexts, summarizeTool, textsIn } from '../engine/conversation/tool-summary.ts';
import { alwaysOffer, type AlwaysOffer, type LastingRule, type OfferedAsk } from '../engine/requests/always.ts';
import { shownRequest } from '../engine/requests/shown-request.ts';
import type { RequestRecord } from '../schema/events.ts';
import type { Action, PendingInput } from '../schema/results.ts';

/** How a request is shown: at what time, in full or not, and whether its fields may repeat each other. */
export interface RequestViewOptions {
  now: number;
  whole: boolean;
  /** Each thing once: the command, the path and the question stand in the input alone. */
  once: boolean;
}

/** An unanswered request, as a caller sees it. */
export function actionView(request: RequestRecord, options: RequestViewOptions): Action {
  const { ask, kind } = request;
  const { input, plan, fullChars } = shownRequest(request, options.whole);
  const { once } = options;
  return {
    type: kind,
    requestId: request.id,
    toolName: ask.toolName,
    input: once ? withoutPlan(input, plan) : input,
    ...(fullChars !== undefined && { inputTruncated: true, inputChars: fullChars }),
    summary: once ? briefSummary(request) : requestSummary(request),
    ...ownTexts(request, once),
    ...(plan !== undefined && { plan }),
    ...(kind === 'user_question' && !once && { questions: input['questions'] }),
    ...decisionAids(request, options),
    toolUseID: ask.toolUseId,
    ...(ask.agentId !== undefined && { agentID: ask.agentId }),
    ...(request.own && { asShown: true as const }),
    ...(ask.suggestions && !once && { suggestions: ask.suggestions }),
    ...(!once && { createdAt: new Date(request.createdAt).toISOString() }),
  };
}

/** The same for the explicit tools. The plan is shown wherever Claude Code put it, since someone has to judge it. */
export function pendingInputView(request: RequestRecord, options: RequestViewOptions): PendingInput {
  const { input, plan, fullChars } = shownRequest(request, options.whole);
  const { once } = options;
  return {
    inputId: request.id,
    type: request.kind,
    toolName: request.ask.toolName,
    toolInput: once ? withoutPlan(input, plan) : input,
    ...(fullChars !== undefined && { inputTruncated: true, inputChars: fullChars }),
    description: plan ?? (once ? briefSummary(request) : requestSummary(request)),
    ...decisionAids(request, options),
  };
}

type DecisionAids = Pick<Action, 'cwd' | 'said' | 'edit' | 'alwaysAllows' | 'expiresAt' | 'expiresInMs' | 'onExpiry'>;

function decisionAids(
  { ask, cwd, said, edit, expiresAt }: RequestRecord,
  { now, once }: RequestViewOptions,
): DecisionAids {
  const alwaysAllows = describeOffer(alwaysOffer(ask), once ? ask.input['command'] : undefined);
  return {
    ...(cwd !== undefined && { cwd }),
    ...(said !== undefined && { said }),
    ...(edit && { edit }),
    ...(alwaysAllows !== undefined && { alwaysAllows }),
    ...(expiresAt !== undefined && {
      ...(!once && { expiresAt: new Date(expiresAt).toISOString() }),
      expiresInMs: Math.max(0, expiresAt - now),
      onExpiry: 'deny' as const,
    }),
  };
}

/** The plan stands beside the input; an answer that sends this input back has not changed it. */
function withoutPlan(input: Record<string, unknown>, plan: string | undefined): Record<string, unknown> {
  if (plan === undefined || input['plan'] !== plan) return input;
  const { plan: _, ...rest } = input;
  return rest;
}

/** Claude Code often repeats the command, its description or the path here. */
function ownTexts({ ask, cwd }: RequestRecord, once: boolean): OwnTexts {
  const { title, description, decisionReason, blockedPath } = ask;
  const texts = textsIn(ask.input).filter((text) => text !== '');
  // A command mostly names a path in the session's directory relative to it, and the directory stands beside it.
  const isNamed = (text: string): boolean =>
    cwd !== undefined && texts.some((part) => part.split(/[\s'"]+/).some((word) => `${cwd}/${word}` === text));
  // It also cuts what it repeats.
  const repeats = (text: string): boolean =>
    texts.some((part) => text.includes(part) || part.includes(text.replace(/…$/, ''))) || isNamed(text);
  const shown = Object.entries({ title, description, decisionReason, blockedPath }).filter(
    ([name, text]) =>
      text !== undefined && !(once && repeats(text)) && !(name === 'description' && texts.includes(text)),
  );
  return Object.fromEntries(shown);
}

type OwnTexts = Partial<Pick<Action, 'title' | 'description' | 'decisionReason' | 'blockedPath'>>;

function briefSummary({ kind, ask, own }: RequestRecord): string {
  if (own) return own.opening;
  if (kind === 'user_question') return 'Claude asks a question';
  return kind === 'plan_review' ? PLAN_SUMMARY : `Claude asks to use ${ask.toolName}`;
}

const PLAN_SUMMARY = 'Claude asks to leave plan mode and start the work';

/** Whether the caller should wait for a person's answer. */
export function askedPerson(reading: SessionReading, { id }: RequestRecord): { askedPerson?: true } {
  return reading.isLeftToPerson(id) ? { askedPerson: true } : {};
}

export function requestSummary({ ask, kind }: Pick<RequestRecord, 'ask' | 'kind'>): string {
  if (kind === 'user_question') return questionTexts(ask.input).join(' | ') || 'Claude asks a question';
  if (kind === 'plan_review') return PLAN_SUMMARY;
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

/** `command`: where it stands beside this line, a rule for exactly that command need not repeat it. */
export function describeOffer(offer: AlwaysOffer, command?: unknown): string | undefined {
  const isExact = offer.kind === 'rules' && offer.rules.every((update) => update.rules.every(isFor(command)));
  if (isExact) return EXACT;
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

function isFor(command: unknown): (rule: LastingRule['rules'][number]) => boolean {
  return ({ ruleContent }) => ruleContent !== undefined && ruleContent === command;
}

function ruleNames({ rules }: LastingRule): string[] {
  return rules.map(({ toolName, ruleContent }) =>
    oneLine(ruleContent === undefined ? toolName : `${toolName}(${ruleContent})`, MAX_RULES_LENGTH),
  );
}
