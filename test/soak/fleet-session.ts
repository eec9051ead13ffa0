/** One session of the soak of several hubs, as a client knows it: what it was told must stay true through every hub. */

import { randomUUID } from 'node:crypto';
import type { ApiSessionDetail } from '../../src/schema/api.ts';
import type { ModelRequest } from '../../src/scripted-model/scripted-model.ts';
import type { ApiReply } from '../fleet/fleet.ts';
import { Violation, type FleetFront } from './fleet-front.ts';

const PATIENCE_MS = 120_000;

interface OpenRequest {
  readonly id: string;
  /** What it may belong to. */
  readonly prompts: readonly string[];
}

export class FleetSession {
  readonly #front: FleetFront;
  readonly #name: string;
  #id = '';
  /** Every text that was sent, whatever became of it. */
  readonly #sent: string[] = [];
  /** What a client was told was handed over. */
  readonly #taken: string[] = [];
  readonly #results: string[] = [];
  readonly #decisions = new Map<string, string>();
  #open: OpenRequest | undefined;

  private constructor(front: FleetFront, name: string) {
    this.#front = front;
    this.#name = name;
  }

  static async start(front: FleetFront, name: string, cwd: string): Promise<FleetSession> {
    const session = new FleetSession(front, name);
    const prompt = session.#nextPrompt('plain');
    const body = { prompt, cwd };
    const reply = await front.call({ method: 'POST', where: '/sessions', body, key: randomUUID() });
    if (reply?.status !== 201) throw new Violation(`A start was answered ${JSON.stringify(reply)}`);
    session.#id = reply.json.session.sessionId;
    session.#taken.push(prompt);
    await session.#rest([prompt]);
    return session;
  }

  get id(): string {
    return this.#id;
  }

  get isWaiting(): boolean {
    return this.#open !== undefined;
  }

  /** Whatever comes next: an answer to what waits, a message of some kind, or a rest. */
  async act(): Promise<void> {
    const { random } = this.#front;
    if (this.#open) {
      if (random.chance(0.6)) await this.answer();
      return;
    }
    const kind = random.pick(['rest', 'plain', 'plain', 'slow', 'slow', 'asks', 'asks']);
    if (kind === 'rest') return;
    const prompt = await this.#say(kind);
    // Where nobody knows what was done, the session tells.
    await this.#rest(prompt === undefined ? this.#sent : [prompt]);
  }

  async answer(): Promise<void> {
    const request = this.#open;
    if (!request) return;
    const decision = this.#front.random.pick(['allow', 'deny']);
    const body = { decision };
    let key = randomUUID();
    const where = `/requests/${request.id}/answer`;
    await this.#front.insist(`an answer to ${request.id}`, PATIENCE_MS, async () => {
      const reply = await this.#front.call({ method: 'POST', where, body, role: 'approver', key });
      if (reply?.status === 200) return true;
      if (reply?.status === 409) {
        // Settled by an attempt of ours that nobody told us of.
        if (reply.json.outcome.decision !== decision) throw new Violation(`${where}: ${JSON.stringify(reply.json)}`);
        return true;
      }
      if (reply) {
        this.#expectUnavailable(where, reply);
        this.#front.count('answers refused');
        // The same key would be told the same again.
        if (!JSON.stringify(reply.json).includes('is still carrying this out')) key = randomUUID();
      }
      return undefined;
    });
    this.#front.count(`answered ${decision}`);
    this.#decisions.set(request.id, decision);
    this.#open = undefined;
    await this.#rest(request.prompts);
  }

  /** All that this client was told is still so, whichever hub it asks. */
  async check(): Promise<void> {
    const log = await this.#front.read(`/sessions/${this.#id}/events?limit=1000`, (json) => JSON.stringify(json));
    const { queued, requests } = await this.#front.read<ApiSessionDetail>(`/sessions/${this.#id}`, (json) => json);
    const all = log + JSON.stringify(queued);
    for (const told of [...this.#taken, ...this.#results])
      if (!all.includes(JSON.stringify(told).slice(1, -1))) throw new Violation(`Session ${this.#id} lost "${told}"`);
    const { id } = this.#open ?? {};
    if (id !== undefined && !requests.some(({ requestId }) => requestId === id))
      throw new Violation(`Session ${this.#id} lost request ${id}; it has ${JSON.stringify(requests)}`);
    for (const [requestId, decision] of this.#decisions) {
      const outcome = await this.#front.read(`/requests/${requestId}`, (json) => json.outcome ?? {});
      if (outcome.decision !== decision) throw new Violation(`Request ${requestId}: ${JSON.stringify(outcome)}`);
    }
  }

  /** What the model was asked: each message at most once, alone and in the history of the others. */
  checkAsked(asked: readonly ModelRequest[]): void {
    const own = asked.filter(({ sessionId, auxiliary }) => sessionId === this.#id && !auxiliary);
    for (const prompt of this.#sent) {
      const first = own.filter(({ lastUserText, toolResults }) => lastUserText === prompt && toolResults.length === 0);
      if (first.length > 1) throw new Violation(`"${prompt}" was asked ${first.length} times`);
      if (own.some(({ userTexts }) => userTexts.filter((text) => text === prompt).length > 1))
        throw new Violation(`"${prompt}" is twice in one conversation`);
    }
  }

  #nextPrompt(kind: string): string {
    const prompt = `fleet ${this.#name} ${this.#sent.length} ${kind}`;
    this.#sent.push(prompt);
    return prompt;
  }

  /** The message that was taken; undefined where nobody knows whether one was. */
  #say(kind: string): Promise<string | undefined> {
    return this.#front
      .insist(`a message to ${this.#id}`, PATIENCE_MS, async () => {
        const prompt = this.#nextPrompt(kind);
        const outcome = await this.#send(prompt);
        this.#front.count(`messages ${outcome}`);
        if (outcome === 'taken') this.#taken.push(prompt);
        return outcome === 'refused' ? undefined : { prompt, outcome };
      })
      .catch((error: unknown) => {
        throw new Violation(`${String(error)}\n${this.#front.refusals(this.#id)}`);
      })
      .then(({ prompt, outcome }) => (outcome === 'taken' ? prompt : undefined));
  }

  /** With one key, until somebody has answered; now and then through two hubs at once. */
  async #send(prompt: string): Promise<'taken' | 'refused' | 'unknown' | 'too late'> {
    const { random } = this.#front;
    const where = `/sessions/${this.#id}/messages`;
    const call = { method: 'POST', where, body: { prompt }, key: randomUUID() } as const;
    const attempts = random.chance(0.3) ? [1, 2] : [1];
    return this.#front.insist(`an answer to ${where}`, PATIENCE_MS, async () => {
      const replies = await Promise.all(attempts.map(() => this.#front.call(call)));
      if (replies.some((reply) => reply?.status === 200)) return 'taken';
      // One of those that nobody answered for was done after all, and has a person asked.
      if (replies.some((reply) => reply?.json.error.code === 'SESSION_BUSY')) return 'too late';
      const texts = replies.flatMap((reply) => (reply ? [this.#expectUnavailable(where, reply)] : []));
      if (texts.some((text) => /outcome is unknown/i.test(text))) return 'unknown';
      return texts.some((text) => !text.includes('is still carrying this out')) ? 'refused' : undefined;
    });
  }

  #expectUnavailable(where: string, { status, json }: ApiReply): string {
    if (status !== 503) throw new Violation(`${where} was answered ${status}: ${JSON.stringify(json)}`);
    return String(json.error.message);
  }

  /** Until one of the messages is answered, asks for a permission, or was stopped with its hub. */
  async #rest(prompts: readonly string[]): Promise<void> {
    // Behind it may stand what became of a call that was allowed while nobody was there to make it.
    const answerIn = (told: string | undefined): string | undefined =>
      prompts.map(answerTo).find((answer) => told?.split('\n\n')[0] === answer);
    const { status, requests, result } = await this.#front.read<ApiSessionDetail>(`/sessions/${this.#id}`, (json) => {
      const session = json as ApiSessionDetail;
      if (session.status === 'waiting_permission' && session.requests.length > 0) return session;
      if (session.status === 'idle' && answerIn(session.result?.result) === undefined) {
        // An attempt that nobody told of may have been answered since.
        this.#front.count('reads of an older result');
        return undefined;
      }
      return session.status === 'idle' || session.status === 'error' ? session : undefined;
    });
    this.#front.count(status === 'error' ? 'turns stopped with their hub' : `turns ${status}`);
    if (status === 'error' && !/reply (to continue|resumes)/i.test(String(result?.result)))
      throw new Violation(`Session ${this.#id} failed: ${JSON.stringify(result)}`);
    if (status === 'idle') this.#results.push(answerIn(result?.result) ?? '');
    const [request] = requests;
    if (status === 'waiting_permission' && request) this.#open = { id: request.requestId, prompts };
  }
}

export function answerTo(prompt: string): string {
  return `answer to ${prompt}`;
}
