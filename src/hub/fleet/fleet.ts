import type { OtherHubs } from '../../engine/elsewhere.ts';
import type { Engine } from '../../engine/engine.ts';
import type { HubRef } from '../../schema/store.ts';
import type { Store } from '../../store/contract.ts';
import { OrderRunner, type OrderRunnerOptions } from './order-runner.ts';
import { StoreFleet } from './other-hubs.ts';

/** This hub as one of several on a store. */
export interface Fleet {
  /** What the engine needs from the others. */
  readonly others: OtherHubs;
  /** From now on it carries out orders from others on its sessions. */
  runOrders(engine: Engine, log: OrderRunnerOptions['log']): OrderRunner;
}

export interface FleetPart {
  readonly store: Store;
  readonly by: HubRef;
  readonly journal: OrderRunnerOptions['journal'];
}

export function joinFleet(part: FleetPart): Fleet {
  return {
    others: new StoreFleet(part),
    runOrders: (engine, log) => new OrderRunner({ ...part, engine, log }),
  };
}
