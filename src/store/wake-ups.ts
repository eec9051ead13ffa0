import { isUnavailable } from '../errors/errors.ts';
import type { Change } from '../schema/store.ts';
import { StoreUncertain, type StoreNews, type Store, type FeedPage } from './contract.ts';

export const ANYTHING: StoreNews = { queued: true, ended: true, others: true };

/** Subscribers that want to know when something was stored. */
export class WakeUps {
  readonly #listeners = new Set<(news: StoreNews) => void>();

  subscribe(wake: (news: StoreNews) => void): () => void {
    // A separate function, so that the same listener can subscribe twice.
    const listener = (news: StoreNews): void => wake(news);
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Not before the writer has its response, and errors of a listener are not the write's. */
  wake(news: StoreNews = ANYTHING): void {
    for (const listener of this.#listeners) queueMicrotask(() => listener(news));
  }

  clear(): void {
    this.#listeners.clear();
  }
}

/** A lost wake-up causes at most this much delay. */
const LOOK_EVERY_MS = 1_000;

/**
 * The next time something is stored, or soon after. Requested before a look at the store, so that nothing stored in the
 * meantime is missed; stopped when the look has shown enough.
 */
export function nextWake(
  store: Pick<Store, 'subscribe'>,
  concerns: (news: StoreNews) => boolean = () => true,
): {
  readonly woken: Promise<void>;
  readonly stop: () => void;
} {
  let stop = (): void => undefined;
  const woken = new Promise<void>((resolve) => {
    const unsubscribe = store.subscribe((news) => {
      if (concerns(news)) resolve();
    });
    const timer = setTimeout(resolve, LOOK_EVERY_MS).unref();
    stop = () => {
      unsubscribe();
      clearTimeout(timer);
      resolve();
    };
  });
  return { woken, stop };
}

/**
 * Everything stored after a position, as it is stored, until the signal. Also polls occasionally, so that nothing
 * depends on a notification that may have been lost. Ends with the store's error if the store is unavailable: start
 * again from the last position.
 */
export async function* follow(
  store: Pick<Store, 'feed' | 'subscribe'>,
  from: number,
  signal: AbortSignal,
  { limit = 500, lookEveryMs = 5_000 } = {},
): AsyncGenerator<FeedPage> {
  let wake = (): void => {};
  let isWoken = true;
  const onWake = (): void => {
    isWoken = true;
    wake();
  };
  const unsubscribe = store.subscribe(onWake);
  const timer = setInterval(onWake, lookEveryMs);
  timer.unref();
  signal.addEventListener('abort', onWake);
  try {
    let after = from;
    while (!signal.aborted) {
      if (!isWoken) await new Promise<void>((resolve) => (wake = resolve));
      if (signal.aborted) return;
      isWoken = false;
      const page = await store.feed({ after, limit });
      if (page.more) isWoken = true;
      if (page.entries.length > 0) yield page;
      after = page.last;
    }
  } finally {
    unsubscribe();
    clearInterval(timer);
    signal.removeEventListener('abort', onWake);
  }
}

const MAX_ATTEMPTS = 4;
/** Callers are not kept waiting for a store that does not answer. */
const PATIENCE_MS = 10_000;

/**
 * Resends a write whose response was lost, so that its caller knows whether it is stored. If the store stays
 * unavailable, it rejects with `StoreUncertain`; any other error means that nothing was stored.
 */
export async function writeReliably(
  store: Pick<Store, 'write' | 'subscribe'>,
  changes: readonly Change[],
): Promise<void> {
  const begun = performance.now();
  let uncertain: StoreUncertain | undefined;
  for (let tries = 1; ; tries++) {
    try {
      return await store.write(changes);
    } catch (error) {
      if (error instanceof StoreUncertain) uncertain = error;
      if (!uncertain || !isUnavailable(error)) throw error;
      if (tries === MAX_ATTEMPTS || performance.now() - begun > PATIENCE_MS) throw uncertain;
    }
    const { woken, stop } = nextWake(store);
    await woken;
    stop();
  }
}
