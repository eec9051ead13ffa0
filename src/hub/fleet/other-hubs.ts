import { randomUUID } from 'node:crypto';
import type {
  CanRun,
  DrivenSession,
  Known,
  Order,
  OrderedBy,
  OrderOutcomes,
  OtherHubs,
  SeenElsewhere,
} from '../../engine/elsewhere.ts';
import { secretNamesOf } from '../../engine/mobility.ts';
import { unknownSession } from '../../engine/session-errors.ts';
import type { StartRequest } from '../../engine/start-request.ts';
import { DomainError } from '../../errors/errors.ts';
import type { HubRef, StoredSession } from '../../schema/store.ts';
import type { Store } from '../../store/contract.ts';
import { isResting } from '../../store/row-facts.ts';
import { newCommandId } from '../command-id.ts';
import { storedEvents } from '../stored-events.ts';
import { byFreePlaces, describePlaces, hubsOf, type Hub } from './hubs.ts';
import { orderBody } from './order-record.ts';
import { giveOrder, NotBegun } from './order-outcome.ts';

/** Leases are renewed every two seconds; knowing them more precisely is pointless. */
const HUBS_KEPT_MS = 500;
/** A live hub picks up an order at once. */
const START_PATIENCE_MS = 5_000;
const PATIENCE_MS = 20_000;

export interface FleetOptions {
  readonly store: Store;
  /** This incarnation of this hub. */
  readonly by: HubRef;
}

/** The other hubs, as far as the store knows them: hubs communicate only through it. */
export class StoreFleet implements OtherHubs {
  readonly #store: Store;
  readonly #by: HubRef;
  #hubs: { readonly at: number; readonly hubs: Promise<Hub[]> } | undefined;

  constructor({ store, by }: FleetOptions) {
    this.#store = store;
    this.#by = by;
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
    if (isFree && (await canRun(row))) return undefined;
    const [{ events, lastId, droppedThrough }, requests, messages] = await Promise.all([
      storedEvents(this.#store, id, known?.lastEventId),
      this.#store.inbox({ sessionId: id, limit: 1_000 }),
      this.#store.messages(id),
    ]);
    return {
      row,
      position,
      isForOthers: isFree,
      events,
      lastEventId: lastId,
      droppedThrough,
      requests: requests.items,
      messages: messages.map((message) => ({ id: message.id, text: String(message.content) })),
      grants: [],
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

  async carryOut<Kind extends Exclude<Order['kind'], 'start'>>(
    { id: sessionId, hub: hubId }: { readonly id: string; readonly hub: string },
    order: Extract<Order, { kind: Kind }>,
    by: OrderedBy,
  ): Promise<OrderOutcomes[Kind]> {
    const hub = await this.#findHub(hubId);
    if (hub.isAway) {
      const row = await this.#leftOn(hub, sessionId);
      if (row) throw away(row, hub);
    }
    checkContainsNoSecrets(order, hub);
    const giveUp = async (): Promise<NotBegun | undefined> => {
      const row = (await this.#findHub(hubId)).isAway ? await this.#leftOn(hub, sessionId) : undefined;
      if (row?.movable !== true) return row && away(row, hub);
      // Unfinished sessions are taken over, and this order with them; idle ones on demand.
      return isResting(row) ? notTaken(hub) : undefined;
    };
    const outcome = await this.#send({ sessionId, order, by, hub, giveUp, patienceMs: PATIENCE_MS });
    return outcome as OrderOutcomes[Kind];
  }

  /** The session, unless another hub has it by now. */
  async #leftOn({ id }: Hub, sessionId: string): Promise<StoredSession | undefined> {
    const row = await this.#store.session(sessionId);
    if (!row) throw unknownSession(sessionId);
    return row.runsOn.hub === id ? row : undefined;
  }

  async start(request: Omit<StartRequest, 'by' | 'id'>, by: OrderedBy): Promise<DrivenSession | undefined> {
    const hubs = (await this.#allHubs()).filter(({ isAway, sharesWorkspace }) => !isAway && sharesWorkspace);
    for (const hub of byFreePlaces(hubs, this.#by.hub)) {
      if (hub.places.free <= 0) break;
      if (hub.id === this.#by.hub) return undefined;
      const order: Order = { kind: 'start', request };
      try {
        const place = { sessionId: randomUUID(), order, by, hub, patienceMs: START_PATIENCE_MS };
        return (await this.#send(place)) as DrivenSession;
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

  async #send({ sessionId, order, by, hub, giveUp, patienceMs }: Sending): Promise<unknown> {
    const id = newCommandId(this.#by);
    const command = {
      id,
      sessionId,
      placedOn: hub.id,
      principal: by.principal.id,
      body: orderBody(order, by),
      createdAt: Date.now(),
    };
    return giveOrder(this.#store, command, async (waitedMs) => (waitedMs > patienceMs ? notTaken(hub) : giveUp?.()));
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
  readonly order: Order;
  readonly by: OrderedBy;
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
function checkContainsNoSecrets(order: Order, { id, host }: Hub): void {
  const names = order.kind === 'reply' ? secretNamesOf(order.request.disk.options) : [];
  if (names.length > 0)
    throw new DomainError(
      'INVALID_ARGUMENT',
      `${names.join(', ')}: the session runs on ${host} (hub ${id}), and secrets are not passed through the store. Send them to that hub.`,
    );
}
