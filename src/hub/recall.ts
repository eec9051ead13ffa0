/** Recalls a session as it was last stored, by an earlier incarnation of this hub or by a hub that is gone. */

import type { RecalledSession } from '../engine/ports.ts';
import { DomainError } from '../errors/errors.ts';
import type { SessionRecord } from '../schema/records.ts';
import type { HubRef, StoredSession } from '../schema/store.ts';
import type { Store } from '../store/contract.ts';
import { isSameIncarnation } from '../store/row-facts.ts';
import { knownOf } from '../fleet/lease.ts';
import { messageOfRow, newestEvents, recordOfRow, requestOfRow } from '../fleet/session-codec.ts';

export interface Recaller {
  readonly store: Store;
  /** This incarnation of this hub. */
  readonly by: HubRef;
  /** Rejects if this hub may not run a session that ran on another. */
  readonly checkCanRun: (record: SessionRecord) => Promise<void>;
}

/** Claims the session if it is not this incarnation's already; throws if this hub may not have it. */
export async function recall(sessionId: string, recaller: Recaller): Promise<RecalledSession | undefined> {
  const { store, by } = recaller;
  const known = await store.session(sessionId);
  if (!known) return undefined;
  const row = isSameIncarnation(known.runsOn, by) ? known : await claim(known, recaller);
  const requests = await store.inbox({ sessionId, limit: 1_000 });
  const messages = await store.messages(sessionId);
  const { events, lastId, droppedThrough } = await newestEvents(store, sessionId);
  return {
    record: recordOfRow(row),
    ranElsewhere: known.runsOn.hub !== by.hub,
    events,
    lastEventId: lastId,
    droppedThrough,
    requests: requests.items.map(requestOfRow),
    messages: messages.map(messageOfRow),
    grants: await store.grants(sessionId),
  };
}

async function claim(known: StoredSession, { store, by, checkCanRun }: Recaller): Promise<StoredSession> {
  const { id, runsOn, movable } = known;
  if (runsOn.hub !== by.hub) {
    const lease = (await store.leases()).find(({ hub }) => hub === runsOn.hub);
    const { host } = knownOf(runsOn.hub, lease?.info);
    if (lease?.expired === false)
      throw new DomainError('UNAVAILABLE', `Session ${id} runs on another hub (${host}); send the call there.`);
    if (movable !== true)
      throw new DomainError('UNAVAILABLE', `Session ${id} stays on the machine ${host}, which is unavailable.`);
    await checkCanRun(recordOfRow(known));
  }
  const [row] = await store.claimSessions(by, [id]);
  if (row) return row;
  throw new DomainError('UNAVAILABLE', `Session ${id} is being taken over by another hub. Try again.`);
}
