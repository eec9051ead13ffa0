import { randomUUID } from 'node:crypto';
import { streamQuery } from '../../schema/api.ts';
import type { Principal } from '../../engine/rules/principal.ts';
import type { ApiContext } from './context.ts';
import { defineRoute, type ApiRoute } from './define-route.ts';
import { SentFrames, KnownSessions, streamFeed, type StreamSource } from './event-stream.ts';
import { FeedTail } from './feed-tail.ts';
import { Replays } from './replays.ts';
import { EVERY_ROLE, visibleSession } from './rights.ts';
import type { ViewContext } from './views.ts';

/** The stream of everything. */
export function streamRoutes(viewOf: (principal: Principal) => ViewContext): ApiRoute[] {
  const sources = new WeakMap<ApiContext, StreamSource>();
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v1/events',
      operation: 'streamEvents',
      summary: 'Server-sent events for everything you may see; resumes from Last-Event-ID.',
      roles: EVERY_ROLE,
      query: streamQuery,
      answers: {
        200: {
          description:
            'Events named session, request, event, removed, reset and live; see components.schemas.Stream_*.',
          contentType: 'text/event-stream',
        },
      },
      async run({ context, principal, query: { session, events, eventsOf, after }, headers }) {
        if (session !== undefined) await visibleSession(context.store, principal, session);
        const header = headers['last-event-id'];
        const lastEventId = header === undefined ? after?.toString() : String(header);
        const source = sources.get(context) ?? sourceOf(context);
        sources.set(context, source);
        const request = { view: viewOf(principal), lastEventId, session, events, eventsOf };
        return { events: (stream) => streamFeed(source, request, stream) };
      },
    }),
  ];
}

function sourceOf(context: ApiContext): StreamSource {
  const { store } = context;
  let storeId: Promise<string> | undefined;
  return {
    tail: new FeedTail(store, (error) => context.report(error)),
    sessions: new KnownSessions(store),
    frames: new SentFrames(),
    replays: new Replays(),
    storeId: () =>
      (storeId ??= store.ensureSetting('store.id', randomUUID()).catch((error: unknown) => {
        storeId = undefined;
        throw error;
      })),
  };
}
