import type { OtherHubs } from '../../engine/elsewhere.ts';
import type { Engine } from '../../engine/engine.ts';
import type { HubRef } from '../../schema/store.ts';
import type { Store } from '../../store/contract.ts';
import { OrderRunner, type OrderRunnerOptions } from './order-runner.ts';
import { StoreFleet } from './other-hubs.ts';

/** This hub as one of several on a store. */
export interface Fleet {
  /** What the engine needs of the others. */
  readonly others: OtherHubs;
  /** From now on it does what the others were asked to do to its sessions. */
  runOrders(engine: Engine, log: OrderRunnerOptions['log']): OrderRunner;
}

export function joinFleet(member: { readonly store: Store; readonly by: HubRef }): Fleet {
  return {
    others: new StoreFleet(member),
    runOrders: (engine, log) => new OrderRunner({ ...member, engine, log }),
  };
}
