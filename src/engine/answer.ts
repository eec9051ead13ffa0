import type { Decision, PermissionUpdate } from '../driver/permission-ask.ts';
import { DomainError } from '../errors/errors.ts';
import type { OpenRequest } from './requests.ts';
import { changedInput } from './shown-request.ts';
import { questionTexts } from './tool-summary.ts';

/** One answer to one question: a label, an own text, or several labels. */
export type QuestionAnswer = string | string[];

export interface Answer {
  decision: 'allow' | 'deny';
  message?: string | undefined;
  interrupt?: boolean | undefined;
  updatedInput?: Record<string, unknown> | undefined;
  updatedPermissions?: PermissionUpdate[] | undefined;
  answers?: Record<string, QuestionAnswer> | QuestionAnswer[] | undefined;
}

/** Turns what somebody answered into what Claude Code is told. Throws INVALID_ARGUMENT when it does not fit the request. */
export function toDecision(request: OpenRequest, answer: Answer): Decision {
  if (answer.decision === 'deny') {
    return {
      behavior: 'deny',
      message: answer.message ?? 'Permission denied by caller',
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

function answeredInput(request: OpenRequest, answer: Answer): Record<string, unknown> | undefined {
  const { answers } = answer;
  const updatedInput = changedInput(request, answer.updatedInput);
  if (request.kind !== 'user_question') {
    if (answers !== undefined) {
      throw new DomainError(
        'INVALID_ARGUMENT',
        `answers are for questions; this request is about ${request.ask.toolName}.`,
      );
    }
    return updatedInput;
  }
  const input = { ...request.ask.input, ...updatedInput };
  if (answers !== undefined) return { ...input, answers: byQuestion(questionTexts(request.ask.input), answers) };
  if (updatedInput && 'answers' in updatedInput) return input;
  throw new DomainError(
    'INVALID_ARGUMENT',
    `A question needs answers: { "<question>": "<label or text>" } or a list in order. Asked: ${quoted(questionTexts(request.ask.input))}.`,
  );
}

function byQuestion(questions: string[], answers: NonNullable<Answer['answers']>): Record<string, string> {
  const given = Array.isArray(answers) ? fromList(questions, answers) : answers;
  const known = new Set(questions);
  const unknown = Object.keys(given).filter((question) => !known.has(question));
  if (unknown.length > 0) {
    throw new DomainError('INVALID_ARGUMENT', `No such question: ${quoted(unknown)}. Asked: ${quoted(questions)}.`);
  }
  const missing = questions.filter((question) => !Object.hasOwn(given, question));
  if (missing.length > 0) throw new DomainError('INVALID_ARGUMENT', `No answer to: ${quoted(missing)}.`);
  return Object.fromEntries(
    questions.map((question) => {
      const answer = given[question] ?? '';
      return [question, Array.isArray(answer) ? answer.join(', ') : answer];
    }),
  );
}

function fromList(questions: string[], answers: QuestionAnswer[]): Record<string, QuestionAnswer> {
  if (answers.length !== questions.length) {
    throw new DomainError(
      'INVALID_ARGUMENT',
      `${String(answers.length)} answer(s) for ${String(questions.length)} question(s): ${quoted(questions)}.`,
    );
  }
  return Object.fromEntries(questions.map((question, index) => [question, answers[index] ?? '']));
}

function quoted(texts: string[]): string {
  return texts.map((text) => JSON.stringify(text)).join(', ');
}
