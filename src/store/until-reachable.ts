import { setTimeout as delay } from 'node:timers/promises';
import { isUnavailable } from '../errors/errors.ts';

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;

/** Tries again while the store is away, until nobody waits for it any more. */
export async function untilReachable<T>(ask: () => Promise<T>, isOver: () => boolean): Promise<T> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
    try {
      return await ask();
    } catch (error) {
      if (!isUnavailable(error) || isOver()) throw error;
      await delay(pause, undefined, { ref: false });
    }
  }
}
