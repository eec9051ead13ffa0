import type { AuxiliaryPurpose, ModelRequest, UnclassifiedRequest } from './model-request.ts';
import { type MessageReply, text, type Usage } from './reply.ts';
import type { Script } from './script.ts';

/** The requests that the CLI makes on its own, how they are recognised, and the answers that satisfy it. */

interface Auxiliary {
  readonly purpose: AuxiliaryPurpose;
  recognises(request: UnclassifiedRequest): boolean;
  answer(request: ModelRequest): MessageReply;
}

const AUXILIARIES: readonly Auxiliary[] = [
  {
    // For a first prompt of more than a word or two, unless nonessential traffic is off.
    purpose: 'title',
    recognises: ({ system }) => system.includes('You are naming a coding session'),
    answer: () => text('{"title":"Scripted session"}'),
  },
  {
    // With the option `promptSuggestions`, after each turn but the first.
    purpose: 'suggestion',
    recognises: ({ lastUserText }) => lastUserText.startsWith('[SUGGESTION MODE:'),
    answer: () => text('run the tests'),
  },
  {
    // In permission mode `auto`, unless nonessential traffic is off.
    purpose: 'permission-check',
    recognises: ({ system }) => system.includes('You are a security monitor for autonomous AI coding agents'),
    answer: () => text('<block>no</block>'),
  },
  {
    purpose: 'compaction',
    recognises: ({ lastUserText }) => lastUserText.includes('Your task is to create a detailed summary of'),
    answer: ({ userTexts }) => text(summaryOf(userTexts.slice(0, -1))),
  },
  {
    // With the option `agentProgressSummaries`, every 30 seconds of a sub-agent.
    purpose: 'progress-summary',
    recognises: ({ lastUserText }) => lastUserText.includes('most recent action in 3-5 words using present tense'),
    answer: () => text('Following the script'),
  },
];

export function classify(request: UnclassifiedRequest): ModelRequest {
  const purpose = purposeOf(request);
  return { ...request, purpose, auxiliary: purpose !== 'conversation' };
}

export function automaticAnswer(request: ModelRequest): MessageReply | undefined {
  return AUXILIARIES.find(({ purpose }) => purpose === request.purpose)?.answer(request);
}

function purposeOf(request: UnclassifiedRequest): ModelRequest['purpose'] {
  if (request.path.startsWith('/v1/messages/count_tokens')) return 'token-count';
  return AUXILIARIES.find((auxiliary) => auxiliary.recognises(request))?.purpose ?? 'conversation';
}

/** Repeats the prompts: the conversation continues without them, and its script is found by them. */
function summaryOf(prompts: readonly string[]): string {
  return `<analysis>Scripted.</analysis>\n<summary>\nThe user asked:\n${prompts.join('\n')}\n</summary>`;
}

/** What was asked and what was charged. */

/** A request that no script expected, described so that the omission is obvious. */
export interface UnexpectedRequest {
  readonly request: ModelRequest;
  readonly reason: string;
  readonly summary: string;
}

export class Ledger {
  readonly requests: ModelRequest[] = [];
  readonly unexpected: UnexpectedRequest[] = [];
  readonly #keepsRequests: boolean;
  readonly #requestsByScript = new Map<Script, ModelRequest[]>();
  readonly #usdByScript = new Map<Script, number>();
  #usd = 0;

  constructor(keepsRequests: boolean) {
    this.#keepsRequests = keepsRequests;
  }

  record(request: ModelRequest): void {
    if (this.#keepsRequests) this.requests.push(request);
  }

  assign(request: ModelRequest, script: Script): void {
    if (!this.#keepsRequests) return;
    const assigned = this.#requestsByScript.get(script);
    if (assigned === undefined) this.#requestsByScript.set(script, [request]);
    else assigned.push(request);
  }

  requestsFor(script: Script): readonly ModelRequest[] {
    return this.#requestsByScript.get(script) ?? [];
  }

  reject(request: ModelRequest, reason: string): UnexpectedRequest {
    const rejected = { request, reason, summary: summarise(request, reason) };
    this.unexpected.push(rejected);
    return rejected;
  }

  charge(usd: number, script: Script | undefined): void {
    this.#usd += usd;
    if (script !== undefined) this.#usdByScript.set(script, this.usd(script) + usd);
  }

  usd(script?: Script): number {
    return script === undefined ? this.#usd : (this.#usdByScript.get(script) ?? 0);
  }
}

const SUMMARISED_TEXTS = 3;
const EXCERPT_LENGTH = 200;

function summarise(request: ModelRequest, reason: string): string {
  const asker = request.agentId === undefined ? request.model : `${request.model} (sub-agent)`;
  const texts = request.userTexts.slice(-SUMMARISED_TEXTS).map((text) => `  user text: ${excerpt(text)}`);
  const results = request.toolResults.map(
    ({ text, isError }) => `  tool ${isError ? 'error' : 'result'}: ${excerpt(text)}`,
  );
  return [`${asker}: ${reason}`, ...texts, ...results].join('\n');
}

function excerpt(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  return JSON.stringify(line.length > EXCERPT_LENGTH ? `${line.slice(0, EXCERPT_LENGTH)}…` : line);
}

/**
 * USD for a million tokens, as in the CLI's own table, so that the cost it reports can be checked. Measured with Claude
 * Code 2.1.325: `total_cost_usd` of one reply for each kind of token. Writing to the cache costs 1.25 times the input.
 */
interface Price {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
}

interface PriceList extends Price {
  /** Applies to the whole request when its prompt is longer. */
  readonly long?: Price & { readonly above: number };
}

const OPUS_5_5: PriceList = { input: 4, output: 20, cacheRead: 0.2 };

const PRICES: Readonly<Record<string, PriceList>> = {
  'claude-opus-5-5': OPUS_5_5,
  'claude-sonnet-5-5': { input: 2, output: 10, cacheRead: 0.1 },
  'claude-haiku-5-5': {
    input: 0.1,
    output: 0.5,
    cacheRead: 0.01,
    long: { above: 100_000, input: 0.5, output: 2.5, cacheRead: 0.05 },
  },
  'claude-fable-5-2': { input: 8, output: 40, cacheRead: 0.2 },
  'claude-opus-5': { input: 5, output: 25, cacheRead: 0.5 },
  'claude-opus-4-8': { input: 5, output: 25, cacheRead: 0.5 },
  'claude-sonnet-5': { input: 2, output: 10, cacheRead: 0.2 },
  'claude-sonnet-4-6': { input: 3, output: 15, cacheRead: 0.3 },
  'claude-haiku-4-5': { input: 1, output: 5, cacheRead: 0.1 },
};

const CACHE_WRITE_FACTOR = 1.25;

/** The CLI charges for the model it asked, whatever the reply names, and knows no price of an unknown one. */
export function costUsd(askedModel: string, usage: Usage): number {
  const list = PRICES[askedModel] ?? OPUS_5_5;
  const prompt = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
  const price = list.long !== undefined && prompt > list.long.above ? list.long : list;
  const cost =
    usage.input_tokens * price.input +
    usage.output_tokens * price.output +
    usage.cache_read_input_tokens * price.cacheRead +
    usage.cache_creation_input_tokens * price.input * CACHE_WRITE_FACTOR;
  return cost / 1_000_000;
}
