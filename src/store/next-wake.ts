import type { Store } from './contract.ts';

/** A wake-up that was lost delays by no more than this. */
const LOOK_EVERY_MS = 1_000;

/**
 * The next time something is stored, or soon after. Asked for before a look at the store, so that nothing that is stored
 * meanwhile is missed; stopped when the look has shown enough.
 */
export function nextWake(store: Pick<Store, 'subscribe'>): {
  readonly woken: Promise<void>;
  readonly stop: () => void;
} {
  let stop = (): void => undefined;
  const woken = new Promise<void>((resolve) => {
    const unsubscribe = store.subscribe(resolve);
    const timer = setTimeout(resolve, LOOK_EVERY_MS).unref();
    stop = () => {
      unsubscribe();
      clearTimeout(timer);
      resolve();
    };
  });
  return { woken, stop };
}
