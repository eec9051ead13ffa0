/**
 * Common steps of tests with a session, in either toolset. Methods that return a view return the same for both;
 * those that return JSON return it as the toolset does.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import type { Json } from './json.ts';
import {
  DIALECTS,
  type Allowance,
  type Denial,
  type Dialect,
  type RequestView,
  type SessionView,
  type StartOptions,
  type Toolset,
} from './toolsets.ts';

export interface Wait {
  /** Milliseconds. */
  readonly within?: number;
  /** What is being waited for, for the failure message. */
  readonly what?: string;
}

type Ok = (tool: string, args: Record<string, unknown>) => Promise<Json>;

const WITHIN_MS = 45_000;
/** A `wait` returns early only for a request or at rest, so any other condition is polled this often. */
const WATCH_MS = 200;
/** For those two. Each call costs about a hundredth of starting Claude Code. */
const LONG_WATCH_MS = 2_000;
/** While a request is open, every `wait` returns at once. */
const PAUSE_MS = 20;

export class SessionSteps {
  /** The calls themselves, for a test that expects them to fail. */
  readonly dialect: Dialect;
  readonly #ok: Ok;
  #conversation: string | undefined;

  constructor(toolset: Toolset, ok: Ok) {
    this.dialect = DIALECTS[toolset];
    this.#ok = ok;
  }

  /** Returns the id of a new session. */
  async begin(prompt: string, options?: StartOptions): Promise<string> {
    const { sessionId } = await this.#ok(...this.dialect.start(prompt, options));
    return sessionId;
  }

  /**
   * Continues the session of the previous call if it is at rest, or starts a new one. Most of a test's time is spent
   * starting Claude Code: this is for tests that do not depend on earlier messages.
   */
  async converse(prompt: string): Promise<string> {
    const last = this.#conversation;
    if (last !== undefined && (await this.look(last)).status === 'rest') await this.say(last, prompt);
    else this.#conversation = await this.begin(prompt);
    return this.#conversation!;
  }

  /** The session of `converse`, if there is one yet. */
  get conversation(): string | undefined {
    return this.#conversation;
  }

  say(sessionId: string, text: string): Promise<Json> {
    return this.#ok(...this.dialect.say(sessionId, text));
  }

  queue(sessionId: string, text: string): Promise<Json> {
    return this.#ok(...this.dialect.queue(sessionId, text));
  }

  resume(sessionId: string, text: string): Promise<Json> {
    return this.#ok(...this.dialect.resume(sessionId, text));
  }

  interrupt(sessionId: string): Promise<Json> {
    return this.#ok(...this.dialect.interrupt(sessionId));
  }

  async look(sessionId: string): Promise<SessionView> {
    return this.dialect.view(await this.#ok(...this.dialect.look(sessionId)));
  }

  async watch(sessionId: string, waitMs = WITHIN_MS): Promise<SessionView> {
    return this.dialect.view(await this.#ok(...this.dialect.watch(sessionId, waitMs)));
  }

  /** Returns the session once it is at rest. */
  async finish(sessionId: string, wait?: Wait): Promise<SessionView> {
    return this.dialect.view(await this.waitUntilRest(sessionId, wait));
  }

  /** Returns the oldest open request, as soon as there is one. */
  async nextRequest(sessionId: string, wait?: Wait): Promise<RequestView> {
    return this.dialect.requestView(await this.waitForRequest(sessionId, wait));
  }

  /** Returns the session as soon as this holds. */
  async until(sessionId: string, holds: (view: SessionView) => unknown, wait?: Wait): Promise<SessionView> {
    return this.dialect.view(await this.waitFor(sessionId, (state) => holds(this.dialect.view(state)), wait));
  }

  waitFor(sessionId: string, holds: (state: Json) => unknown, wait?: Wait): Promise<Json> {
    return this.#waitFor(sessionId, holds, WATCH_MS, wait);
  }

  async #waitFor(
    sessionId: string,
    holds: (state: Json) => unknown,
    watchMs: number,
    { within = WITHIN_MS, what = 'the condition' }: Wait = {},
  ): Promise<Json> {
    const deadline = performance.now() + within;
    for (;;) {
      const state = await this.#ok(...this.dialect.watch(sessionId, Math.min(watchMs, within)));
      if (holds(state)) return state;
      if (performance.now() >= deadline) {
        throw new Error(`Not within ${within} ms: ${what}. Last seen: ${inspect(state, { depth: 6 })}`);
      }
      await sleep(PAUSE_MS);
    }
  }

  waitUntilRest(sessionId: string, wait: Wait = {}): Promise<Json> {
    const isAtRest = (state: Json): boolean => ['rest', 'error'].includes(this.dialect.view(state).status);
    return this.#waitFor(sessionId, isAtRest, LONG_WATCH_MS, { what: 'the session is at rest', ...wait });
  }

  /** With all that is known of it, unless it has been settled since. */
  async waitForRequest(sessionId: string, wait: Wait = {}): Promise<Json> {
    const isOpen = (state: Json): boolean => this.dialect.openRequests(state).length > 0;
    const state = await this.#waitFor(sessionId, isOpen, LONG_WATCH_MS, { what: 'a request is open', ...wait });
    const [request] = this.dialect.openRequests(state);
    const { id } = this.dialect.requestView(request);
    const inFull = this.dialect.openRequests(await this.#ok(...this.dialect.lookInFull(sessionId)));
    return inFull.find((one) => this.dialect.requestView(one).id === id) ?? request;
  }

  async allow(sessionId: string, { requestId, ...details }: Allowance = {}): Promise<Json> {
    return this.#ok(...this.dialect.allow(sessionId, requestId ?? (await this.#oldestRequest(sessionId)), details));
  }

  async deny(sessionId: string, { requestId, ...details }: Denial = {}): Promise<Json> {
    return this.#ok(...this.dialect.deny(sessionId, requestId ?? (await this.#oldestRequest(sessionId)), details));
  }

  async #oldestRequest(sessionId: string): Promise<string> {
    return (await this.nextRequest(sessionId)).id;
  }
}
