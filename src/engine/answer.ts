import { isDeepStrictEqual } from 'node:util';
import type { Decision, PermissionAsk, PermissionUpdate } from '../driver/permission-ask.ts';
import { DomainError } from '../errors/errors.ts';
import type { OpenRequest } from './requests.ts';
import { changedInput } from './shown-request.ts';
import { questionTexts } from './tool-summary.ts';

/** One answer to one question: a label, free text, or several labels. */
export type QuestionAnswer = string | string[];

export interface Answer {
  decision: 'allow' | 'deny';
  message?: string | undefined;
  interrupt?: boolean | undefined;
  updatedInput?: Record<string, unknown> | undefined;
  updatedPermissions?: PermissionUpdate[] | undefined;
  /** Also allow, in this session, what Claude Code suggests allowing from now on. */
  always?: boolean | undefined;
  answers?: Record<string, QuestionAnswer> | QuestionAnswer[] | undefined;
}

export type LastingRule = Extract<PermissionUpdate, { type: 'addRules' }>;

/**
 * What "always allow" grants: the rules Claude Code suggests that allow, and nothing else. A rule can be named in one
 * line. The suggestions that come along with it (`setMode acceptEdits` with a mere `touch`, `addDirectories`)
 * would open far more than what was asked about, the latter also past the operator's allowed directories.
 */
export function suggestedRules({
  suggestions,
  onceOnly,
}: Pick<PermissionAsk, 'suggestions' | 'onceOnly'>): LastingRule[] {
  if (onceOnly) return [];
  return (suggestions ?? []).filter(
    (update): update is LastingRule =>
      update.type === 'addRules' && update.behavior === 'allow' && update.rules.length > 0,
  );
}

/** The permissions an answer asks for beyond this one call, and how they were adjusted. */
export function rightsAsked(
  { decision, updatedPermissions = [], always = false }: Answer,
  request: OpenRequest | undefined,
): { updates: PermissionUpdate[]; warnings: string[] } {
  const rules: LastingRule[] =
    always && decision === 'allow' && request
      ? suggestedRules(request.ask).map((rule) => ({ ...rule, destination: 'session' }))
      : [];
  const lasting = updatedPermissions.filter(({ destination }) => destination !== 'session');
  const warnings = [
    ...lasting.map(
      ({ type, destination }) =>
        `updatedPermissions: ${type} applies to this session only; an answer does not change persistent settings (${destination}).`,
    ),
    ...(always && request && rules.length === 0
      ? ['always: Claude Code suggests no rule for this request; it was allowed once.']
      : []),
  ];
  return { updates: [...updatedPermissions, ...rules], warnings };
}

/** Turns an answer into a decision for Claude Code. Throws INVALID_ARGUMENT when it does not fit the request. */
export function toDecision(request: OpenRequest, answer: Answer): Decision {
  if (answer.decision === 'deny') {
    return {
      behavior: 'deny',
      message: isBlank(answer.message) ? 'Permission denied by caller' : answer.message,
      ...(answer.interrupt === true && { interrupt: true }),
    };
  }
  const input = answeredInput(request, answer);
  return {
    behavior: 'allow',
    ...(input && { updatedInput: input }),
    ...(answer.updatedPermissions && { updatedPermissions: answer.updatedPermissions }),
  };
}

function isBlank(text: string | undefined): text is undefined {
  return text === undefined || text.trim() === '';
}

function answeredInput(request: OpenRequest, answer: Answer): Record<string, unknown> | undefined {
  const { answers } = answer;
  const updatedInput = changedInput(request, answer.updatedInput);
  if (request.kind !== 'user_question') {
    if (answers !== undefined) {
      throw new DomainError(
        'INVALID_ARGUMENT',
        `answers are only valid for questions; this request is about ${request.ask.toolName}.`,
      );
    }
    return updatedInput;
  }
  const { questions, answers: inner, ...rest } = updatedInput ?? {};
  const asked = questionTexts(request.ask.input);
  if (questions !== undefined && !isDeepStrictEqual(questionTexts({ questions }), asked)) {
    throw new DomainError('INVALID_ARGUMENT', `updatedInput.questions must be those asked: ${quoted(asked)}.`);
  }
  const given = [answers, inner].filter((one) => one != null).map((one) => byQuestion(asked, one));
  const [settled, other = settled] = given;
  if (!settled) {
    throw new DomainError(
      'INVALID_ARGUMENT',
      `A question needs answers: { "<question>": "<label or text>" } or a list in order. Asked: ${quoted(asked)}.`,
    );
  }
  if (!isDeepStrictEqual(settled, other)) {
    throw new DomainError('INVALID_ARGUMENT', 'answers and updatedInput.answers differ; give only one.');
  }
  return { ...request.ask.input, ...rest, answers: settled };
}

/** What Claude Code expects: one text per question, multiple labels separated by commas. */
function byQuestion(questions: string[], answers: unknown): Record<string, string> {
  const given = new Map(Array.isArray(answers) ? fromList(questions, answers) : fromMap(answers));
  const known = new Set(questions);
  const unknown = [...given.keys()].filter((question) => !known.has(question));
  if (unknown.length > 0) {
    throw new DomainError('INVALID_ARGUMENT', `No such question: ${quoted(unknown)}. Asked: ${quoted(questions)}.`);
  }
  const missing = questions.filter((question) => !given.has(question));
  if (missing.length > 0) throw new DomainError('INVALID_ARGUMENT', `No answer to: ${quoted(missing)}.`);
  return Object.fromEntries(questions.map((question) => [question, answerText(question, given.get(question))]));
}

function fromMap(answers: unknown): [string, unknown][] {
  if (typeof answers === 'object' && answers !== null) return Object.entries(answers);
  throw new DomainError('INVALID_ARGUMENT', 'answers must be { "<question>": "<label or text>" } or a list in order.');
}

function fromList(questions: string[], answers: unknown[]): [string, unknown][] {
  if (answers.length !== questions.length) {
    throw new DomainError(
      'INVALID_ARGUMENT',
      `${String(answers.length)} answer(s) for ${String(questions.length)} question(s): ${quoted(questions)}. ` +
        'Give multiple labels for one question as a nested list.',
    );
  }
  return questions.map((question, index) => [question, answers[index]]);
}

function answerText(question: string, answer: unknown): string {
  if (typeof answer === 'string') return answer;
  if (Array.isArray(answer) && answer.every((label) => typeof label === 'string')) return answer.join(', ');
  throw new DomainError('INVALID_ARGUMENT', `The answer to ${quoted([question])} must be a text or a list of labels.`);
}

function quoted(texts: string[]): string {
  return texts.map((text) => JSON.stringify(text)).join(', ');
}
