import type { IncomingMessage } from 'node:http';
import { HttpRefusal } from './route.ts';

/** As deep as the arguments of a tool may be. */
const MAX_LEVELS = 100;
/** Limit for all bodies being read at once. */
const MAX_BYTES_IN_FLIGHT = 64 * 1024 * 1024;

/** Reads bodies so that no client can make the hub hold more than this. */
export class BodyReader {
  #inFlight = 0;

  /**
   * The whole body, or a refusal as soon as it exceeds its limit. Node's `requestTimeout` ends one that trickles in.
   */
  async read(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
    const announced = Number(request.headers['content-length'] ?? 0);
    if (announced > maxBytes) throw tooLarge(maxBytes);
    const pieces: Buffer[] = [];
    let size = 0;
    try {
      for await (const piece of request as AsyncIterable<Buffer>) {
        size += piece.length;
        this.#inFlight += piece.length;
        if (size > maxBytes) throw tooLarge(maxBytes);
        if (this.#inFlight > MAX_BYTES_IN_FLIGHT)
          throw new HttpRefusal(503, 'UNAVAILABLE', 'The hub is reading too much at once; try again.', {
            'retry-after': '1',
          });
        pieces.push(piece);
      }
    } finally {
      this.#inFlight -= size;
    }
    return Buffer.concat(pieces);
  }
}

/** Whether a request has a body, by its headers. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** JSON in UTF-8, with limited nesting. */
export function parseJson(bytes: Buffer): unknown {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new HttpRefusal(400, 'INVALID_ARGUMENT', 'The body is not UTF-8.');
  }
  if (levelsOf(text) > MAX_LEVELS)
    throw new HttpRefusal(400, 'INVALID_ARGUMENT', `The body is nested deeper than ${MAX_LEVELS} levels.`);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new HttpRefusal(400, 'INVALID_ARGUMENT', 'The body is not JSON.');
  }
}

/** Parsing would recurse before it could notice. */
function levelsOf(text: string): number {
  let [depth, deepest] = [0, 0];
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) index = endOfString(text, index);
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) deepest = Math.max(deepest, ++depth);
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth--;
  }
  return deepest;
}

function endOfString(text: string, start: number): number {
  for (let index = start + 1; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === BACKSLASH) index++;
    else if (code === QUOTE) return index;
  }
  return text.length;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Nothing that a caller sends is silently dropped or misinterpreted: a body with such a key is refused. */
export function refuseProtoKeys(value: unknown): void {
  const pending: unknown[] = [value];
  for (let next = pending.pop(); next !== undefined || pending.length > 0; next = pending.pop()) {
    if (typeof next !== 'object' || next === null) continue;
    if (Object.hasOwn(next, '__proto__'))
      throw new HttpRefusal(400, 'INVALID_ARGUMENT', 'The body has a key named __proto__, which is not allowed.');
    for (const child of Object.values(next as Record<string, unknown>)) pending.push(child);
  }
}

function tooLarge(maxBytes: number): HttpRefusal {
  return new HttpRefusal(413, 'TOO_LARGE', `The body may have at most ${maxBytes} bytes.`, { connection: 'close' });
}
