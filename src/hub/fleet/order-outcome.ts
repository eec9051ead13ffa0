import { DomainError, messageOf } from '../../errors/errors.ts';
import type { CommandProgress } from '../../schema/store.ts';
import { StoreConflict, type Store } from '../../store/contract.ts';
import { errorFrom, sequelOf, type OrderResult } from './order-record.ts';

/** A lost wake-up delays by no more than this. */
const LOOK_EVERY_MS = 1_000;
/** So long the store may be away before whoever waits is told. */
const MOST_FAILURES = 3;
/** Longer than Claude Code may take to start. */
const LONGEST_MS = 600_000;

/** Waits for what becomes of a command. */
export class OrderOutcome {
  readonly #store: Store;
  readonly #id: string;
  readonly #unsubscribe: () => void;
  readonly #timer: NodeJS.Timeout;
  #wake: () => void = () => undefined;
  #isWoken = false;

  /** From before it is stored: what happens to it at once is not missed. */
  constructor(store: Store, id: string) {
    this.#store = store;
    this.#id = id;
    const wake = (): void => {
      this.#isWoken = true;
      this.#wake();
    };
    this.#unsubscribe = store.subscribe(wake);
    this.#timer = setInterval(wake, LOOK_EVERY_MS).unref();
  }

  close(): void {
    this.#unsubscribe();
    clearInterval(this.#timer);
  }

  /** The outcome. An order that nobody takes is withdrawn, so that nobody takes it later. */
  async told(patienceMs: number, notTaken: () => DomainError): Promise<unknown> {
    const result = await this.#ended(this.#id, patienceMs, notTaken);
    // A person has to allow it first: how that ends is told when they have decided.
    return 'asked' in result ? valueOf(await this.#ended(sequelOf(this.#id), Infinity, notTaken)) : valueOf(result);
  }

  async #ended(id: string, patienceMs: number, notTaken: () => DomainError): Promise<OrderResult> {
    const begun = performance.now();
    for (let failures = 0; ;) {
      this.#isWoken = false;
      const command = await this.#store.command(id).catch((error: unknown) => {
        if (++failures >= MOST_FAILURES)
          throw unknown(`${messageOf(error)} Look at the session when the store is back.`);
      });
      if (command) failures = 0;
      const progress = command?.progress;
      const result = progress && resultOf(progress);
      if (result) return result;
      const waited = performance.now() - begun;
      if (progress?.status === 'queued' && waited > patienceMs && (await this.#withdraw(id))) throw notTaken();
      if (waited > LONGEST_MS && patienceMs !== Infinity) throw unknown('It was begun, and has not ended since.');
      if (!this.#isWoken) await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** False where somebody has taken it in the meantime, or the store is away. */
  async #withdraw(commandId: string): Promise<boolean> {
    try {
      await this.#store.write([{ type: 'command.withdraw', commandId, at: Date.now() }]);
      return true;
    } catch (error) {
      if (error instanceof StoreConflict) return false;
      throw error;
    }
  }
}

/** Undefined while it is under way. */
function resultOf(progress: CommandProgress): OrderResult | undefined {
  switch (progress.status) {
    case 'queued':
    case 'taken':
      return undefined;
    case 'done':
      return progress.result as OrderResult;
    case 'failed':
      throw errorFrom(progress.error);
    case 'unknown':
      throw unknown(progress.check);
  }
}

function valueOf(result: OrderResult): unknown {
  return 'value' in result ? result.value : undefined;
}

function unknown(check: string): DomainError {
  return new DomainError('UNAVAILABLE', `The outcome is unknown. ${check}`);
}
