import { roundUsd } from '../../engine/conversation/totals.ts';
import { DomainError } from '../../errors/errors.ts';
import { SESSION_STATES } from '../../schema/enums.ts';
import {
  costsAnswer,
  sessionsPage,
  sessionsQuery,
  apiSessionDetail,
  type ApiSession,
  type CostsAnswer,
  type SessionsPage,
} from '../../schema/api.ts';
import {
  diffAnswer,
  diffQuery,
  eventsPage,
  eventsQuery,
  imagesAnswer,
  type EventsPage,
} from '../../schema/api-events.ts';
import type { TotalsRecord } from '../../schema/records.ts';
import type { StoredSession } from '../../schema/store.ts';
import type { Store } from '../../store/contract.ts';
import { COMPACT_STATUS } from '../../views/status.ts';
import { defineRoute, type ApiRoute } from './define-route.ts';
import { EVERY_ROLE, readsAll, visibleSession } from './rights.ts';
import { eventView, imagesView, sessionDetail, sessionView, type ViewContext } from './views.ts';

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
      async run({ context: { store }, principal, query: { status, search, owner, hub, archived, after, limit } }) {
        const tags = status && SESSION_STATES.filter((tag) => status.includes(COMPACT_STATUS[tag]));
        const of = readsAll(principal) ? owner : principal.id;
        const { items, next, unreadable } = await store.sessions({
          limit,
          ...(of !== undefined && { principal: of }),
          ...(tags && { tags }),
          ...(hub !== undefined && { hub }),
          ...(archived !== undefined && { archived }),
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
      path: '/api/v1/costs',
      operation: 'getCosts',
      summary: 'What sessions have cost, by day, project and owner.',
      roles: EVERY_ROLE,
      answers: { 200: { description: 'The sums.', schema: costsAnswer } },
      run: async ({ context: { store }, principal }) => ({
        status: 200,
        json: await costsOf(store, viewOf(principal)),
      }),
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
      path: '/api/v1/sessions/{id}/events/{event}/images',
      operation: 'listImages',
      summary: 'The images that came with the results of tools in one event, as text.',
      roles: EVERY_ROLE,
      answers: { 200: { description: 'The images, in base 64.', schema: imagesAnswer } },
      async run({ context: { store }, principal, params }) {
        const { id } = await visibleSession(store, principal, params['id'] ?? '');
        const wanted = Number(params['event']);
        if (!Number.isInteger(wanted) || wanted < 1)
          throw new DomainError('INVALID_ARGUMENT', 'event: the number of an event, from 1 on.');
        const { events } = await store.events(id, { after: wanted - 1, limit: 1 });
        const [event] = events.filter((one) => one.id === wanted);
        return { status: 200, json: event ? imagesView(event) : { images: [] } };
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

const COSTS_PAGE = 500;

/** Adds up all sessions that a principal may see, without holding on to them. */
async function costsOf(store: Pick<Store, 'sessions'>, view: ViewContext): Promise<CostsAnswer> {
  const days = new Map<string, number>();
  const projects = new Map<string, { costUsd: number; sessions: number }>();
  const owners = new Map<string, { costUsd: number; sessions: number }>();
  let unknown = 0;
  const own = readsAll(view.principal) ? {} : { principal: view.principal.id };
  for (let after: string | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
    const page = await store.sessions({ limit: COSTS_PAGE, ...own, ...(after !== undefined && { after }) });
    for (const row of page.items) {
      const { costUnknown, days: byDay = {} } = row.totals as Partial<TotalsRecord>;
      const { origin } = row.workspace;
      // What a copy inherited was paid for by the original.
      const costUsd = Object.values(byDay).reduce((sum, cost) => sum + cost, 0);
      add(projects, typeof origin === 'string' ? origin : row.cwd, costUsd);
      add(owners, row.principal, costUsd);
      if (costUnknown) unknown++;
      for (const [day, cost] of Object.entries(byDay)) days.set(day, (days.get(day) ?? 0) + cost);
    }
    after = page.next;
  }
  const byCost = (a: { costUsd: number }, b: { costUsd: number }): number => b.costUsd - a.costUsd;
  const rounded = <T extends { costUsd: number }>(row: T): T => ({ ...row, costUsd: roundUsd(row.costUsd) });
  return {
    totalUsd: roundUsd([...owners.values()].reduce((sum, { costUsd }) => sum + costUsd, 0)),
    days: [...days].map(([day, costUsd]) => rounded({ day, costUsd })).sort((a, b) => b.day.localeCompare(a.day)),
    projects: [...projects].map(([directory, sums]) => rounded({ directory, ...sums })).sort(byCost),
    owners: (
      await Promise.all([...owners].map(async ([id, sums]) => rounded({ id, name: await view.nameOf(id), ...sums })))
    ).sort(byCost),
    unknown,
  };
}

function add(sums: Map<string, { costUsd: number; sessions: number }>, key: string, costUsd: number): void {
  const { costUsd: before = 0, sessions = 0 } = sums.get(key) ?? {};
  sums.set(key, { costUsd: before + costUsd, sessions: sessions + 1 });
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
