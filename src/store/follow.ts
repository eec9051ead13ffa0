import type { FeedPage, Store } from './contract.ts';

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
