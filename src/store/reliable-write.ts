import { DomainError } from '../errors/errors.ts';
import type { Change } from '../schema/store.ts';
import { StoreUncertain, type Store } from './contract.ts';
import { nextWake } from './next-wake.ts';

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
      if (!uncertain || !(error instanceof DomainError) || error.code !== 'UNAVAILABLE') throw error;
      if (tries === MAX_ATTEMPTS || performance.now() - begun > PATIENCE_MS) throw uncertain;
    }
    const { woken, stop } = nextWake(store);
    await woken;
    stop();
  }
}
