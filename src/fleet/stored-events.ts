import type { SessionEvent } from '../schema/events.ts';
import type { StoredEvent } from '../schema/store.ts';
import type { EventPage, Store } from '../store/contract.ts';

const EVENTS_PER_PAGE = 1_000;

/** The events of a session as they are stored, from after one on. */
export async function storedEvents(
  store: Pick<Store, 'events'>,
  sessionId: string,
  after = 0,
): Promise<Omit<EventPage, 'events'> & { events: SessionEvent[] }> {
  const events: StoredEvent[] = [];
  for (;;) {
    const page = await store.events(sessionId, { after: events.at(-1)?.id ?? after, limit: EVENTS_PER_PAGE });
    events.push(...page.events);
    // One that cannot be read is missing from its page, which is then not the last one.
    if (page.events.length === 0 || (events.at(-1)?.id ?? 0) >= page.lastId)
      return { ...page, events: events.map(sessionEvent) };
  }
}

function sessionEvent({ id, type, at, data }: StoredEvent): SessionEvent {
  return { id, type, at, ...(data as object) } as SessionEvent;
}
