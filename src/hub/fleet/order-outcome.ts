import { DomainError, messageOf } from '../../errors/errors.ts';
import type { CommandProgress, StoredCommand } from '../../schema/store.ts';
import { StoreConflict, type Store } from '../../store/contract.ts';
import { nextWake } from '../../store/next-wake.ts';
import { errorFrom, sequelOf, type OrderResult } from './order-record.ts';

/** So often the store may fail to answer before whoever waits is told. */
const MOST_FAILURES = 3;
/** Longer than Claude Code may take to start. */
const LONGEST_MS = 600_000;
/** How long what a person has decided on may take to be done and told. */
const SEQUEL_MS = 120_000;

export interface OrderPatience {
  /** How long an order may lie in its queue. */
  readonly untakenMs: number;
  /** What is thrown when it lay there longer: it was withdrawn, so that nobody takes it later. */
  readonly notTaken: () => DomainError;
}

/** What becomes of an order. */
export async function outcomeOf(store: Store, id: string, { untakenMs, notTaken }: OrderPatience): Promise<unknown> {
  const begun = performance.now();
  const result = await lookUntil(store, async () => {
    const progress = (await store.command(id))?.progress;
    const ended = progress && resultOf(progress);
    if (ended) return ended;
    const waited = performance.now() - begun;
    if (progress?.status === 'queued' && waited > untakenMs && (await withdraw(store, id))) throw notTaken();
    if (waited > LONGEST_MS) throw unknown('It was begun, and has not ended since.');
    return undefined;
  });
  return 'asked' in result ? sequel(store, id, result.asked) : result.value;
}

/** A person has to allow it first: how it went is told when they have decided. */
async function sequel(store: Store, id: string, requestId: string): Promise<unknown> {
  let decidedAt: number | undefined;
  const result = await lookUntil(store, async () => {
    const command: StoredCommand | undefined = await store.command(sequelOf(id));
    const ended = command && resultOf(command.progress);
    if (ended) return ended;
    if ((await store.request(requestId))?.outcome) decidedAt ??= performance.now();
    // The hub that would tell may have gone meanwhile.
    if (decidedAt !== undefined && performance.now() - decidedAt > SEQUEL_MS)
      throw unknown('It was decided on, and nobody told how it went.');
    return undefined;
  });
  return 'value' in result ? result.value : undefined;
}

/** Looks whenever something was stored. A store that is away for a moment is looked at again. */
async function lookUntil<T>(store: Store, look: () => Promise<T | undefined>): Promise<T> {
  for (let failures = 0; ;) {
    const { woken, stop } = nextWake(store);
    try {
      const seen = await look();
      if (seen !== undefined) return seen;
      failures = 0;
      await woken;
    } catch (error) {
      if (!isAway(error)) throw error;
      if (++failures >= MOST_FAILURES) throw unknown(`${messageOf(error)} Look at the session when the store is back.`);
      await woken;
    } finally {
      stop();
    }
  }
}

/** What the store itself says while it is away; what is thrown about an order is an `OrderError`. */
function isAway(error: unknown): boolean {
  return !(error instanceof OrderError) && error instanceof DomainError && error.code === 'UNAVAILABLE';
}

/** The outcome of an order, as opposed to trouble on the way to it. */
export class OrderError extends DomainError {}

/** False where somebody has taken it in the meantime. */
async function withdraw(store: Store, commandId: string): Promise<boolean> {
  try {
    await store.write([{ type: 'command.withdraw', commandId, at: Date.now() }]);
    return true;
  } catch (error) {
    if (error instanceof StoreConflict) return false;
    throw error;
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
    case 'failed': {
      const { code, message } = errorFrom(progress.error);
      throw new OrderError(code, message);
    }
    case 'unknown':
      throw unknown(progress.check);
  }
}

function unknown(check: string): OrderError {
  return new OrderError('UNAVAILABLE', `The outcome is unknown. ${check}`);
}
