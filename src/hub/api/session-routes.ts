import { DomainError } from '../../errors/errors.ts';
import { SESSION_STATES } from '../../schema/enums.ts';
import {
  diffAnswer,
  diffQuery,
  eventsPage,
  eventsQuery,
  sessionsPage,
  sessionsQuery,
  apiSessionDetail,
  type ApiSession,
  type EventsPage,
  type SessionsPage,
} from '../../schema/api.ts';
import type { StoredSession } from '../../schema/store.ts';
import { COMPACT_STATUS } from '../../views/status.ts';
import { defineRoute, type ApiRoute } from './define-route.ts';
import { EVERY_ROLE, readsAll, visibleSession } from './rights.ts';
import { eventView, sessionDetail, sessionView, type ViewContext } from './views.ts';

const MAX_REQUESTS = 200;
/** After all ids: only the totals are wanted. */
const NEWEST = 2_147_483_647;

/** Routes that read sessions. */
export function sessionRoutes(viewOf: (principal: ViewContext['principal']) => ViewContext): ApiRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v1/sessions',
      operation: 'listSessions',
      summary: 'Sessions, most recently active first.',
      roles: EVERY_ROLE,
      query: sessionsQuery,
      answers: { 200: { description: 'A page of sessions.', schema: sessionsPage } },
      async run({ context: { store }, principal, query: { status, search, owner, hub, after, limit } }) {
        const tags = status && SESSION_STATES.filter((tag) => status.includes(COMPACT_STATUS[tag]));
        const of = readsAll(principal) ? owner : principal.id;
        const { items, next, unreadable } = await store.sessions({
          limit,
          ...(of !== undefined && { principal: of }),
          ...(tags && { tags }),
          ...(hub !== undefined && { hub }),
          ...(search !== undefined && search !== '' && { search }),
          ...(after !== undefined && { after }),
        });
        const foreign = owner !== undefined && of !== owner;
        const json: SessionsPage = {
          sessions: await shown(foreign ? [] : items, viewOf(principal)),
          ...(next !== undefined && !foreign && { next }),
          ...(unreadable && !foreign && { unreadable: [...unreadable] }),
        };
        return { status: 200, json };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v1/sessions/{id}',
      operation: 'getSession',
      summary: 'A session with its options, its open requests, its queued messages and its last result.',
      roles: EVERY_ROLE,
      answers: { 200: { description: 'The session.', schema: apiSessionDetail } },
      async run({ context: { store }, principal, params }) {
        const row = await visibleSession(store, principal, params['id'] ?? '');
        const [requests, messages, { lastId }] = await Promise.all([
          store.inbox({ sessionId: row.id, limit: MAX_REQUESTS }),
          store.messages(row.id),
          store.events(row.id, { after: NEWEST, limit: 1 }),
        ]);
        const parts = { requests: requests.items, messages, lastEventId: lastId };
        return { status: 200, json: await sessionDetail(row, parts, viewOf(principal)) };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v1/sessions/{id}/events',
      operation: 'listEvents',
      summary: 'The events of a session, in order, after a given event.',
      roles: EVERY_ROLE,
      query: eventsQuery,
      answers: { 200: { description: 'A page of events.', schema: eventsPage } },
      async run({ context: { store }, principal, params, query }) {
        const { id } = await visibleSession(store, principal, params['id'] ?? '');
        const { events, lastId, droppedThrough } = await store.events(id, query);
        const json: EventsPage = { events: events.map(eventView), lastId, droppedThrough };
        return { status: 200, json };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v1/sessions/{id}/diff',
      operation: 'getDiff',
      summary: 'The work of a session as a unified diff against its base, page by page.',
      roles: EVERY_ROLE,
      query: diffQuery,
      answers: { 200: { description: 'A page of the diff.', schema: diffAnswer } },
      async run({ context, principal, params, query }) {
        const { id } = await visibleSession(context.store, principal, params['id'] ?? '');
        return {
          status: 200,
          json: await context.clientFor(principal).execute<'diff'>({ kind: 'diff', sessionId: id, ...query }),
        };
      },
    }),
  ];
}

function shown(rows: readonly StoredSession[], view: ViewContext): Promise<ApiSession[]> {
  return Promise.all(rows.map((row) => sessionView(row, view)));
}

/** A session that was just changed, as currently stored. */
export async function storedSession(
  { store }: { store: { session(id: string): Promise<StoredSession | undefined> } },
  id: string,
  view: ViewContext,
): Promise<ApiSession> {
  const row = await store.session(id);
  if (!row) throw new DomainError('UNAVAILABLE', `Session ${id} is not stored yet; try again.`);
  return sessionView(row, view);
}
