/** From what a script was given to what is sent: one step for each request, one answer for each step. */

import type { Gate } from './gate.ts';
import type { ModelRequest } from './model-request.ts';
import {
  text,
  type BrokenReply,
  type HangReply,
  type HttpErrorReply,
  type MessageLike,
  type MessageReply,
  type ReplyLike,
} from './reply.ts';

/** An entry of a script's queue. */
export type Step =
  | MessageReply
  | HttpErrorReply
  | BrokenReply
  | HangReply
  | { readonly kind: 'held'; readonly gate: Gate; readonly step: Step }
  | { readonly kind: 'computed'; readonly compute: (request: ModelRequest) => ReplyLike };

/** A step for a request that is known: nothing is left to compute. */
export type Answer =
  | MessageReply
  | HttpErrorReply
  | HangReply
  | BrokenAnswer
  | { readonly kind: 'held'; readonly gate: Gate; readonly answer: Answer };

export type BrokenAnswer = Omit<BrokenReply, 'message'> & { readonly message: MessageReply };

export interface Resolved {
  readonly answer: Answer;
  /** The further steps of a sequence that was computed. */
  readonly rest: readonly Step[];
}

export function stepsOf(like: ReplyLike): Step[] {
  if (typeof like === 'string') return [text(like)];
  if (typeof like === 'function') return [{ kind: 'computed', compute: like }];
  switch (like.kind) {
    case 'sequence':
      return like.steps.flatMap(stepsOf);
    case 'gate': {
      const [first, ...rest] = stepsOf(like.held);
      return first === undefined ? [] : [{ kind: 'held', gate: like, step: first }, ...rest];
    }
    default:
      return [like];
  }
}

export function resolveStep(step: Step, request: ModelRequest): Resolved {
  switch (step.kind) {
    case 'computed': {
      const [first, ...rest] = stepsOf(step.compute(request));
      if (first === undefined) throw new Error('the reply function returned an empty sequence');
      const resolved = resolveStep(first, request);
      return { answer: resolved.answer, rest: [...resolved.rest, ...rest] };
    }
    case 'held': {
      const { answer, rest } = resolveStep(step.step, request);
      return { answer: { kind: 'held', gate: step.gate, answer }, rest };
    }
    case 'broken':
      return { answer: { ...step, message: resolveMessage(step.message, request) }, rest: [] };
    default:
      return { answer: step, rest: [] };
  }
}

function resolveMessage(like: MessageLike, request: ModelRequest): MessageReply {
  if (typeof like === 'string') return text(like);
  return typeof like === 'function' ? resolveMessage(like(request), request) : like;
}
