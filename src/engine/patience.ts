import type { Clock } from './clock.ts';

/** Whether it settles in time; rejections are passed on. */
export function settledWithin(clock: Clock, ms: number, promise: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const cancelTimer = clock.after(ms, () => resolve(false));
    promise.then(() => resolve(true), reject).finally(cancelTimer);
  });
}
