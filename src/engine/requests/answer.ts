import { isDeepStrictEqual } from 'node:util';
import type { Decision, PermissionUpdate } from '../../driver/permission-ask.ts';
import { DomainError } from '../../errors/errors.ts';
import type { Answer } from '../../schema/commands.ts';
import { DENIED_WITHOUT_WORDS } from '../../schema/enums.ts';
import { alwaysOffer, exactRule, type LastingRule } from './always.ts';
import type { OpenRequest, Source } from './requests.ts';
import { changedInput } from './shown-request.ts';
import { questionTexts } from '../conversation/tool-summary.ts';

/** The permissions an answer asks for beyond this one call, and how they were adjusted. */
export interface AskedRights {
  readonly updates: PermissionUpdate[];
  /** Permissions that the server keeps itself: the policy must permit them, Claude Code is not told. */
  readonly kept: LastingRule[];
  readonly warnings: string[];
}

export function rightsAsked(answer: Answer, request: OpenRequest | undefined): AskedRights {
  const { decision, updatedPermissions = [], always = false } = answer;
  const offer = always && decision === 'allow' && request ? alwaysOffer(request.ask) : undefined;
  const rules =
    offer?.kind === 'rules' ? offer.rules.map((rule) => ({ ...rule, destination: 'session' as const })) : [];
  const lasting = updatedPermissions.filter(({ destination }) => destination !== 'session');
  const warnings = [
    ...lasting.map(
      ({ type, destination }) =>
        `updatedPermissions: ${type} applies to this session only; an answer does not change persistent settings (${destination}).`,
    ),
    ...(offer?.kind === 'nothing'
      ? ['always: there is no rule for this request that could be allowed safely; it was allowed once.']
      : []),
  ];
  return {
    updates: [...updatedPermissions, ...rules],
    kept: offer?.kind === 'exact' && request ? [exactRule(request.ask.toolName, request.ask.input)] : [],
    warnings,
  };
}

/** Turns an answer into a decision for Claude Code. Throws INVALID_ARGUMENT when it does not fit the request. */
export function toDecision(request: OpenRequest, answer: Answer, source: Source): Decision {
  if (request.own) checkUnchanged(answer);
  if (answer.decision === 'deny') {
    return {
      behavior: 'deny',
      message: isBlank(answer.message) ? DENIED_WITHOUT_WORDS[source === 'human' ? 'human' : 'caller'] : answer.message,
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

/** What the server is about to do is settled when it asks: anything else has to be asked for anew. */
function checkUnchanged({ updatedInput, updatedPermissions = [], always = false }: Answer): void {
  const given = [
    ...(updatedInput === undefined ? [] : ['updatedInput']),
    ...(updatedPermissions.length > 0 ? ['updatedPermissions'] : []),
    ...(always ? ['always'] : []),
  ];
  if (given.length > 0)
    throw new DomainError(
      'INVALID_ARGUMENT',
      `${given.join(', ')}: this is a request of the server's own; it can only be allowed or denied as it is.`,
    );
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
    // Claude Code takes it for no change, and would run what was asked for.
    if (updatedInput && Object.keys(updatedInput).length === 0) {
      throw new DomainError(
        'INVALID_ARGUMENT',
        'updatedInput is empty, and it replaces the whole input: give every field, or omit it to run the original input.',
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
