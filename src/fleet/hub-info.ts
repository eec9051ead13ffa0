import { z } from 'zod';
import type { StoredLease } from '../schema/store.ts';

const places = z.object({ free: z.number(), max: z.number() });

/** What a hub's lease tells the others. One of another version may tell less. */
const hubInfo = z.object({
  /** Its host name. */
  host: z.string(),
  pid: z.number(),
  version: z.string(),
  places,
  /** Sessions in it can be taken over by this hub. */
  sharedWorkspace: z.string().optional(),
});

export type HubInfo = z.infer<typeof hubInfo>;

export type KnownOfHub = Pick<HubInfo, 'host' | 'places' | 'sharedWorkspace'>;

export function knownOf(hub: string, info: StoredLease['info'] | undefined): KnownOfHub {
  const told = hubInfo
    .partial()
    .catch({})
    .parse(info ?? {});
  return { ...told, host: told.host ?? hub, places: told.places ?? { free: 0, max: 0 } };
}
