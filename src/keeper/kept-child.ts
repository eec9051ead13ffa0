import { EventEmitter } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import type { HeldChild } from '../platform/process-home.ts';
import type { ExitState } from './protocol.ts';

/** How a child reaches its keeper. */
export interface Wire {
  input(run: string, id: string, bytes: Buffer): void;
  acknowledge(run: string, stored: number, seen: number, held: readonly number[]): void;
  everStored(): Promise<void> | undefined;
}

/** Put into each object that Claude Code writes, so that whoever gets it knows where it stood. */
const LINE_FIELD = '__line';

const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
/** Claude Code says first what a message is. */
const TYPE_WITHIN = 64;

/** A process that a keeper holds, as the driver sees it. */
export class KeptChild extends EventEmitter implements HeldChild {
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly stdin: Writable;
  readonly killed = false;
  exitCode: number | null = null;
  signalCode: NodeJS.Signals | null = null;
  readonly #run: string;
  readonly #wire: Wire;
  #pid: number | undefined;
  /** By request id, the lines of requests that have no answer yet. */
  readonly #open = new Map<string, number>();
  /** The last line that was passed on, the last that was dealt with, and the last whose effects are stored. */
  #received: number;
  #processed: number;
  #stored: number;
  #storing: Promise<void> | undefined;
  #isAbandoned = false;

  constructor(run: string, wire: Wire, pid: number | undefined, after: number) {
    super();
    this.#run = run;
    this.#wire = wire;
    this.#pid = pid;
    this.#received = after;
    this.#processed = after;
    this.#stored = after;
    this.stdin = new Writable({
      decodeStrings: false,
      write: (chunk: string | Buffer, _encoding, done) => {
        this.#write(chunk.toString());
        done();
      },
    });
  }

  get pid(): number | undefined {
    return this.#pid;
  }

  /** The last line that was dealt with, and the run it belongs to. */
  get position(): { readonly run: string; readonly line: number } {
    return { run: this.#run, line: this.#processed };
  }

  /** Undefined for a message that was not numbered. */
  takeLine(message: object): number | undefined {
    const { [LINE_FIELD]: line } = message as Record<string, unknown>;
    if (typeof line !== 'number') return undefined;
    Reflect.deleteProperty(message, LINE_FIELD);
    return line;
  }

  /** The keeper ends it, when it is told to; the SDK's own attempts to clean up would end it with the hub. */
  kill(): boolean {
    return true;
  }

  // ── from the keeper ────────────────────────────────────────────────────────────────────────────────────────────

  spawned(pid: number): void {
    this.#pid = pid;
  }

  failed(message: string, code: string | undefined): void {
    const error: NodeJS.ErrnoException = new Error(message);
    if (code !== undefined) Object.assign(error, { code, syscall: 'spawn' });
    this.emit('error', error);
    this.ended({ code: -1, signal: null });
  }

  line(line: number, bytes: Buffer): void {
    this.#received = Math.max(this.#received, line);
    this.#noteRequest(line, bytes);
    this.stdout.write(numbered(line, bytes));
  }

  ended({ code, signal }: ExitState): void {
    if (this.exitCode !== null || this.signalCode !== null) return;
    this.exitCode = code;
    this.signalCode = signal;
    this.stdout.end();
    this.stderr.end();
    setImmediate(() => {
      this.emit('exit', code, signal);
      this.emit('close', code, signal);
    });
  }

  // ── from the hub ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Everything that this line causes has been caused. It is acknowledged once that is stored. */
  processed(line: number): void {
    this.#processed = Math.max(this.#processed, line);
    this.#acknowledgeWhenStored();
  }

  /** Nothing is acknowledged any more: the next hub reads on from what is stored. */
  abandon(): void {
    this.#isAbandoned = true;
  }

  #acknowledgeWhenStored(): void {
    if (this.#storing || this.#isAbandoned) return;
    const upTo = this.#processed;
    const stored = this.#wire.everStored();
    if (!stored) return this.#acknowledge(upTo);
    this.#storing = stored.then(() => {
      this.#storing = undefined;
      this.#acknowledge(upTo);
      if (this.#processed > upTo) this.#acknowledgeWhenStored();
    });
  }

  #acknowledge(stored: number): void {
    if (this.#isAbandoned) return;
    this.#stored = Math.max(this.#stored, stored);
    const held = [...this.#open.values()].filter((line) => line <= this.#stored);
    this.#wire.acknowledge(this.#run, this.#stored, this.#processed, held);
  }

  /** A request that has no answer is delivered again to the next hub, however much was said since. */
  #noteRequest(line: number, bytes: Buffer): void {
    const type = bytes.toString('latin1', 0, TYPE_WITHIN);
    if (!type.includes('"control_')) return;
    try {
      const { type: kind, request_id: id } = JSON.parse(bytes.toString('utf8')) as {
        type?: string;
        request_id?: string;
      };
      if (id === undefined) return;
      if (kind === 'control_request') this.#open.set(id, line);
      else if (kind === 'control_cancel_request') this.#open.delete(id);
    } catch {
      // Not what it looked like.
    }
  }

  #write(text: string): void {
    const { id, answers } = idOf(text);
    this.#wire.input(this.#run, id, Buffer.from(text));
    if (answers !== undefined && this.#open.delete(answers)) this.#acknowledge(this.#stored);
  }
}

/** What the keeper recognises a message by: what a hub may say again, it says under the same id. */
function idOf(text: string): { id: string; answers?: string } {
  try {
    const message = JSON.parse(text) as { type?: string; uuid?: string; response?: { request_id?: string } };
    if (message.type === 'user' && message.uuid !== undefined) return { id: message.uuid };
    const answers = message.type === 'control_response' ? message.response?.request_id : undefined;
    return answers === undefined ? { id: '' } : { id: `answer ${answers}`, answers };
  } catch {
    return { id: '' };
  }
}

function numbered(line: number, bytes: Buffer): Buffer {
  const isObject = bytes[0] === OPENING_BRACE && bytes[1] !== CLOSING_BRACE;
  if (!isObject) return Buffer.concat([bytes, Buffer.from('\n')]);
  return Buffer.concat([Buffer.from(`{"${LINE_FIELD}":${String(line)},`), bytes.subarray(1), Buffer.from('\n')]);
}
