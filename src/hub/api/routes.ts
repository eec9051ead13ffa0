import { randomUUID } from 'node:crypto';
import type { Principal } from '../../engine/rules/access.ts';
import { streamQuery } from '../../schema/api-events.ts';
import type { Store } from '../../store/contract.ts';
import { shownName } from '../auth/tokens.ts';
import type { Route } from '../http/route.ts';
import { actionRoutes } from './action-routes.ts';
import { adminRoutes } from './admin-routes.ts';
import { served, defineRoute, type ApiContext, type ApiRoute } from './define-route.ts';
import { SentFrames, KnownSessions, streamFeed, Replays, type StreamSource } from './event-stream.ts';
import { FeedTail } from './feed-tail.ts';
import { openApiRoute } from './openapi.ts';
import { pushRoutes } from './push-routes.ts';
import { requestRoutes } from './request-routes.ts';
import { EVERY_ROLE, visibleSession } from './rights.ts';
import { ruleRoutes } from './rule-routes.ts';
import { sessionRoutes } from './session-routes.ts';
import type { ViewContext } from './views.ts';

/** Everything under `/api/v1`, in the order of the document. */
export function apiRouteTable(viewOf: (principal: Principal) => ViewContext): ApiRoute[] {
  return [
    ...sessionRoutes(viewOf),
    ...actionRoutes(viewOf),
    ...requestRoutes(viewOf),
    ...ruleRoutes(viewOf),
    ...streamRoutes(viewOf),
    ...pushRoutes(),
    ...adminRoutes(viewOf),
  ];
}

export function apiRoutes(context: ApiContext): Route[] {
  const names = new PrincipalNames(context.store);
  const { approvals, allowSensitiveSessionDetails: showsDetails } = context.settings;
  const viewOf = (principal: Principal): ViewContext => ({
    ...{ principal, approvals, showsDetails },
    nameOf: (id) => names.of(id),
  });
  const table = apiRouteTable(viewOf);
  return served([...table, openApiRoute(table)], context);
}

const MAX_REMEMBERED = 5_000;

/** Display name of a principal: a token's name, otherwise the id. A token's name never changes. */
export class PrincipalNames {
  readonly #store: Pick<Store, 'token'>;
  readonly #known = new Map<string, string>();

  constructor(store: Pick<Store, 'token'>) {
    this.#store = store;
  }

  async of(principalId: string): Promise<string> {
    // The name of a sign-in by `hub open`.
    if (principalId === 'person') return 'this user';
    const known = this.#known.get(principalId);
    if (known !== undefined) return known;
    // Only the holder of a token has the token's name: a subject of an issuer can have the id of one as its name.
    const [, tokenId] = /^(?:token:)?(t_\w+)$/.exec(principalId) ?? [];
    const token = tokenId === undefined ? undefined : await this.#store.token(tokenId);
    const name = token ? shownName(token.id, token.name) : principalId;
    if (this.#known.size >= MAX_REMEMBERED) this.#known.clear();
    this.#known.set(principalId, name);
    return name;
  }
}

/** The stream of everything. */
function streamRoutes(viewOf: (principal: Principal) => ViewContext): ApiRoute[] {
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
            'Events named session, request, event, writing, removed, reset and live; see components.schemas.Stream_*.',
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
    writing: (principal) => {
      const client = context.clientFor(principal);
      return (sessionId) => client.writing(sessionId);
    },
    storeId: () =>
      (storeId ??= store.ensureSetting('store.id', randomUUID()).catch((error: unknown) => {
        storeId = undefined;
        throw error;
      })),
  };
}
