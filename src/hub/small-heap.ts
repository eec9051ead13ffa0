import { setFlagsFromString } from 'node:v8';

/** Well below the hub's memory target, so that there is time to collect what piled up. */
const SMALL_ENOUGH_BYTES = 110 * 1024 * 1024;
const LOOK_EVERY_MS = 250;

/**
 * The hub runs for weeks next to everything else on the machine, and its objects are short-lived: V8 would let several
 * times the live size pile up before it collects. Collecting often costs time, so it is requested only where memory has
 * grown.
 */
export function keepHeapSmall(): void {
  let collectsOften = false;
  setInterval(() => {
    const isLarge = process.memoryUsage.rss() > SMALL_ENOUGH_BYTES;
    if (isLarge === collectsOften) return;
    collectsOften = isLarge;
    setFlagsFromString(isLarge ? '--optimize-for-size' : '--no-optimize-for-size');
  }, LOOK_EVERY_MS).unref();
}
