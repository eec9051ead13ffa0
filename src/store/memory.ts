/** A store that lives and dies with its process: for the embedded server, and the reference for the other two. */

import type { EventBounds, Store } from './contract.ts';
import { MemoryTables } from './memory-tables.ts';
import { SerialQueue } from './serial-queue.ts';
import { createStore } from './store.ts';
import { WakeUps } from './wake-ups.ts';

export interface MemoryStoreOptions {
  readonly bounds?: EventBounds;
  readonly now?: () => number;
}

export function openMemoryStore({ bounds, now = Date.now }: MemoryStoreOptions = {}): Store {
  const tables = new MemoryTables(now);
  const queue = new SerialQueue();
  const wakeUps = new WakeUps();
  return createStore(
    {
      kind: 'memory',
      reads: tables,
      // `save` comes last in every transaction and cannot fail halfway, so there is nothing to undo.
      transact: (durability, work) =>
        queue.run(async () => {
          const result = await work(tables);
          if (durability !== 'quiet') wakeUps.wake();
          return result;
        }),
      subscribe: (wake) => wakeUps.subscribe(wake),
      close: async () => {
        await queue.idle();
        wakeUps.clear();
      },
    },
    bounds,
  );
}
