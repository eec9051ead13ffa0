import type { OpeningAnswers } from './opening-answers.ts';
import { isObject } from '../schema/json.ts';

/*
 * Loading the protocol library and building its schemas takes longer than starting Node. The requests that every client
 * opens with always have the same answers, so they come from a record made at build time, and the library is loaded
 * afterwards. Anything else is left to the library, along with what it needs to know about the requests before.
 */

export interface Opening {
  /** Requests answered here that the library has to see too; its own answers to them are not sent. */
  readonly answered: ReadonlySet<unknown>;
  readonly hasListed: boolean;
}

interface Message {
  jsonrpc?: unknown;
  id?: unknown;
  method?: unknown;
  params?: unknown;
}

type Reply = { kind: 'answer'; result: string; replay: boolean } | { kind: 'silent' } | { kind: 'leave' };

const LEAVE: Reply = { kind: 'leave' };
const META = 'io.modelcontextprotocol/';

/** The state of a connection that is being opened. */
export class OpeningBook {
  readonly #answers: OpeningAnswers;
  #initialized = false;

  constructor(answers: OpeningAnswers) {
    this.#answers = answers;
  }

  reply(message: Message): Reply {
    const { jsonrpc, id, method, params = {} } = message;
    if (jsonrpc !== '2.0' || !isObject(params)) return LEAVE;
    if (id === undefined)
      return method === 'notifications/initialized' && this.#initialized ? { kind: 'silent' } : LEAVE;
    if (typeof id !== 'string' && typeof id !== 'number') return LEAVE;
    switch (method) {
      case 'initialize':
        return this.#initialize(params);
      case 'server/discover':
        return this.#isModern(params) ? answer(this.#answers.modern.discover, true) : LEAVE;
      case 'tools/list':
        if (this.#isModern(params)) return answer(this.#answers.modern.listTools, false);
        if (!this.#initialized || Object.keys(params).some((key) => key !== '_meta') || hasEnvelope(params))
          return LEAVE;
        return answer(this.#answers.legacy.listTools, false);
      default:
        return LEAVE;
    }
  }

  #initialize(params: Record<string, unknown>): Reply {
    const { protocolVersion, capabilities, clientInfo } = params;
    const { versions, initialize } = this.#answers.legacy;
    if (this.#initialized || typeof protocolVersion !== 'string' || !versions.includes(protocolVersion)) return LEAVE;
    if (!isClient(clientInfo) || !areCapabilities(capabilities) || hasEnvelope(params)) return LEAVE;
    this.#initialized = true;
    return answer(`{"protocolVersion":${JSON.stringify(protocolVersion)},${initialize.slice(1)}`, true);
  }

  #isModern(params: Record<string, unknown>): boolean {
    const { _meta: meta, ...rest } = params;
    return (
      !this.#initialized &&
      Object.keys(rest).length === 0 &&
      isObject(meta) &&
      this.#answers.modern.versions.includes(String(meta[`${META}protocolVersion`])) &&
      isClient(meta[`${META}clientInfo`]) &&
      areCapabilities(meta[`${META}clientCapabilities`])
    );
  }
}

function answer(result: string, replay: boolean): Reply {
  return { kind: 'answer', result, replay };
}

function hasEnvelope({ _meta: meta }: Record<string, unknown>): boolean {
  return meta !== undefined && (!isObject(meta) || Object.keys(meta).some((key) => key.startsWith(META)));
}

function isClient(value: unknown): boolean {
  return isObject(value) && typeof value['name'] === 'string' && typeof value['version'] === 'string';
}

function areCapabilities(value: unknown): boolean {
  return isObject(value) && Object.values(value).every(isObject);
}
