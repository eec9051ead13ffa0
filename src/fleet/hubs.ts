import type { Store } from '../store/contract.ts';
import { knownOf, type HubInfo } from './hub-info.ts';

export interface Hub {
  readonly id: string;
  /** Its host name. */
  readonly host: string;
  /** Its lease has expired. */
  readonly isAway: boolean;
  readonly sharesWorkspace: boolean;
  readonly places: HubInfo['places'];
}

export function hubsOf(leases: Awaited<ReturnType<Store['leases']>>): Hub[] {
  return leases.map(({ hub, expired, info }) => {
    const { host, sharedWorkspace, places } = knownOf(hub, info);
    return { id: hub, host, isAway: expired, sharesWorkspace: sharedWorkspace !== undefined, places };
  });
}

/** The one with the most free slots first; among equals this one, which saves a detour. */
export function byFreePlaces(hubs: readonly Hub[], own: string): Hub[] {
  return hubs.toSorted((a, b) => b.places.free - a.places.free || Number(b.id === own) - Number(a.id === own));
}

export function describePlaces(hubs: readonly Hub[]): string {
  return hubs.map(({ id, places: { free, max } }) => `${id}: ${String(max - free)} of ${String(max)}`).join('; ');
}
