/** One session of a fleet soak, as its client knows it: what one hub reported must hold at every hub. */

import { randomUUID } from 'node:crypto';
import type { ApiSessionDetail } from '../../src/schema/api.ts';
import type { ModelRequest } from '../../src/scripted-model/scripted-model.ts';
import type { ApiReply } from '../fleet/fleet.ts';
import { Violation, type FleetFront } from './fleet-front.ts';

const TIMEOUT_MS = 120_000;

interface OpenRequest {
  readonly id: string;
  /** The prompts it may belong to. */
  readonly prompts: readonly string[];
}

export class FleetSession {
  readonly #front: FleetFront;
  readonly #name: string;
  #id = '';
  /** Every prompt sent, whatever its outcome. */
  readonly #sent: string[] = [];
  /** The prompts reported as accepted. */
  readonly #accepted: string[] = [];
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
    if (reply?.status !== 201) throw new Violation(`Starting a session returned ${JSON.stringify(reply)}`);
    session.#id = reply.json.session.sessionId;
    session.#accepted.push(prompt);
    await session.#rest([prompt]);
    return session;
  }

  get id(): string {
    return this.#id;
  }

  get isWaiting(): boolean {
    return this.#open !== undefined;
  }

  /** One random step: answer an open request, send a message, or do nothing. */
  async act(): Promise<void> {
    const { random } = this.#front;
    if (this.#open) {
      if (random.chance(0.6)) await this.answer();
      return;
    }
    const kind = random.pick(['rest', 'plain', 'plain', 'slow', 'slow', 'asks', 'asks']);
    if (kind === 'rest') return;
    const prompt = await this.#say(kind);
    // If the outcome is unknown, the session shows which prompt it got.
    await this.#rest(prompt === undefined ? this.#sent : [prompt]);
  }

  async answer(): Promise<void> {
    const request = this.#open;
    if (!request) return;
    const decision = this.#front.random.pick(['allow', 'deny']);
    const body = { decision };
    let key = randomUUID();
    const where = `/requests/${request.id}/answer`;
    await this.#front.insist(`an answer to ${request.id}`, TIMEOUT_MS, async () => {
      const reply = await this.#front.call({ method: 'POST', where, body, role: 'approver', key });
      if (reply?.status === 200) return true;
      if (reply?.status === 409) {
        // Settled by an earlier attempt of ours whose reply was lost.
        if (reply.json.outcome.decision !== decision) throw new Violation(`${where}: ${JSON.stringify(reply.json)}`);
        return true;
      }
      if (reply) {
        this.#expectUnavailable(where, reply);
        this.#front.count('answers refused');
        // The same key would return the same error again.
        if (!JSON.stringify(reply.json).includes('is still carrying this out')) key = randomUUID();
      }
      return undefined;
    });
    this.#front.count(`answered ${decision}`);
    this.#decisions.set(request.id, decision);
    this.#open = undefined;
    await this.#rest(request.prompts);
  }

  /** Checks that everything reported to this client still holds, whichever hub answers. */
  async check(): Promise<void> {
    const log = await this.#front.read(`/sessions/${this.#id}/events?limit=1000`, (json) => JSON.stringify(json));
    const { queued, requests } = await this.#front.read<ApiSessionDetail>(`/sessions/${this.#id}`, (json) => json);
    const all = log + JSON.stringify(queued);
    for (const text of [...this.#accepted, ...this.#results])
      if (!all.includes(JSON.stringify(text).slice(1, -1))) throw new Violation(`Session ${this.#id} lost "${text}"`);
    const { id } = this.#open ?? {};
    if (id !== undefined && !requests.some(({ requestId }) => requestId === id))
      throw new Violation(`Session ${this.#id} lost request ${id}; it has ${JSON.stringify(requests)}`);
    for (const [requestId, decision] of this.#decisions) {
      const outcome = await this.#front.read(`/requests/${requestId}`, (json) => json.outcome ?? {});
      if (outcome.decision !== decision) throw new Violation(`Request ${requestId}: ${JSON.stringify(outcome)}`);
    }
  }

  /** Checks that the model got each message at most once, both as a new prompt and in the history. */
  checkModelRequests(requests: readonly ModelRequest[]): void {
    const own = requests.filter(({ sessionId, auxiliary }) => sessionId === this.#id && !auxiliary);
    for (const prompt of this.#sent) {
      const first = own.filter(({ lastUserText, toolResults }) => lastUserText === prompt && toolResults.length === 0);
      if (first.length > 1) throw new Violation(`"${prompt}" was sent to the model ${first.length} times`);
      if (own.some(({ userTexts }) => userTexts.filter((text) => text === prompt).length > 1))
        throw new Violation(`"${prompt}" is in one conversation twice`);
    }
  }

  #nextPrompt(kind: string): string {
    const prompt = `fleet ${this.#name} ${this.#sent.length} ${kind}`;
    this.#sent.push(prompt);
    return prompt;
  }

  /** The accepted message; undefined if the outcome is unknown. */
  #say(kind: string): Promise<string | undefined> {
    return this.#front
      .insist(`a message to ${this.#id}`, TIMEOUT_MS, async () => {
        const prompt = this.#nextPrompt(kind);
        const outcome = await this.#send(prompt);
        this.#front.count(`messages ${outcome}`);
        if (outcome === 'taken') this.#accepted.push(prompt);
        return outcome === 'refused' ? undefined : { prompt, outcome };
      })
      .catch((error: unknown) => {
        throw new Violation(`${String(error)}\n${this.#front.refusals(this.#id)}`);
      })
      .then(({ prompt, outcome }) => (outcome === 'taken' ? prompt : undefined));
  }

  /** Retries with one key until a hub gives an outcome; sometimes through two hubs at once. */
  async #send(prompt: string): Promise<'taken' | 'refused' | 'unknown' | 'too late'> {
    const { random } = this.#front;
    const where = `/sessions/${this.#id}/messages`;
    const call = { method: 'POST', where, body: { prompt }, key: randomUUID() } as const;
    const attempts = random.chance(0.3) ? [1, 2] : [1];
    return this.#front.insist(`an answer to ${where}`, TIMEOUT_MS, async () => {
      const replies = await Promise.all(attempts.map(() => this.#front.call(call)));
      if (replies.some((reply) => reply?.status === 200)) return 'taken';
      // An attempt whose reply was lost was carried out after all, and now waits for a permission.
      if (replies.some((reply) => reply?.json.error.code === 'SESSION_BUSY')) return 'too late';
      const texts = replies.flatMap((reply) => (reply ? [this.#expectUnavailable(where, reply)] : []));
      if (texts.some((text) => /outcome is unknown/i.test(text))) return 'unknown';
      return texts.some((text) => !text.includes('is still carrying this out')) ? 'refused' : undefined;
    });
  }

  #expectUnavailable(where: string, { status, json }: ApiReply): string {
    if (status !== 503) throw new Violation(`${where} returned ${status}: ${JSON.stringify(json)}`);
    return String(json.error.message);
  }

  /** Waits until one of the messages is answered, asks for a permission, or was stopped with its hub. */
  async #rest(prompts: readonly string[]): Promise<void> {
    // The answer may be followed by a note about a call that was allowed while no process was running.
    const answerIn = (text: string | undefined): string | undefined =>
      prompts.map(answerTo).find((answer) => text?.split('\n\n')[0] === answer);
    const { status, requests, result } = await this.#front.read<ApiSessionDetail>(`/sessions/${this.#id}`, (json) => {
      const session = json as ApiSessionDetail;
      if (session.status === 'waiting_permission' && session.requests.length > 0) return session;
      if (session.status === 'idle' && answerIn(session.result?.result) === undefined) {
        // The result of an attempt whose reply was lost.
        this.#front.count('reads of an older result');
        return undefined;
      }
      return session.status === 'idle' || session.status === 'error' ? session : undefined;
    });
    this.#front.count(status === 'error' ? 'turns stopped with their hub' : `turns ${status}`);
    // A process that was about to start when its hub lost the store says that it has to be tried again.
    const isNamed = result?.errorSubtype === 'start_failed' ? /try again/i : /reply (to continue|resumes)/i;
    if (status === 'error' && !isNamed.test(String(result?.result)))
      throw new Violation(`Session ${this.#id} failed: ${JSON.stringify(result)}`);
    if (status === 'idle') this.#results.push(answerIn(result?.result) ?? '');
    const [request] = requests;
    if (status === 'waiting_permission' && request) this.#open = { id: request.requestId, prompts };
  }
}

export function answerTo(prompt: string): string {
  return `answer to ${prompt}`;
}
