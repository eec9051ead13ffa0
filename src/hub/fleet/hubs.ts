import { z } from 'zod';
import type { Store } from '../../store/contract.ts';

/** What the lease of a hub tells the others. */
const leaseInfo = z
  .object({
    host: z.string(),
    sharedWorkspace: z.string(),
    places: z.object({ free: z.number(), max: z.number() }),
  })
  .partial();

export interface Hub {
  readonly id: string;
  /** The name of its machine. */
  readonly host: string;
  /** Its lease has expired. */
  readonly isAway: boolean;
  readonly sharesWorkspace: boolean;
  readonly places: { readonly free: number; readonly max: number };
}

export function hubsOf(leases: Awaited<ReturnType<Store['leases']>>): Hub[] {
  return leases.map(({ hub, expired, info }) => {
    const { host = hub, sharedWorkspace, places = { free: 0, max: 0 } } = leaseInfo.catch({}).parse(info);
    return { id: hub, host, isAway: expired, sharesWorkspace: sharedWorkspace !== undefined, places };
  });
}

/** The one with most free places first; among equals this one, which saves a detour. */
export function byFreePlaces(hubs: readonly Hub[], own: string): Hub[] {
  return hubs.toSorted((a, b) => b.places.free - a.places.free || Number(b.id === own) - Number(a.id === own));
}

export function describePlaces(hubs: readonly Hub[]): string {
  return hubs.map(({ id, places: { free, max } }) => `${id}: ${String(max - free)} of ${String(max)}`).join('; ');
}
