/** One session of the soak: each step acts on it and checks its invariants. */

import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../harness/eventually.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import type { Random } from './random.ts';

const REST_MS = 60_000;
/** Tolerance per reply: each rounds dollars to millionths. */
const ROUNDING_USD = 0.000_01;

export class SoakedSession {
  cancelled = false;
  readonly #h: Harness;
  readonly #name: string;
  readonly #id: string;
  #prompts = 0;
  #turns: number;
  #costUsd: number;

  private constructor(h: Harness, name: string, id: string, turns = 0, costUsd = 0) {
    this.#h = h;
    this.#name = name;
    this.#id = id;
    this.#turns = turns;
    this.#costUsd = costUsd;
  }

  static async start(h: Harness, name: string): Promise<SoakedSession> {
    const prompt = `soak ${name} start`;
    const { sessionId } = await callWithSlot(h, 'claude_code', {
      prompt,
      cwd: h.project,
      advanced: { sessionInitTimeoutMs: REST_MS },
    });
    const session = new SoakedSession(h, name, sessionId);
    session.#expectAnswer(await session.#rest(), prompt);
    return session;
  }

  async answered(): Promise<void> {
    const prompt = await this.#say('plain');
    this.#expectAnswer(await this.#rest(), prompt);
  }

  async allowed(): Promise<void> {
    await this.#decided('allow');
  }

  async denied(): Promise<void> {
    await this.#decided('deny');
  }

  async interrupted(random: Random): Promise<void> {
    const prompt = await this.#say('slow');
    await sleep(random.below(500));
    await this.#h.ok('claude_code_session', { action: 'interrupt', sessionId: this.#id }, { timeout: REST_MS });
    const { status, result } = await this.#rest();
    strictEqual(status, 'idle', JSON.stringify(result));
    if (result?.isError === false) this.#expectText(result, prompt);
  }

  async queued(): Promise<void> {
    const first = await this.#say('slow');
    const second = await this.#say('slow', { whenBusy: 'queue' });
    const { result, status } = await this.#rest();
    strictEqual(status, 'idle', JSON.stringify(result));
    // Absorbed into the running turn or answered after it: the last answer is to the last message.
    this.#expectText(result, second);
    ok(first !== second);
  }

  async forked(): Promise<void> {
    const prompt = `soak ${this.#name} fork ${++this.#prompts}`;
    const { sessionId } = await callWithSlot(this.#h, 'claude_code_reply', {
      sessionId: this.#id,
      prompt,
      forkSession: true,
      sessionInitTimeoutMs: REST_MS,
    });
    ok(sessionId !== this.#id);
    // The fork's totals start from those it inherited; the original's do not change.
    const fork = new SoakedSession(this.#h, `${this.#name}-fork`, sessionId, this.#turns, this.#costUsd);
    fork.#expectAnswer(await fork.#rest(), prompt);
    await fork.end();
    await this.answered();
  }

  async crashed(random: Random): Promise<void> {
    const prompt = await this.#say('slow');
    const cli = (await this.#h.processes()).find(({ command }) => command.includes(this.#id));
    await sleep(random.below(300));
    if (cli) kill(cli.pid);
    const { status, result } = await this.#rest();
    if (status === 'idle') this.#expectText(result, prompt);
    else strictEqual(result.errorSubtype, 'process_exited', JSON.stringify(result));
    const next = await this.#say('plain');
    // A prompt that Claude Code had not recorded before the crash is sent again with the next one.
    const repeated = status === 'idle' ? [] : [`${prompt}\n\n${next}`];
    this.#expectAnswer(await this.#rest(), next, ...repeated);
  }

  async cancelledAtWork(random: Random): Promise<void> {
    await this.#say(random.chance(0.5) ? 'slow' : 'asks');
    await sleep(random.below(300));
    await this.end();
    const late = await this.#h.call('claude_code_reply', { sessionId: this.#id, prompt: 'too late' });
    ok(late.text.includes('CANCELLED'), late.text);
  }

  /** Cancels it and checks that no process is left and that each request had exactly one outcome. */
  async end(): Promise<void> {
    await this.#h.ok('claude_code_session', { action: 'cancel', sessionId: this.#id }, { timeout: REST_MS });
    this.cancelled = true;
    const { status, events } = await this.#check({ action: 'poll', responseMode: 'full' });
    strictEqual(status, 'cancelled');
    const idsOf = (kind: string): string[] =>
      events.filter(({ type }: Json) => type === kind).map(({ data }: Json) => data.requestId);
    deepStrictEqual(idsOf('permission_result').sort(), idsOf('permission_request').sort());
    await eventually(async () => (await this.#h.processes()).every(({ command }) => !command.includes(this.#id)), {
      what: `no process of ${this.#id} is left`,
      within: 10_000,
    });
  }

  async #decided(decision: 'allow' | 'deny'): Promise<void> {
    const prompt = await this.#say('asks');
    const { requestId } = await this.#h.waitForRequest(this.#id, { within: REST_MS });
    const answer = { action: 'respond_permission', sessionId: this.#id, requestId, decision };
    const answers = await Promise.all([answer, answer].map((args) => this.#h.call('claude_code_check', args)));
    // Exactly one of two answers counts.
    strictEqual(answers.filter(({ isError }) => isError).length, 1, answers.map(({ text }) => text).join('\n'));
    this.#expectAnswer(await this.#rest(), prompt);
  }

  async #say(kind: string, more: object = {}): Promise<string> {
    const prompt = `soak ${this.#name} ${++this.#prompts} ${kind}`;
    const args = { sessionId: this.#id, prompt, sessionInitTimeoutMs: REST_MS, ...more };
    await callWithSlot(this.#h, 'claude_code_reply', args);
    return prompt;
  }

  /** Waits for rest and checks the totals, which grow by exactly this call's share. */
  async #rest(): Promise<Json> {
    const state = await this.#h.waitUntilRest(this.#id, { within: REST_MS });
    const { result } = state;
    if (!result) return state;
    this.#turns += Number(result.numTurns);
    this.#costUsd += Number(result.totalCostUsd);
    strictEqual(result.sessionTotalTurns, this.#turns, 'total turns');
    ok(
      Math.abs(result.sessionTotalCostUsd - this.#costUsd) < ROUNDING_USD * this.#prompts + ROUNDING_USD,
      'total cost',
    );
    return state;
  }

  /** The answer may be to any of the prompts. */
  #expectAnswer({ status, result }: Json, ...prompts: string[]): void {
    strictEqual(status, 'idle', JSON.stringify(result));
    this.#expectText(result, ...prompts);
  }

  #expectText({ result }: Json, ...prompts: string[]): void {
    ok(
      prompts.some((prompt) => result === `answer to ${prompt}`),
      `${JSON.stringify(result)} does not answer ${JSON.stringify(prompts)}`,
    );
  }

  #check(args: object): Promise<Json> {
    return this.#h.ok('claude_code_check', { sessionId: this.#id, ...args });
  }
}

/** Retries while all slots are taken by busy sessions. */
async function callWithSlot(h: Harness, name: string, args: Record<string, unknown>): Promise<Json> {
  for (;;) {
    const { isError, data, text } = await h.call(name, args, { timeout: REST_MS });
    if (!isError) return data;
    if (!text.includes('TOO_MANY_SESSIONS')) throw new Error(`${name} ${JSON.stringify(args)} failed: ${text}`);
    await sleep(100);
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Already exited: the session was parked.
  }
}
