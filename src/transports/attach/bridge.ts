import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import type { Settings } from '../../config/load-settings.ts';
import { FrameReader } from '../frame-reader.ts';
import type { Opening } from '../opening.ts';
import type { AttachedHub } from './connect-hub.ts';
import { IDEMPOTENCY_META_KEY } from '../../schema/enums.ts';
import { answerInstead, type Away } from './hub-away.ts';

const MAX_FRAME_BYTES = 64 * 1024 * 1024;
/** How long a call waits for a hub that is being restarted. */
const PATIENCE_MS = 10_000;
/** After this long without a word from the hub while a call waits for it, the hub is asked whether it is still there. */
const QUIET_MS = 10_000;
/** A busy hub may miss one question. */
const QUESTIONS = 2;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 500;
const TELL_EVERY_MS = 3_000;
const ENVELOPE = 'io.modelcontextprotocol/protocolVersion';

export interface BridgeOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly toolset: Settings['toolset'];
  /** What the client was already told before the hub was asked. */
  readonly opening: Opening | undefined;
  /** Reconnects to the hub after it went away. Rejects with why it cannot. */
  readonly reattach: () => Promise<AttachedHub>;
  /** Whether the hub responds, asked outside this connection. Does not wait long, and never rejects. */
  readonly responds: () => Promise<boolean>;
  /** For tests: a shorter time. */
  readonly quietMs?: number;
  readonly log: (level: 'info' | 'warn', line: string) => void;
}

interface Message {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: unknown;
  readonly result?: unknown;
}

interface UnderWay {
  readonly method: string;
  readonly isModern: boolean;
  /** What the hub gets, and the next one if this one goes away. A call in it has a key, so that it is carried out once. */
  readonly line: string;
  readonly progress: Progress | undefined;
}

interface Queued extends UnderWay {
  readonly timer: NodeJS.Timeout;
  /** It was sent to a hub before. */
  readonly wasSent: boolean;
}

/** What a client was told of a call's progress. Numbers must rise, also over several hubs. */
interface Progress {
  readonly token: unknown;
  told: number;
  before: number;
}

type State =
  | { kind: 'attached'; socket: Socket; version: string }
  /** Connected, but the hub does not respond: it is suspended, or hangs. */
  | { kind: 'silent'; socket: Socket; version: string }
  | { kind: 'away'; why: string }
  | { kind: 'closed' };

/**
 * Passes one client through to the hub, line by line. When the hub goes away it reconnects, repeats the client's handshake
 * and sends requests in progress again; they are answered from here only if no hub comes back in time.
 */
export class Bridge {
  readonly #options: BridgeOptions;
  readonly #reader: FrameReader;
  /** Client requests that the hub has not answered. */
  readonly #underWay = new Map<unknown, UnderWay>();
  /** Requests waiting for the hub to come back, in order. */
  readonly #queue = new Map<unknown, Queued>();
  /** Hub requests that the client has not answered. */
  readonly #asked = new Set<unknown>();
  /** The hub's answers to these are not forwarded: the client already has one. */
  readonly #unwanted: Set<unknown>;
  /** Lines that a new hub must see before all others. */
  readonly #handshake: string[] = [];
  /** Subscriptions of the client, which outlive a hub. */
  readonly #subscriptions = new Map<unknown, string>();
  #state: State = { kind: 'away', why: 'it is not connected yet' };
  #isLegacy = false;
  #heardAt = 0;
  #watching: NodeJS.Timeout | undefined;
  /** While the hub is away. */
  #telling: NodeJS.Timeout | undefined;

  constructor(options: BridgeOptions) {
    this.#options = options;
    this.#unwanted = new Set(options.opening?.answered);
    this.#reader = new FrameReader(
      MAX_FRAME_BYTES,
      (line) => this.#fromClient(line),
      () =>
        this.#toClient(
          `{"jsonrpc":"2.0","error":{"code":-32600,"message":"A frame may have ${MAX_FRAME_BYTES} bytes"}}`,
        ),
    );
  }

  start(hub: AttachedHub): void {
    this.#attach(hub);
    this.#options.input.on('data', (chunk: Buffer) => this.#reader.take(chunk));
    this.#options.input.resume();
  }

  /** Idempotent. */
  close(): void {
    if (isConnected(this.#state)) this.#state.socket.end();
    this.#state = { kind: 'closed' };
    clearTimeout(this.#watching);
    clearInterval(this.#telling);
    for (const { timer } of this.#queue.values()) clearTimeout(timer);
  }

  // ── from the client ────────────────────────────────────────────────────────────────────────────────────────────

  #fromClient(line: string): void {
    const message = parse(line);
    const request = message?.method !== undefined && message.id !== undefined ? underWay(message, line) : undefined;
    if (message?.method !== undefined) this.#noteClientMessage(message, line, request);
    else if (message?.id !== undefined && !this.#asked.delete(message.id)) return;
    // A silent hub would carry out later what its client was told has failed.
    if (this.#state.kind === 'attached' || (this.#state.kind === 'silent' && !request))
      this.#toHub(this.#state.socket, request?.line ?? line);
    else if (request && request.method !== 'subscriptions/listen') this.#enqueue(message?.id, request, false);
  }

  #noteClientMessage({ id, method, params }: Message, line: string, request: UnderWay | undefined): void {
    if (id === undefined || !request) {
      if (method === 'notifications/initialized') this.#handshake.push(line);
      if (method === 'notifications/cancelled') this.#cancelled((params as { requestId?: unknown } | null)?.requestId);
      return;
    }
    if (method === 'initialize') {
      this.#isLegacy = true;
      this.#handshake.splice(0, this.#handshake.length, line);
    }
    if (method === 'subscriptions/listen') this.#subscriptions.set(id, line);
    else if (this.#state.kind === 'attached') {
      this.#underWay.set(id, request);
      this.#watch();
    }
  }

  #cancelled(id: unknown): void {
    this.#underWay.delete(id);
    this.#subscriptions.delete(id);
    const queued = this.#queue.get(id);
    if (queued) clearTimeout(queued.timer);
    this.#queue.delete(id);
  }

  #enqueue(id: unknown, request: UnderWay, wasSent: boolean): void {
    const timer = setTimeout(() => {
      this.#queue.delete(id);
      const why = this.#state.kind === 'away' ? this.#state.why : 'it does not respond';
      this.#answer(id, request, wasSent ? { kind: 'cut off' } : { kind: 'not running', why });
    }, PATIENCE_MS);
    this.#queue.set(id, { ...request, wasSent, timer });
  }

  /** A person who watches a call sees that it goes on. */
  #tellQueued(): void {
    for (const { progress } of this.#queue.values()) {
      if (!progress) continue;
      progress.told++;
      const params = {
        progressToken: progress.token,
        progress: progress.told,
        message: 'waiting for the hub to come back',
      };
      this.#toClient(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params }));
    }
  }

  // ── from the hub ───────────────────────────────────────────────────────────────────────────────────────────────

  #attach({ socket, version }: AttachedHub): void {
    this.#state = { kind: 'attached', socket, version };
    this.#heardAt = performance.now();
    const reader = new FrameReader(
      MAX_FRAME_BYTES,
      (line) => this.#fromHub(line),
      () => undefined,
    );
    socket.on('data', (chunk: Buffer) => {
      this.#heard();
      reader.take(chunk);
    });
    socket.on('error', () => undefined);
    socket.once('close', () => this.#lost(socket));
    socket.resume();
  }

  #fromHub(line: string): void {
    // An answer that mentions a method in its text is parsed too, and forwarded unchanged.
    const message = parse(line);
    if (message?.method !== undefined) {
      if (message.id !== undefined) this.#asked.add(message.id);
      if (message.method === 'notifications/progress') return this.#progress(message, line);
    } else if (message?.id !== undefined) {
      // A stopping hub ends the subscriptions; the next one resumes them.
      if (this.#subscriptions.has(message.id)) {
        if (message.result !== undefined) return;
        this.#subscriptions.delete(message.id);
      }
      this.#underWay.delete(message.id);
      if (this.#unwanted.delete(message.id)) return;
    }
    this.#toClient(line);
  }

  #progress(message: Message, line: string): void {
    const params = message.params as { progressToken?: unknown; progress?: unknown } | undefined;
    const known = [...this.#underWay.values()].find(
      ({ progress }) => progress?.token === params?.progressToken,
    )?.progress;
    if (!known || typeof params?.progress !== 'number') return this.#toClient(line);
    known.told = known.before + params.progress;
    if (known.before === 0) return this.#toClient(line);
    this.#toClient(JSON.stringify({ ...message, params: { ...params, progress: known.told } }));
  }

  // ── a hub that does not respond ────────────────────────────────────────────────────────────────────────────────

  /** While a call waits for the hub, or the hub is silent. */
  #watch(): void {
    const { quietMs = QUIET_MS } = this.#options;
    if (this.#watching || !isConnected(this.#state) || (this.#state.kind === 'attached' && this.#underWay.size === 0))
      return;
    const quietFor = performance.now() - this.#heardAt;
    const next = this.#state.kind === 'silent' ? quietMs : Math.max(0, quietMs - quietFor);
    this.#watching = setTimeout(() => {
      void this.#look().finally(() => {
        this.#watching = undefined;
        this.#watch();
      });
    }, next).unref();
  }

  async #look(): Promise<void> {
    const { quietMs = QUIET_MS, responds } = this.#options;
    const before = this.#state;
    const isQuiet = (): boolean => this.#state === before && performance.now() - this.#heardAt >= quietMs;
    if (!isQuiet()) return;
    for (let asked = 0; asked < QUESTIONS; asked++) {
      if (await responds()) return this.#heard();
      if (!isQuiet()) return;
    }
    if (before.kind === 'attached') this.#fallSilent(before.socket, before.version);
  }

  #fallSilent(socket: Socket, version: string): void {
    this.#state = { kind: 'silent', socket, version };
    this.#options.log('warn', 'the hub does not respond; waiting for it');
    for (const [id, request] of this.#underWay) {
      if (this.#unwanted.has(id)) continue;
      this.#unwanted.add(id);
      this.#answer(id, request, { kind: 'silent' });
    }
    this.#underWay.clear();
    // It may be waiting for the hub to read.
    this.#options.input.resume();
  }

  #heard(): void {
    this.#heardAt = performance.now();
    if (this.#state.kind !== 'silent') return;
    const { socket, version } = this.#state;
    this.#state = { kind: 'attached', socket, version };
    this.#options.log('info', 'the hub responds again');
    this.#sendQueued(socket);
  }

  #lost(socket: Socket): void {
    if (!isConnected(this.#state) || this.#state.socket !== socket) return;
    const { version } = this.#state;
    this.#state = { kind: 'away', why: 'it has stopped' };
    this.#options.log('info', 'lost the hub; waiting for it to come back');
    for (const [id, request] of this.#underWay) if (!this.#unwanted.has(id)) this.#enqueue(id, request, true);
    this.#underWay.clear();
    for (const requestId of this.#asked)
      this.#toClient(
        JSON.stringify({
          jsonrpc: '2.0',
          method: 'notifications/cancelled',
          params: { requestId, reason: 'The hub has stopped.' },
        }),
      );
    this.#asked.clear();
    clearInterval(this.#telling);
    this.#telling = setInterval(() => this.#tellQueued(), TELL_EVERY_MS).unref();
    void this.#lookForHub(version, FIRST_RETRY_MS);
  }

  async #lookForHub(lastVersion: string, retryMs: number): Promise<void> {
    if (this.#state.kind !== 'away') return;
    try {
      const hub = await this.#options.reattach();
      if (this.#state.kind !== 'away') {
        hub.socket.end();
        return;
      }
      this.#options.log('info', `reattached to the hub (${hub.version})`);
      this.#attach(hub);
      this.#repeatHandshake(hub.socket);
      if (hub.version !== lastVersion && this.#isLegacy)
        this.#toClient('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}');
    } catch (error) {
      if (this.#state.kind !== 'away') return;
      this.#state = { kind: 'away', why: error instanceof Error ? error.message : String(error) };
      const next = Math.min(retryMs * 1.5, LAST_RETRY_MS);
      setTimeout(() => void this.#lookForHub(lastVersion, next), retryMs).unref();
    }
  }

  #repeatHandshake(socket: Socket): void {
    for (const line of this.#handshake) {
      const id = parse(line)?.id;
      // Unless the client has had no answer yet: then it comes with what is queued.
      if (this.#queue.has(id)) continue;
      if (id !== undefined) this.#unwanted.add(id);
      this.#toHub(socket, line);
    }
    for (const line of this.#subscriptions.values()) this.#toHub(socket, line);
    this.#sendQueued(socket);
  }

  #sendQueued(socket: Socket): void {
    clearInterval(this.#telling);
    for (const [id, { timer, wasSent: _sent, ...request }] of this.#queue) {
      clearTimeout(timer);
      if (request.progress) request.progress.before = request.progress.told;
      this.#underWay.set(id, request);
      this.#toHub(socket, request.line);
    }
    this.#queue.clear();
    this.#watch();
  }

  // ── out ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #answer(id: unknown, request: UnderWay, away: Away): void {
    this.#toClient(JSON.stringify(answerInstead({ id, ...request }, away, this.#options.toolset)));
  }

  /** A client that reads slowly slows down only its own connection. */
  #toClient(line: string): void {
    const { output } = this.#options;
    if (output.write(`${line}\n`) || !isConnected(this.#state)) return;
    const { socket } = this.#state;
    socket.pause();
    output.once('drain', () => socket.resume());
  }

  #toHub(socket: Socket, line: string): void {
    const { input } = this.#options;
    if (socket.write(`${line}\n`)) return;
    input.pause();
    const resume = (): void => {
      socket.off('drain', resume).off('close', resume);
      input.resume();
    };
    socket.once('drain', resume).once('close', resume);
  }
}

function isConnected(state: State): state is Extract<State, { socket: Socket }> {
  return state.kind === 'attached' || state.kind === 'silent';
}

function underWay(message: Message, line: string): UnderWay {
  const { method, params } = message;
  const meta = (params as { _meta?: Record<string, unknown> } | undefined)?._meta;
  const token = meta?.['progressToken'];
  return {
    method: String(method),
    isModern: meta?.[ENVELOPE] !== undefined,
    line: method === 'tools/call' && meta?.[IDEMPOTENCY_META_KEY] === undefined ? keyed(message) : line,
    progress: token === undefined ? undefined : { token, told: 0, before: 0 },
  };
}

/** With a key of its own, by which the next hub recognises a call that this one may have carried out. */
function keyed(message: Message): string {
  const params = message.params as { _meta?: Record<string, unknown> } | undefined;
  const _meta = { ...params?._meta, [IDEMPOTENCY_META_KEY]: randomUUID() };
  return JSON.stringify({ ...message, params: { ...params, _meta } });
}

/** Anything that is not JSON goes to the hub unchanged, and gets its answer there. */
function parse(line: string): Message | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
