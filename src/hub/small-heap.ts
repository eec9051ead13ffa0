import { setFlagsFromString } from 'node:v8';

/**
 * The hub runs for weeks beside everything else on the machine, and what it does is short-lived: V8 would let several times
 * of what is alive pile up before it collects. To be called before there is much on the heap.
 */
export function keepHeapSmall(): void {
  setFlagsFromString('--optimize-for-size');
}
