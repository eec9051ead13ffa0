/**
 * What a hub and its keeper say to each other over a local socket. A frame is four bytes of length, one byte of kind and
 * its content: JSON, or a line of a run's output or input as bytes. Runs are named by ids of 36 characters.
 */

import { createHmac, timingSafeEqual } from 'node:crypto';
import path from 'node:path';

/**
 * Raised whenever a message changes its meaning. A hub works with a keeper of this or the previous number and starts one
 * of its own for new sessions otherwise.
 */
export const KEEPER_PROTOCOL = 1;

/** Where a run's process stands, for a hub that has just arrived. */
export interface KeptRunState {
  readonly run: string;
  /** What the hub that started it wants the next one to know; the keeper does not read it. */
  readonly label: string;
  readonly pid?: number | undefined;
  /** Set once the process is gone. */
  readonly exit?: ExitState | undefined;
  /** A line on which hubs have died, and how many did. */
  readonly suspect?: { readonly line: number; readonly deaths: number } | undefined;
}

export interface ExitState {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export type FromHub =
  | { readonly t: 'prove'; readonly pid: number; readonly proof: string }
  | {
      readonly t: 'spawn';
      readonly run: string;
      readonly label: string;
      readonly command: string;
      readonly args: readonly string[];
      readonly cwd?: string | undefined;
      readonly env: Readonly<Record<string, string>>;
    }
  /** Deliver what is kept beyond this line, and everything from now on. */
  | { readonly t: 'read'; readonly run: string; readonly after: number }
  /** Lines up to `stored` are not needed any more, apart from `held`; lines up to `seen` did no harm. */
  | {
      readonly t: 'ack';
      readonly run: string;
      readonly stored: number;
      readonly seen: number;
      readonly held: readonly number[];
    }
  | { readonly t: 'stop'; readonly run: string }
  | { readonly t: 'forget'; readonly run: string }
  /** The runs that must end when no `extend` arrives for as long as the last one said. */
  | { readonly t: 'lend'; readonly runs: readonly string[] }
  | { readonly t: 'extend'; readonly ms: number }
  /** How long processes may be without a hub. */
  | { readonly t: 'keep'; readonly ms: number }
  | { readonly t: 'ping' }
  /** The hub leaves on purpose. */
  | { readonly t: 'leave' }
  /** End every process, then yourself. */
  | { readonly t: 'end' };

export type FromKeeper =
  | { readonly t: 'hello'; readonly protocol: number; readonly nonce: string }
  | { readonly t: 'refused'; readonly why: string }
  | {
      readonly t: 'welcome';
      /** The mark that everything it starts carries. */
      readonly owner: string;
      readonly runs: readonly KeptRunState[];
    }
  | { readonly t: 'spawned'; readonly run: string; readonly pid: number }
  | { readonly t: 'failed'; readonly run: string; readonly code?: string | undefined; readonly message: string }
  | { readonly t: 'stderr'; readonly run: string; readonly text: string }
  | { readonly t: 'exit'; readonly run: string; readonly exit: ExitState }
  | { readonly t: 'stopped'; readonly run: string }
  | { readonly t: 'pong' }
  | { readonly t: 'warn'; readonly line: string };

export type Frame<Message> =
  | { readonly kind: 'message'; readonly message: Message }
  /** A line of output, without its end; lines of a run are numbered from 1. */
  | { readonly kind: 'line'; readonly run: string; readonly line: number; readonly bytes: Buffer }
  /** A line of input. One with an id that was written before is not written again. */
  | { readonly kind: 'input'; readonly run: string; readonly id: string; readonly bytes: Buffer };

const KINDS = { message: 0, line: 1, input: 2 } as const;
const HEADER_BYTES = 5;
const RUN_CHARS = 36;
/** Longer than any line that Claude Code writes. */
const MAX_FRAME_BYTES = 512 * 1024 * 1024;

export function messageFrame(message: FromHub | FromKeeper): Buffer {
  return frame(KINDS.message, Buffer.from(JSON.stringify(message)));
}

export function lineFrame(run: string, line: number, bytes: Buffer): Buffer {
  const head = Buffer.alloc(RUN_CHARS + 8);
  head.write(run, 'latin1');
  head.writeDoubleBE(line, RUN_CHARS);
  return frame(KINDS.line, head, bytes);
}

export function inputFrame(run: string, id: string, bytes: Buffer): Buffer {
  const name = Buffer.from(id);
  const head = Buffer.alloc(RUN_CHARS + 2);
  head.write(run, 'latin1');
  head.writeUInt16BE(name.length, RUN_CHARS);
  return frame(KINDS.input, head, name, bytes);
}

function frame(kind: number, ...parts: readonly Buffer[]): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(parts.reduce((length, part) => length + part.length, 1));
  header[4] = kind;
  return Buffer.concat([header, ...parts]);
}

/** Takes bytes as they arrive and calls `onFrame` for each whole frame. Throws on what is no frame. */
export class FrameReader<Message> {
  readonly #onFrame: (frame: Frame<Message>) => void;
  #pieces: Buffer[] = [];
  #length = 0;
  #needed = HEADER_BYTES;

  constructor(onFrame: (frame: Frame<Message>) => void) {
    this.#onFrame = onFrame;
  }

  take(chunk: Buffer): void {
    this.#pieces.push(chunk);
    this.#length += chunk.length;
    while (this.#length >= this.#needed) {
      const [first] = this.#pieces;
      let bytes = this.#pieces.length === 1 && first ? first : Buffer.concat(this.#pieces, this.#length);
      let at = 0;
      this.#needed = HEADER_BYTES;
      while (bytes.length - at >= HEADER_BYTES) {
        const size = 4 + bytes.readUInt32BE(at);
        if (size < HEADER_BYTES || size > MAX_FRAME_BYTES) throw new Error('Not a frame of the keeper’s protocol.');
        if (bytes.length - at < size) {
          this.#needed = size;
          break;
        }
        this.#onFrame(parse<Message>(bytes.subarray(at, at + size)));
        at += size;
      }
      bytes = bytes.subarray(at);
      this.#pieces = bytes.length > 0 ? [bytes] : [];
      this.#length = bytes.length;
    }
  }
}

function parse<Message>(bytes: Buffer): Frame<Message> {
  const body = bytes.subarray(HEADER_BYTES);
  const run = (): string => body.toString('latin1', 0, RUN_CHARS);
  switch (bytes[4]) {
    case KINDS.message:
      return { kind: 'message', message: JSON.parse(body.toString('utf8')) as Message };
    case KINDS.line:
      return { kind: 'line', run: run(), line: body.readDoubleBE(RUN_CHARS), bytes: body.subarray(RUN_CHARS + 8) };
    case KINDS.input: {
      const from = RUN_CHARS + 2;
      const to = from + body.readUInt16BE(RUN_CHARS);
      return { kind: 'input', run: run(), id: body.toString('utf8', from, to), bytes: body.subarray(to) };
    }
    default:
      throw new Error('Not a frame of the keeper’s protocol.');
  }
}

/** Shows that a hub knows the keeper's secret, for this connection only. */
export function proofOf(secret: string, nonce: string): string {
  return createHmac('sha256', secret).update(`hub ${nonce}`).digest('hex');
}

export function isProof(given: string, secret: string, nonce: string): boolean {
  const expected = Buffer.from(proofOf(secret, nonce));
  const bytes = Buffer.from(given);
  return bytes.length === expected.length && timingSafeEqual(bytes, expected);
}

/** The files of a keeper, in the directory that only the hub's user can enter. */
export function keeperFiles(stateDir: string, protocol: number = KEEPER_PROTOCOL): KeeperFiles {
  const directory = path.join(stateDir, 'hub');
  return {
    directory,
    record: path.join(directory, `keeper-${String(protocol)}.json`),
    secret: path.join(directory, `keeper-${String(protocol)}-secret`),
    ended: path.join(directory, `keeper-${String(protocol)}-ended.json`),
    claim: (nonce) => path.join(directory, `keeper-claim-${nonce}`),
  };
}

export interface KeeperFiles {
  readonly directory: string;
  /** While a keeper runs: its process and its socket. */
  readonly record: string;
  readonly secret: string;
  /** What a keeper without a hub ended. */
  readonly ended: string;
  /** Held open by a hub while it connects, which shows which process it is. */
  readonly claim: (nonce: string) => string;
}

export interface KeeperRecord {
  readonly pid: number;
  readonly startTime: string;
  readonly boot: string;
  readonly socket: string;
  readonly protocol: number;
}

/** What a keeper that nobody came back to leaves behind. */
export interface EndedRecord {
  readonly at: number;
  readonly afterMs: number;
  readonly labels: readonly string[];
}
