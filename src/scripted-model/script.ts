/** What the model answers in one conversation, and which requests belong to it. */

import type { ModelRequest } from './model-request.ts';
import type { ReplyLike } from './reply.ts';
import { resolveStep, stepsOf, type Answer, type Step } from './step.ts';

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
