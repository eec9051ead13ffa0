import { DomainError } from '../errors/errors.ts';

const MiB = 1024 * 1024;

export interface OutboxLimits {
  /** What one connection may leave unread before its next answers wait for it. */
  readonly perConnection: number;
  /** What all connections of a caller may leave unread together. */
  readonly perCaller: number;
  /** Answers that are in memory at the same time before they count as unread. */
  readonly answersAtOnce: number;
  readonly maxWaiting: number;
  /** How long an answer waits for its reader. */
  readonly patienceMs: number;
}

/** The largest answers have a few MiB: some of them fit, and a caller that reads never notices. */
const LIMITS: OutboxLimits = {
  perConnection: 8 * MiB,
  perCaller: 64 * MiB,
  answersAtOnce: 8,
  maxWaiting: 1_000,
  patienceMs: 30_000,
};

interface Waiting {
  readonly outbox: Outbox;
  readonly grant: () => void;
}

/**
 * Everything that was answered to one caller and that it has not read. Without a bound, a caller that sends requests and
 * reads no answers would fill the memory of a process that serves others too.
 */
export class CallerOutbox {
  readonly limits: OutboxLimits;
  readonly #waiting = new Set<Waiting>();
  #unread = 0;
  #answers = 0;

  constructor(limits: Partial<OutboxLimits> = {}) {
    this.limits = { ...LIMITS, ...limits };
  }

  /** For a connection whose answers wait for its own reader first. */
  connection(): Outbox {
    return new Outbox(this, this.limits.perConnection);
  }

  /** For connections that are too short-lived to have a bound of their own. */
  shared(): Outbox {
    return new Outbox(this, Infinity);
  }

  get unread(): number {
    return this.#unread;
  }

  get isFull(): boolean {
    return this.#unread >= this.limits.perCaller;
  }

  changed(bytes: number): void {
    this.#unread += bytes;
    if (bytes < 0) this.#admit();
  }

  /** Resolves when there is room for another answer. Rejects if the caller has to read first. */
  async enter(outbox: Outbox, signal: AbortSignal): Promise<void> {
    if (this.#hasRoom(outbox) && this.#waiting.size === 0) {
      this.#answers++;
      return;
    }
    if (this.#waiting.size >= this.limits.maxWaiting) throw this.#tooMany();
    await new Promise<void>((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', giveUp);
        this.#waiting.delete(waiting);
      };
      const waiting: Waiting = {
        outbox,
        grant: () => {
          end();
          this.#answers++;
          resolve();
        },
      };
      const giveUp = (): void => {
        end();
        reject(signal.aborted ? new DomainError('CANCELLED', 'The client no longer waits for this.') : this.#tooMany());
      };
      const timer = setTimeout(giveUp, this.limits.patienceMs).unref();
      signal.addEventListener('abort', giveUp);
      this.#waiting.add(waiting);
      if (signal.aborted) giveUp();
      else this.#admit();
    });
  }

  leave(): void {
    this.#answers--;
    this.#admit();
  }

  /** In order, but a connection that nobody reads does not hold up the others. */
  #admit(): void {
    for (const { outbox, grant } of this.#waiting) {
      if (this.isFull || this.#answers >= this.limits.answersAtOnce) return;
      if (this.#hasRoom(outbox)) grant();
    }
  }

  #hasRoom(outbox: Outbox): boolean {
    return !this.isFull && !outbox.isFull && this.#answers < this.limits.answersAtOnce;
  }

  #tooMany(): DomainError {
    return new DomainError(
      'TOO_MANY_REQUESTS',
      `${String(this.#unread)} bytes of earlier answers have not been read, and ${String(this.#waiting.size)} calls wait for that. Read them, then check the session before you call again.`,
    );
  }
}

/** One connection's part of it. */
export class Outbox {
  readonly caller: CallerOutbox;
  readonly #limit: number;
  #unread = 0;

  constructor(caller: CallerOutbox, limit: number) {
    this.caller = caller;
    this.#limit = limit;
  }

  get isFull(): boolean {
    return this.#unread >= this.#limit;
  }

  /** Counts bytes as unread until the returned function is called, once or more often. */
  add(bytes: number): () => void {
    let unread = bytes;
    this.#change(unread);
    return () => {
      this.#change(-unread);
      unread = 0;
    };
  }

  answer(): AnswerTurn {
    return new AnswerTurn(this);
  }

  #change(bytes: number): void {
    if (bytes === 0) return;
    this.#unread += bytes;
    this.caller.changed(bytes);
  }
}

/** One call's turn to hold its answer in memory. */
export class AnswerTurn {
  readonly #outbox: Outbox;
  #taken = false;

  constructor(outbox: Outbox) {
    this.#outbox = outbox;
  }

  /** Taken as late as possible: right before the answer is put together, not while its session is waited for. */
  async take(signal: AbortSignal): Promise<void> {
    if (this.#taken) return;
    await this.#outbox.caller.enter(this.#outbox, signal);
    this.#taken = true;
  }

  /** The answer is handed over: by the next turn of the event loop, its bytes count as unread. */
  end(): void {
    if (!this.#taken) return;
    this.#taken = false;
    setImmediate(() => this.#outbox.caller.leave());
  }
}

/** The outboxes of all callers, by principal. */
export class Outboxes {
  readonly #limits: Partial<OutboxLimits>;
  readonly #callers = new Map<string, CallerOutbox>();

  constructor(limits: Partial<OutboxLimits> = {}) {
    this.#limits = limits;
  }

  of(principalId: string): CallerOutbox {
    const known = this.#callers.get(principalId);
    if (known) return known;
    const caller = new CallerOutbox(this.#limits);
    this.#callers.set(principalId, caller);
    return caller;
  }
}
