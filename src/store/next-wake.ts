import type { Store, StoreNews } from './contract.ts';

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
