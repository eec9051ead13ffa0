import type { OtherHubs } from '../engine/session/elsewhere.ts';
import type { Engine } from '../engine/engine.ts';
import type { HubRef } from '../schema/store.ts';
import type { Store } from '../store/contract.ts';
import { CommandRunner, type CommandRunnerOptions } from './command-runner.ts';
import { StoreFleet } from './other-hubs.ts';

/** This hub as one of several on a store. */
export interface Fleet {
  /** What the engine needs from the others. */
  readonly others: OtherHubs;
  /** From now on it carries out commands from others on its sessions. */
  runCommands(engine: Engine, log: CommandRunnerOptions['log']): CommandRunner;
}

export interface FleetPart {
  readonly store: Store;
  readonly by: HubRef;
  readonly journal: CommandRunnerOptions['journal'];
}

export function joinFleet(part: FleetPart): Fleet {
  return {
    others: new StoreFleet(part),
    runCommands: (engine, log) => new CommandRunner({ ...part, engine, log }),
  };
}
