/** What the model answers in one conversation, and which requests belong to it. */

import {
  type Gate,
  text,
  type ReplyLike,
  type BrokenReply,
  type HangReply,
  type HttpErrorReply,
  type MessageLike,
  type MessageReply,
} from './reply.ts';
import type { ModelRequest } from './model-request.ts';

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

function stepsOf(like: ReplyLike): Step[] {
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

function resolveStep(step: Step, request: ModelRequest): Resolved {
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

export type Match = string | RegExp | ((request: ModelRequest) => boolean);

export interface Script {
  /** Answers that are used up in order, one for each request of the model. */
  reply(...steps: ReplyLike[]): this;
  /** The answer to every request that comes once the queue is empty. */
  always(step: ReplyLike): this;
  /** Answers that were not asked for yet. */
  readonly remaining: number;
}

export class ConversationScript implements Script {
  readonly #match: Match;
  readonly #queue: Step[] = [];
  #always: ReplyLike | undefined;

  constructor(match: Match) {
    this.#match = match;
  }

  reply(...steps: ReplyLike[]): this {
    this.#queue.push(...steps.flatMap(stepsOf));
    return this;
  }

  always(step: ReplyLike): this {
    this.#always = step;
    return this;
  }

  get remaining(): number {
    return this.#queue.length;
  }

  matches(request: ModelRequest, userText: string): boolean {
    if (typeof this.#match === 'string') return userText.includes(this.#match);
    // Not test(): a global or sticky expression remembers where it stopped.
    if (this.#match instanceof RegExp) return userText.search(this.#match) !== -1;
    return this.#match(request);
  }

  /** Nothing when the script is used up. */
  take(request: ModelRequest): Answer | undefined {
    if (this.#queue.length === 0 && this.#always !== undefined) this.reply(this.#always);
    const step = this.#queue.shift();
    if (step === undefined) return undefined;
    const { answer, rest } = resolveStep(step, request);
    this.#queue.unshift(...rest);
    return answer;
  }

  get name(): string {
    return `on(${typeof this.#match === 'string' ? JSON.stringify(this.#match) : String(this.#match)})`;
  }
}

/**
 * The newest text decides, so that a later prompt of a session can have its own script, and anything no script expects
 * (a notification) still goes to the script of an earlier prompt.
 */
export function findScript(
  scripts: readonly ConversationScript[],
  request: ModelRequest,
): ConversationScript | undefined {
  const texts = request.userTexts.length > 0 ? request.userTexts : [''];
  for (const userText of texts.toReversed()) {
    const script = scripts.findLast((candidate) => candidate.matches(request, userText));
    if (script !== undefined) return script;
  }
  return undefined;
}
