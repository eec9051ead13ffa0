/** What was asked and what was charged. */

import type { ModelRequest } from './model-request.ts';
import type { Script } from './script.ts';

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
