import type { Readable, Writable } from 'node:stream';
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
class OpeningBook {
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

/** How long to wait for the client's next request before loading the rest of the server. */
const PATIENCE_MS = 250;
const NEWLINE = 0x0a;
/** No opening request is longer; anything longer is left to the library. */
const MAX_OPENING_BYTES = 256 * 1024;

/**
 * Answers the requests that open a connection, until the tools are listed or something else arrives. What the library
 * still has to see is pushed back onto `input`. Resolves with undefined if the client has already disconnected.
 */
export function openStdio(answers: OpeningAnswers, input: Readable, output: Writable): Promise<Opening | undefined> {
  const book = new OpeningBook(answers);
  const answered = new Set<unknown>();
  const replay: Buffer[] = [];
  let unread: Buffer = Buffer.alloc(0);

  return new Promise((resolve) => {
    let hasListed = false;
    const finish = (gone: boolean): void => {
      clearTimeout(timer);
      input.off('data', onData);
      input.off('end', onEnd);
      input.pause();
      if (!gone) input.unshift(Buffer.concat([...replay, unread]));
      resolve(gone ? undefined : { answered, hasListed });
    };
    const onEnd = (): void => finish(true);
    const onData = (chunk: Buffer): void => {
      timer.refresh();
      unread = unread.length === 0 ? chunk : Buffer.concat([unread, chunk]);
      for (let end = unread.indexOf(NEWLINE); end >= 0; end = unread.indexOf(NEWLINE)) {
        const line = unread.subarray(0, end + 1);
        const message = parse(line);
        const reply = book.reply(message);
        if (reply.kind === 'leave') {
          finish(false);
          return;
        }
        unread = unread.subarray(end + 1);
        if (reply.kind === 'silent' || reply.replay) replay.push(line);
        if (reply.kind !== 'answer') continue;
        if (reply.replay) answered.add(message['id']);
        else hasListed = true;
        output.write(`{"jsonrpc":"2.0","id":${JSON.stringify(message['id'])},"result":${reply.result}}\n`);
      }
      // The answer is out; the library reads whatever else is in the pipe.
      if (hasListed || unread.length > MAX_OPENING_BYTES) finish(false);
    };
    const timer = setTimeout(() => finish(false), PATIENCE_MS);
    input.on('data', onData);
    input.on('end', onEnd);
  });
}

/** Anything that is not a message cannot be answered here. */
function parse(line: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(line.toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
