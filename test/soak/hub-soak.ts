/** Sessions at work, waiting and at rest under a hub that is killed again and again; what they did is counted. */

import { ok, strictEqual } from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { text, tool, type ReplyLike } from '../../src/scripted-model/reply.ts';
import type { ModelRequest } from '../../src/scripted-model/scripted-model.ts';
import { eventually } from '../harness/eventually.ts';
import type { Json } from '../harness/json.ts';
import type { Harness, HarnessOptions } from '../harness/open-harness.ts';
import type { CallOptions, CallResult } from '../harness/tool-call.ts';
import { HubWatchers } from './hub-watchers.ts';
import { randomFrom, type Random } from './random.ts';

export interface HubSoakPlan {
  readonly sessions: number;
  readonly kills: number;
  readonly seed: number;
  /** With a stream, a page and rules beside the callers. */
  readonly watched?: boolean;
  readonly tell?: (line: string) => void;
}

export interface HubSoakReport {
  readonly counts: Readonly<Record<string, number>>;
  /** From the start of a hub to its first answer, in milliseconds. */
  readonly startsMs: readonly number[];
  /** Calls that ended in a named error, and were looked into. */
  readonly refusals: Readonly<Record<string, number>>;
}

const REST_MS = 120_000;
const WAIT_MS = 10_000;

export const HUB_SOAK_HARNESS: HarnessOptions = {
  git: true,
  hub: { env: { CLAUDE_CODE_MCP_MAX_SESSIONS: '40' }, keepsPort: true },
  settings: { permissions: { allow: ['Bash(./work.sh:*)', 'Bash(./edit.sh:*)'] } },
  tolerate: { stderr: true },
};

/** By name. The first leaves one line for each time that it is run. */
const SCRIPTS = {
  'work.sh': '#!/bin/sh\nprintf "%s\\n" "$2" >> "$1"\nsleep 0.3\n',
  'edit.sh': '#!/bin/sh\nprintf "%s\\n" "$2" > "$1"\n',
};

function addScripts({ project: cwd, home }: Harness, sessions: number): void {
  const targets = Array.from({ length: sessions }, (_, index) => `s${String(index)}`);
  const rules = targets.map((name) => `${name}:\n\t@echo done >> "${join(home, `${name}.made`)}"\n`);
  writeFileSync(join(cwd, 'Makefile'), `.PHONY: ${targets.join(' ')}\n${rules.join('')}`);
  for (const [name, script] of Object.entries(SCRIPTS)) writeFileSync(join(cwd, name), script, { mode: 0o755 });
  execFileSync('git', ['add', '--all'], { cwd });
  execFileSync('git', ['-c', 'user.name=soak', '-c', 'user.email=soak@localhost', 'commit', '-qm', 'scripts'], { cwd });
}

export async function hubSoak(h: Harness, plan: HubSoakPlan): Promise<HubSoakReport> {
  const watchers = plan.watched ? await HubWatchers.open(h) : undefined;
  try {
    return await soakWatched(h, plan, watchers);
  } finally {
    await watchers?.close();
  }
}

async function soakWatched(h: Harness, plan: HubSoakPlan, watchers?: HubWatchers): Promise<HubSoakReport> {
  const { sessions: size, kills, seed, tell = () => undefined } = plan;
  const counts: Record<string, number> = {};
  const refusals: Record<string, number> = {};
  const count = (what: string, into = counts): void => void (into[what] = (into[what] ?? 0) + 1);
  addScripts(h, size);
  h.model.on(/hub soak /).always((request) => modelAnswer(h, request));
  const refused = (why: string): void => count(why, refusals);
  const attached = new PatientCalls((name, args, options) => h.call(name, args, options), refused);
  const overHttp = watchers?.overHttp.map((call) => new PatientCalls(call, refused)) ?? [];
  const sessions = await Promise.all(
    Array.from({ length: size }, (_, index) => {
      // Three in ten are called over HTTP, in each protocol era in turn.
      const calls = (index % 10 < 3 ? overHttp[index % 2] : undefined) ?? attached;
      // Two in ten work in worktrees of their own, whose work is applied.
      const place = index % 5 === 4 ? 'worktree' : 'directory';
      return CountedSession.start({ h, calls, watchers }, `s${String(index)}`, place);
    }),
  );

  let isOver = false;
  const working = Promise.all(
    sessions.map(async (session, index) => {
      const random = randomFrom(seed * 1_000 + index);
      while (!isOver) {
        count(await session.step(random));
        // Some are at rest when the hub is killed.
        if (random.chance(0.3)) await sleep(random.below(1_500));
      }
    }),
  );
  const startsMs: number[] = [];
  const killing = (async () => {
    const random = randomFrom(seed);
    for (let kill = 1; kill <= kills && !isOver; kill++) {
      await sleep(random.below(2_500));
      await watchers?.connected();
      await h.stopHub('SIGKILL');
      if (random.chance(0.3)) await sleep(random.below(1_000));
      const begin = performance.now();
      await h.startHub();
      startsMs.push(performance.now() - begin);
      if (kill % 10 === 0) tell(`${String(kill)} kills, ${JSON.stringify(counts)} ${JSON.stringify(refusals)}`);
    }
  })();
  try {
    await Promise.race([killing, working]);
  } finally {
    isOver = true;
    // A hub that is started after a failure would outlive the soak.
    await Promise.allSettled([killing, working]);
  }
  await Promise.all([killing, working]);

  for (const session of sessions) await session.checkAll();
  await watchers?.check(sessions.map(({ id }) => id));
  await h.stopHub();
  await eventually(async () => (await claudes(h)).length === 0, { what: 'no Claude Code is left', within: 20_000 });
  await h.startHub();
  return { counts, startsMs, refusals };
}

async function claudes(h: Harness): Promise<string[]> {
  return (await h.processes())
    .map(({ command }) => command)
    .filter((command) => command.includes('--session-id') || command.includes('--resume'));
}

const REFUSALS = new Set(['outcome unknown', 'UNAVAILABLE', 'PERMISSION_REQUEST_NOT_FOUND']);

export type Caller = (
  name: string,
  args: Readonly<Record<string, unknown>>,
  options?: CallOptions,
) => Promise<Pick<CallResult, 'isError' | 'data' | 'text'>>;

/** Calls that a killed hub may leave without an answer: what they say then is counted, and the session looked at. */
class PatientCalls {
  readonly #call: Caller;
  readonly #refused: (why: string) => void;

  constructor(call: Caller, refused: (why: string) => void) {
    this.#call = call;
    this.#refused = refused;
  }

  /** What the tool answered, or the code of an error that says nothing was done, or that nobody knows. */
  async try(name: string, args: Record<string, unknown>): Promise<{ data: Json } | { refused: string; text: string }> {
    const { isError, data, text: answered } = await this.#call(name, args, { timeout: REST_MS });
    if (!isError) return { data };
    const why = /outcome[^.]*unknown/i.test(answered)
      ? 'outcome unknown'
      : (/\[?([A-Z_]{6,})\]?/.exec(answered)?.[1] ?? '');
    this.#refused(`${name}: ${why}`);
    if (REFUSALS.has(why) || answered.includes('try again. Nothing was changed'))
      return { refused: why, text: answered };
    throw new Error(`${name} ${JSON.stringify(args)} failed: ${answered}`);
  }

  /** Reading may be repeated at will. */
  async read(name: string, args: Record<string, unknown>): Promise<Json> {
    for (;;) {
      const answer = await this.try(name, args);
      if ('data' in answer) return answer.data;
      await sleep(100);
    }
  }
}

interface Around {
  readonly h: Harness;
  readonly calls: PatientCalls;
  readonly watchers: HubWatchers | undefined;
}

class CountedSession {
  readonly #h: Harness;
  readonly #calls: PatientCalls;
  readonly #watchers: HubWatchers | undefined;
  readonly #name: string;
  readonly #place: 'directory' | 'worktree';
  #id = '';
  /** The prompts that were accepted. */
  readonly #prompts: string[] = [];
  readonly #undelivered = new Set<string>();
  /** How often each line of work must have been done. */
  readonly #work = new Map<string, 'once' | 'never'>();
  readonly #applied: string[] = [];
  /** The standing rule for what only this session calls. */
  #ruleId: string | undefined;
  #made = 0;

  private constructor({ h, calls, watchers }: Around, name: string, place: 'directory' | 'worktree') {
    this.#h = h;
    this.#calls = calls;
    this.#watchers = watchers;
    this.#name = name;
    this.#place = place;
  }

  get id(): string {
    return this.#id;
  }

  static async start(around: Around, name: string, place: 'directory' | 'worktree'): Promise<CountedSession> {
    const { h, watchers } = around;
    const session = new CountedSession(around, name, place);
    if (place === 'directory') session.#ruleId = await watchers?.makeRule(`make ${name}`, h.project);
    const prompt = `hub soak ${name} 0 plain`;
    session.#prompts.push(prompt);
    const advanced = { sessionInitTimeoutMs: REST_MS, ...(place === 'worktree' && { workspace: { type: place } }) };
    const started = await around.calls.try('claude_code', { prompt, cwd: h.project, advanced });
    ok('data' in started, JSON.stringify(started));
    session.#id = started.data.sessionId;
    session.#expectAnswer(await session.#rest(), prompt);
    return session;
  }

  async step(random: Random): Promise<string> {
    const kinds = this.#place === 'worktree' ? ['plain', 'edits'] : this.#watchers ? WATCHED_STEPS : STEPS;
    const kind = random.pick(kinds);
    const prompt = `hub soak ${this.#name} ${String(this.#prompts.length)} ${kind}`;
    const isRuled = kind === 'makes' && random.chance(0.6);
    if (kind === 'makes') await this.#watchers?.enableRule(this.#ruleId!, isRuled);
    await this.#say(prompt);
    switch (kind) {
      case 'plain':
        this.#expectAnswer(await this.#rest(), prompt);
        return 'answered';
      case 'works':
        this.#work.set(prompt, 'once');
        this.#expectAnswer(await this.#rest(), prompt);
        return 'worked';
      case 'edits':
        this.#expectAnswer(await this.#rest(), prompt);
        await this.#apply(prompt);
        return 'applied';
      case 'slow': {
        await sleep(random.below(600));
        await this.#calls.read('claude_code_session', { action: 'interrupt', sessionId: this.#id });
        const { result } = await this.#rest();
        // A process that does not stop in time is ended, and the caller is told what it had not read yet.
        if (/not delivered/i.test(String(result?.result))) this.#undelivered.add(prompt);
        return 'interrupted';
      }
      case 'makes':
        await this.#answer('allow', random);
        this.#made++;
        this.#expectAnswer(await this.#rest(), prompt);
        return isRuled ? 'made by a rule' : 'made';
      default: {
        const decision = random.chance(0.6) ? 'allow' : 'deny';
        this.#work.set(prompt, decision === 'allow' ? 'once' : 'never');
        await this.#answer(decision, random, kind === 'pages' ? 'page' : 'tool');
        this.#expectAnswer(await this.#rest(), prompt);
        return decision === 'allow' ? 'allowed' : 'denied';
      }
    }
  }

  /** Sent until it is known to have been taken. */
  async #say(prompt: string): Promise<void> {
    this.#prompts.push(prompt);
    for (;;) {
      const sent = await this.#calls.try('claude_code_reply', {
        sessionId: this.#id,
        prompt,
        sessionInitTimeoutMs: REST_MS,
      });
      if ('data' in sent) return;
      if (sent.refused !== 'outcome unknown') {
        await sleep(100);
        continue;
      }
      if (await this.#isTaken(prompt)) return;
    }
  }

  /**
   * Whether a message whose outcome nobody could tell has reached Claude Code. It has not if the session comes to rest;
   * one that was cut off says what was not delivered.
   */
  async #isTaken(prompt: string): Promise<boolean> {
    for (;;) {
      const { status, result } = await this.#calls.read('claude_code_check', { action: 'poll', sessionId: this.#id });
      if (this.#h.model.requests.some(({ userTexts }) => userTexts.some((said) => said.includes(prompt)))) return true;
      if (status === 'idle') return false;
      if (status === 'error') return !String(result?.result).includes('Not delivered');
      await sleep(100);
    }
  }

  async #answer(decision: 'allow' | 'deny', random: Random, where: 'tool' | 'page' = 'tool'): Promise<void> {
    for (;;) {
      const { actions, status } = await this.#wait();
      const [action] = (actions ?? []) as Json[];
      if (!action) {
        // An answer whose outcome nobody could tell had counted.
        if (status === 'idle') return;
        continue;
      }
      await sleep(random.below(800));
      const { requestId } = action;
      if (where === 'page') {
        await this.#watchers?.decide(requestId, decision);
        return;
      }
      const answer = { action: 'respond_permission', sessionId: this.#id, requestId, decision };
      const answered = await this.#calls.try('claude_code_check', answer);
      if ('data' in answered) return;
    }
  }

  /** Until the work is in the checkout that the worktree was made from. */
  async #apply(prompt: string): Promise<void> {
    const file = fileOf(prompt);
    for (;;) {
      const applied = await this.#calls.try('claude_code_session', { action: 'apply', sessionId: this.#id });
      if ('data' in applied || this.#commitsOf(file) > 0) break;
      await sleep(100);
    }
    this.#applied.push(prompt);
  }

  /** Everything that was to be done was done, once. */
  async checkAll(): Promise<void> {
    const done = linesOf(ledgerOf(this.#h, this.#name));
    for (const [line, times] of this.#work) {
      const found = done.filter((other) => other === line).length;
      strictEqual(found, times === 'once' ? 1 : 0, `${line} was done ${String(found)} times`);
    }
    strictEqual(done.length, [...this.#work.values()].filter((times) => times === 'once').length, this.#name);
    strictEqual(linesOf(join(this.#h.home, `${this.#name}.made`)).length, this.#made, `make ${this.#name}`);
    for (const prompt of this.#applied) {
      const file = fileOf(prompt);
      strictEqual(this.#commitsOf(file), 1, `${file} was applied once`);
      strictEqual(readFileSync(join(this.#h.project, file), 'utf8'), `${prompt}\n`);
    }
    // What the model saw last has every prompt, once and in order.
    const last = this.#h.model.requests.findLast(({ userTexts }) =>
      userTexts.some((said) => said.includes(`hub soak ${this.#name} `)),
    );
    const seen = (last?.userTexts ?? []).flatMap((said) => said.match(/hub soak \S+ \d+ \w+/g) ?? []);
    strictEqual(seen.join('\n'), this.#prompts.filter((prompt) => !this.#undelivered.has(prompt)).join('\n'));
    await this.#checkEvents();
  }

  /** Numbered without a gap, and one outcome for each request. */
  async #checkEvents(): Promise<void> {
    const events: Json[] = [];
    for (let cursor = 1; ;) {
      const page = await this.#calls.read('claude_code_check', {
        ...{ action: 'poll', sessionId: this.#id, cursor, responseMode: 'full', maxEvents: 200 },
      });
      ok(page.cursorResetTo === undefined, 'nothing was dropped');
      if (page.events.length === 0) break;
      events.push(...page.events);
      cursor = page.nextCursor;
    }
    events.forEach(({ id }, index) => strictEqual(id, index + 1));
    const idsOf = (kind: string): string =>
      events
        .filter(({ type }) => type === kind)
        .map(({ data }) => data.requestId)
        .sort()
        .join();
    strictEqual(idsOf('permission_result'), idsOf('permission_request'));
  }

  #commitsOf(file: string): number {
    const log = execFileSync('git', ['log', '--format=%H', '--diff-filter=A', '--', file], { cwd: this.#h.project });
    return log.toString().split('\n').length - 1;
  }

  #wait(): Promise<Json> {
    return this.#calls.read('claude_code_check', { action: 'wait', sessionId: this.#id, waitMs: WAIT_MS });
  }

  async #rest(): Promise<Json> {
    const deadline = performance.now() + REST_MS;
    for (;;) {
      const state = await this.#wait();
      if (state.status === 'idle' || state.status === 'error') return state;
      ok(performance.now() < deadline, `${this.#name} does not come to rest: ${JSON.stringify(state)}`);
    }
  }

  #expectAnswer({ status, result }: Json, prompt: string): void {
    strictEqual(status, 'idle', `${prompt}: ${JSON.stringify(result)}`);
    strictEqual(result.result, `answer to ${prompt}`);
  }
}

const STEPS = ['plain', 'works', 'works', 'asks', 'asks', 'slow'];
const WATCHED_STEPS = [...STEPS, 'pages', 'pages', 'makes', 'makes'];

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n').slice(0, -1);
  } catch {
    return [];
  }
}

function ledgerOf(h: Harness, name: string): string {
  return join(h.home, `${name}.ledger`);
}

function fileOf(prompt: string): string {
  return `${prompt.replaceAll(' ', '-')}.txt`;
}

/** The prompt says what the model does. */
function modelAnswer(h: Harness, { userTexts, toolResults }: ModelRequest): ReplyLike {
  const prompts = userTexts.flatMap((said) => said.match(/hub soak \S+ \d+ \w+/g) ?? []);
  const prompt = prompts.at(-1) ?? '';
  const [, , name = '', , kind] = prompt.split(' ');
  if (toolResults.length === 0) {
    const line = `"${ledgerOf(h, name)}" "${prompt}"`;
    if (kind === 'works') return tool('Bash', { command: `./work.sh ${line}`, description: 'work' });
    if (kind === 'makes') return tool('Bash', { command: `make ${name}`, description: 'make' });
    if (kind === 'asks' || kind === 'pages')
      return tool('Bash', { command: `sh work.sh ${line}`, description: 'work' });
    if (kind === 'edits')
      return tool('Bash', { command: `./edit.sh "${fileOf(prompt)}" "${prompt}"`, description: 'edit' });
  }
  return text(`answer to ${prompt}`).delay(kind === 'slow' ? 500 : 0);
}
