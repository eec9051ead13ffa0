/** A loopback server that speaks the Anthropic Messages API and answers from scripts. */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { automaticAnswer, classify, costUsd, Ledger, type UnexpectedRequest } from './ledger.ts';
import { isFields, readModelRequest, type Fields, type AuxiliaryPurpose, type ModelRequest } from './model-request.ts';
import { deliver, sendError, sendJson } from './deliver.ts';
import { ConversationScript, findScript, type Match, type Script, type Answer } from './script.ts';

export type { AuxiliaryPurpose, Match, ModelRequest, Script, UnexpectedRequest };

export interface ScriptedModelOptions {
  /** `none` keeps no requests, so that a benchmark does not grow without bound. */
  readonly record?: 'all' | 'none';
}

export interface ScriptedModel {
  readonly url: string;
  /** Variables that point the CLI here. `PATH`, `HOME` and `CLAUDE_CONFIG_DIR` are the caller's to add. */
  env(): Record<string, string>;
  /**
   * A script for a conversation. The texts of a request are tried from the last to the first; the script that
   * matches takes the request, the latest registered among several. A string matches a text that includes it.
   */
  on(match: Match): Script;
  /** Replaces the automatic answer to requests that the CLI makes on its own, until it is used up. */
  onAuxiliary(purpose: AuxiliaryPurpose): Script;
  readonly requests: readonly ModelRequest[];
  requestsFor(script: Script): readonly ModelRequest[];
  readonly unexpected: readonly UnexpectedRequest[];
  /** Throws if the model was asked something that no script expected. */
  assertAllExpected(): void;
  /** What the replies that were sent whole cost at the CLI's own prices, overall or for one script. */
  chargedUsd(script?: Script): number;
  /** Destroys all connections, and with them what hangs or waits at a gate. */
  close(): Promise<void>;
}

export async function startScriptedModel(options: ScriptedModelOptions = {}): Promise<ScriptedModel> {
  const model = new ScriptedModelServer(options);
  await model.listen();
  return model;
}

/** The CLI considers it final: after 400 it would ask again with fewer betas, after 404 without streaming. */
const UNEXPECTED_STATUS = 418;

class ScriptedModelServer implements ScriptedModel {
  // Idle connections stay open: the CLI would lose a request if the server closed one just then.
  readonly #server = createServer({ noDelay: true, keepAliveTimeout: 0 });
  readonly #ledger: Ledger;
  readonly #scripts: ConversationScript[] = [];
  readonly #auxiliaryScripts = new Map<ModelRequest['purpose'], ConversationScript>();
  #requestCount = 0;
  #url = '';

  constructor({ record = 'all' }: ScriptedModelOptions) {
    this.#ledger = new Ledger(record === 'all');
    this.#server.on('request', (incoming, response) => {
      // A client that disconnects is not the model's fault.
      this.#serve(incoming, response).catch(() => response.destroy());
    });
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return this.#url;
  }

  get requests(): readonly ModelRequest[] {
    return this.#ledger.requests;
  }

  get unexpected(): readonly UnexpectedRequest[] {
    return this.#ledger.unexpected;
  }

  env(): Record<string, string> {
    return {
      ANTHROPIC_BASE_URL: this.#url,
      ANTHROPIC_API_KEY: 'scripted-model',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      IS_SANDBOX: '1',
    };
  }

  on(match: Match): Script {
    const script = new ConversationScript(match);
    this.#scripts.push(script);
    return script;
  }

  onAuxiliary(purpose: AuxiliaryPurpose): Script {
    const script = new ConversationScript((request) => request.purpose === purpose);
    this.#auxiliaryScripts.set(purpose, script);
    return script;
  }

  requestsFor(script: Script): readonly ModelRequest[] {
    return this.#ledger.requestsFor(script);
  }

  assertAllExpected(): void {
    if (this.unexpected.length === 0) return;
    const summaries = this.unexpected.map(({ summary }) => summary);
    throw new Error(`The model was asked what no script expects:\n${summaries.join('\n')}`);
  }

  chargedUsd(script?: Script): number {
    return this.#ledger.usd(script);
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = incoming.url ?? '/';
    const body = await readBody(incoming);
    const id = `req_scripted_${++this.#requestCount}`;
    // The CLI checks whether the host is there with HEAD /api/hello.
    if (incoming.method === 'HEAD') return sendJson(response, 200, {});
    if (incoming.method !== 'POST' || !path.startsWith('/v1/messages')) return sendError(response, id, 404);
    if (body === undefined) return sendError(response, id, 400, { message: 'the body is not a JSON object' });

    const request = classify(readModelRequest({ id, path, headers: incoming.headers, body }));
    this.#ledger.record(request);
    if (request.purpose === 'token-count') return sendJson(response, 200, { input_tokens: estimateTokens(body) });
    return this.#respond(request, response);
  }

  async #respond(request: ModelRequest, response: ServerResponse): Promise<void> {
    let script: ConversationScript | undefined;
    let answer: Answer | undefined;
    try {
      script = this.#scriptFor(request);
      if (script !== undefined) this.#ledger.assign(request, script);
      answer = script?.take(request) ?? automaticAnswer(request);
    } catch (error) {
      return this.#reject(`${script?.name ?? 'a match'} threw ${String(error)}`, request, response);
    }
    if (answer === undefined) {
      return this.#reject(script === undefined ? 'no script matches' : `${script.name} is used up`, request, response);
    }
    const message = await deliver(answer, request, response);
    if (message !== undefined) this.#ledger.charge(costUsd(request.model, message.usage), script);
  }

  #scriptFor(request: ModelRequest): ConversationScript | undefined {
    return request.auxiliary ? this.#auxiliaryScripts.get(request.purpose) : findScript(this.#scripts, request);
  }

  /** A forgotten script ends the session at once. */
  #reject(reason: string, request: ModelRequest, response: ServerResponse): void {
    const { summary } = this.#ledger.reject(request, reason);
    sendError(response, request.id, UNEXPECTED_STATUS, {
      message: `The scripted model did not expect this request. ${summary}`,
    });
  }
}

async function readBody(incoming: IncomingMessage): Promise<Fields | undefined> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  try {
    const body: unknown = JSON.parse(Buffer.concat(pieces).toString('utf8'));
    return isFields(body) ? body : undefined;
  } catch {
    return undefined;
  }
}

function estimateTokens(body: Fields): number {
  return Math.ceil(JSON.stringify(body).length / 4);
}
