import { randomUUID } from 'node:crypto';
import type {
  CanRun,
  CommandedBy,
  Driven,
  Known,
  OtherHubs,
  Outcomes,
  SeenElsewhere,
} from '../engine/elsewhere/elsewhere.ts';
import { secretNamesOf } from '../engine/session/mobility.ts';
import { unknownSession } from '../engine/session/session-errors.ts';
import { DomainError } from '../errors/errors.ts';
import type { Command, CommandKind, CommandOf } from '../schema/commands.ts';
import type { HubRef, StoredSession } from '../schema/store.ts';
import type { Store } from '../store/contract.ts';
import { isResting } from '../store/row-facts.ts';
import { NotBegun, sendCommand, newCommandId, commandBody } from './command-record.ts';
import { summaryOf, type HubInfo } from './lease.ts';
import { newestEvents, recordOfRow, requestOfRow, storedEvents } from './session-codec.ts';
import type { Engine } from '../engine/engine.ts';
import { CommandRunner, type CommandRunnerOptions } from './command-runner.ts';

/** Leases are renewed every two seconds; knowing them more precisely is pointless. */
const HUBS_KEPT_MS = 500;
/** A live hub picks up a command at once. */
const START_PATIENCE_MS = 5_000;
const PATIENCE_MS = 20_000;

export interface FleetOptions {
  readonly store: Store;
  /** This incarnation of this hub. */
  readonly by: HubRef;
}

/** The other hubs, as far as the store knows them: hubs communicate only through it. */
class StoreFleet implements OtherHubs {
  readonly #store: Store;
  readonly #by: HubRef;
  #hubs: { readonly at: number; readonly hubs: Promise<Hub[]> } | undefined;

  constructor({ store, by }: FleetOptions) {
    this.#store = store;
    this.#by = by;
  }

  async locate(id: string, canRun: CanRun): Promise<{ owner: string; hub?: string } | undefined> {
    const row = await this.#store.session(id);
    if (!row) return undefined;
    const { principal: owner, runsOn, movable } = row;
    if (runsOn.hub === this.#by.hub) return { owner };
    const isFree = await this.#isFree(runsOn.hub, movable === true);
    return isFree && (await canRun(recordOfRow(row))) ? { owner } : { owner, hub: runsOn.hub };
  }

  async see(id: string, canRun: CanRun, known?: Known): Promise<SeenElsewhere | 'unchanged' | undefined> {
    // The row before what belongs to it: everything it refers to exists by then.
    let stored = await this.#store.sessionSince(id, known?.position);
    if (stored === 'unchanged') {
      if (!known || !(await this.#isFree(known.hub, known.movable))) return 'unchanged';
      stored = await this.#store.sessionSince(id);
    }
    if (!stored || stored === 'unchanged' || stored.row.runsOn.hub === this.#by.hub) return undefined;
    const { row, position } = stored;
    const isFree = await this.#isFree(row.runsOn.hub, row.movable === true);
    const record = recordOfRow(row);
    if (isFree && (await canRun(record))) return undefined;
    const [{ events, lastId, droppedThrough }, requests] = await Promise.all([
      known ? storedEvents(this.#store, id, known.lastEventId) : newestEvents(this.#store, id),
      this.#store.inbox({ sessionId: id, limit: 1_000 }),
    ]);
    return {
      record,
      hub: row.runsOn.hub,
      position,
      isForOthers: isFree,
      events,
      lastEventId: lastId,
      droppedThrough,
      requests: requests.items.map(requestOfRow),
    };
  }

  async changed(known: ReadonlyMap<string, Known>): Promise<string[]> {
    const now = await this.#store.positions([...known.keys()]);
    const changed: string[] = [];
    for (const [id, { position, hub, movable }] of known)
      if (now.get(id) !== position || (await this.#isFree(hub, movable))) changed.push(id);
    return changed;
  }

  onStored(listener: () => void): () => void {
    return this.#store.subscribe(({ others }) => {
      if (others) listener();
    });
  }

  async carryOut<Kind extends Exclude<CommandKind, 'start'>>(
    hubId: string,
    command: CommandOf<Kind>,
    by: CommandedBy,
  ): Promise<Outcomes[Kind]> {
    const { sessionId } = command as Exclude<Command, { kind: 'start' }>;
    const hub = await this.#findHub(hubId);
    if (hub.isAway) {
      const row = await this.#leftOn(hub, sessionId);
      if (row) throw away(row, hub);
    }
    checkContainsNoSecrets(command, hub);
    const giveUp = async (): Promise<NotBegun | undefined> => {
      const row = (await this.#findHub(hubId)).isAway ? await this.#leftOn(hub, sessionId) : undefined;
      if (row?.movable !== true) return row && away(row, hub);
      // Unfinished sessions are taken over, and this command with them; idle ones on demand.
      return isResting(row) ? notTaken(hub) : undefined;
    };
    const outcome = await this.#send({ sessionId, command, by, hub, giveUp, patienceMs: PATIENCE_MS });
    return outcome as Outcomes[Kind];
  }

  /** The session, unless another hub has it by now. */
  async #leftOn({ id }: Hub, sessionId: string): Promise<StoredSession | undefined> {
    const row = await this.#store.session(sessionId);
    if (!row) throw unknownSession(sessionId);
    return row.runsOn.hub === id ? row : undefined;
  }

  async start(command: CommandOf<'start'>, by: CommandedBy): Promise<Driven | undefined> {
    const hubs = (await this.#allHubs()).filter(({ isAway, sharesWorkspace }) => !isAway && sharesWorkspace);
    for (const hub of byFreePlaces(hubs, this.#by.hub)) {
      if (hub.places.free <= 0) break;
      if (hub.id === this.#by.hub) return undefined;
      try {
        const place = { sessionId: randomUUID(), command, by, hub, patienceMs: START_PATIENCE_MS };
        return (await this.#send(place)) as Driven;
      } catch (error) {
        // What was not started there can be started elsewhere.
        if (!isFull(error) && !(error instanceof NotBegun)) throw error;
      }
    }
    if (hubs.every(({ places }) => places.free > 0)) return undefined;
    throw new DomainError(
      'TOO_MANY_SESSIONS',
      `All hubs are full (${describePlaces(hubs)}). Wait for a session to finish, or stop one.`,
    );
  }

  async #send({ sessionId, command, by, hub, giveUp, patienceMs }: Sending): Promise<unknown> {
    const id = newCommandId(this.#by);
    const stored = {
      id,
      sessionId,
      placedOn: hub.id,
      principal: by.principal.id,
      body: commandBody(command, by),
      createdAt: Date.now(),
    };
    return sendCommand(this.#store, stored, async (waitedMs) => (waitedMs > patienceMs ? notTaken(hub) : giveUp?.()));
  }

  /** Its hub is gone, and it may run anywhere its directory is shared, such as here. */
  async #isFree(hub: string, movable: boolean): Promise<boolean> {
    return movable && (await this.#findHub(hub)).isAway && (await this.#findHub(this.#by.hub)).sharesWorkspace;
  }

  async #findHub(id: string): Promise<Hub> {
    const hub = (await this.#allHubs()).find((one) => one.id === id);
    return hub ?? { id, host: id, isAway: true, sharesWorkspace: false, places: { free: 0, max: 0 } };
  }

  #allHubs(): Promise<Hub[]> {
    const at = performance.now();
    if (!this.#hubs || at - this.#hubs.at > HUBS_KEPT_MS) this.#hubs = { at, hubs: this.#store.leases().then(hubsOf) };
    const { hubs } = this.#hubs;
    hubs.catch(() => (this.#hubs = undefined));
    return hubs;
  }
}

interface Sending {
  readonly sessionId: string;
  readonly command: Command;
  readonly by: CommandedBy;
  readonly hub: Hub;
  readonly patienceMs: number;
  /** Before that: why waiting is pointless. */
  readonly giveUp?: () => Promise<NotBegun | undefined>;
}

function notTaken({ id, host }: Hub): NotBegun {
  return new NotBegun(`The hub ${id} on ${host} does not respond. Nothing was done; try again.`);
}

function away({ id, movable }: StoredSession, hub: Hub): NotBegun {
  const until =
    movable === true
      ? 'a hub that may continue it does so when it is asked; this one may not'
      : 'wait until that machine is back';
  return new NotBegun(
    `Session ${id} runs on ${hub.host} (hub ${hub.id}), which is unavailable. Nothing was done. Its stored data can be read; ${until}.`,
  );
}

function isFull(error: unknown): boolean {
  return error instanceof DomainError && error.code === 'TOO_MANY_SESSIONS';
}

/** What goes to another hub goes through the store, which contains no secrets. */
function checkContainsNoSecrets(command: Command, { id, host }: Hub): void {
  const names = command.kind === 'reply' ? secretNamesOf(command.disk.options) : [];
  if (names.length > 0)
    throw new DomainError(
      'INVALID_ARGUMENT',
      `${names.join(', ')}: the session runs on ${host} (hub ${id}), and secrets are not passed through the store. Send them to that hub.`,
    );
}

export interface Hub {
  readonly id: string;
  /** Its host name. */
  readonly host: string;
  /** Its lease has expired. */
  readonly isAway: boolean;
  readonly sharesWorkspace: boolean;
  readonly places: HubInfo['places'];
}

function hubsOf(leases: Awaited<ReturnType<Store['leases']>>): Hub[] {
  return leases.map(({ hub, expired, info }) => {
    const { host, sharedWorkspace, places } = summaryOf(hub, info);
    return { id: hub, host, isAway: expired, sharesWorkspace: sharedWorkspace !== undefined, places };
  });
}

/** The one with the most free slots first; among equals this one, which saves a detour. */
function byFreePlaces(hubs: readonly Hub[], own: string): Hub[] {
  return hubs.toSorted((a, b) => b.places.free - a.places.free || Number(b.id === own) - Number(a.id === own));
}

function describePlaces(hubs: readonly Hub[]): string {
  return hubs.map(({ id, places: { free, max } }) => `${id}: ${String(max - free)} of ${String(max)}`).join('; ');
}

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
