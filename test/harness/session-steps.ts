/** Steps that most tests take with a session: wait for rest, wait for a request, decide. */

import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import type { Json } from './json.ts';
import { DIALECTS, type Allowance, type Denial, type Dialect, type Toolset } from './toolsets.ts';

export interface Wait {
  /** Milliseconds. */
  readonly within?: number;
  /** What is waited for, as it should read in the failure. */
  readonly what?: string;
}

type Ok = (tool: string, args: Record<string, unknown>) => Promise<Json>;

const WITHIN_MS = 45_000;
/** A `wait` ends early only for a request or at rest: any other condition is looked at this often. */
const WATCH_MS = 200;
/** While a request is open every `wait` answers at once. */
const PAUSE_MS = 20;

export class SessionSteps {
  readonly #ok: Ok;
  readonly #dialect: Dialect;

  constructor(toolset: Toolset, ok: Ok) {
    this.#dialect = DIALECTS[toolset];
    this.#ok = ok;
  }

  async waitFor(
    sessionId: string,
    holds: (state: Json) => unknown,
    { within = WITHIN_MS, what = 'the condition' }: Wait = {},
  ): Promise<Json> {
    const deadline = performance.now() + within;
    for (;;) {
      const state = await this.#ok(...this.#dialect.watch(sessionId, WATCH_MS));
      if (holds(state)) return state;
      if (performance.now() >= deadline) {
        throw new Error(`Not within ${within} ms: ${what}. Last seen: ${inspect(state, { depth: 6 })}`);
      }
      await sleep(PAUSE_MS);
    }
  }

  waitUntilRest(sessionId: string, wait: Wait = {}): Promise<Json> {
    return this.waitFor(sessionId, (state) => this.#dialect.isAtRest(state), {
      what: 'the session is at rest',
      ...wait,
    });
  }

  /** The oldest open request, as soon as there is one. */
  async waitForRequest(sessionId: string, wait: Wait = {}): Promise<Json> {
    const isOpen = (state: Json): boolean => this.#dialect.openRequests(state).length > 0;
    const state = await this.waitFor(sessionId, isOpen, { what: 'a request is open', ...wait });
    return this.#dialect.openRequests(state)[0];
  }

  async allow(sessionId: string, { requestId, ...details }: Allowance = {}): Promise<Json> {
    return this.#ok(...this.#dialect.allow(sessionId, requestId ?? (await this.#oldestRequest(sessionId)), details));
  }

  async deny(sessionId: string, { requestId, ...details }: Denial = {}): Promise<Json> {
    return this.#ok(...this.#dialect.deny(sessionId, requestId ?? (await this.#oldestRequest(sessionId)), details));
  }

  async #oldestRequest(sessionId: string): Promise<string> {
    return this.#dialect.requestId(await this.waitForRequest(sessionId));
  }
}
