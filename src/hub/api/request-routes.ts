import { DomainError } from '../../errors/errors.ts';
import {
  answeredRequest,
  answerBody,
  apiError,
  apiRequest,
  requestsPage,
  requestsQuery,
  type AnswerBody,
  type AnsweredRequest,
  type ApiError,
  type ApiRequest,
  type RequestsPage,
} from '../../schema/api.ts';
import type { StoredRequest, StoredSession } from '../../schema/store.ts';
import type { RouteResponse } from '../http/route.ts';
import type { Principal } from '../../engine/rules/access.ts';
import type { Stale } from '../../schema/results.ts';
import { defineRoute, type ApiContext, type ApiRoute } from './define-route.ts';
import { DECIDERS, EVERY_ROLE, readsAll, visibleRequest } from './rights.ts';
import { outcomeView, requestView, type ViewContext } from './views.ts';

/** The inbox, and the answers to what is in it. */
const ACCEPT_EDITS = { type: 'setMode', mode: 'acceptEdits', destination: 'session' } as const;

export function requestRoutes(viewOf: (principal: Principal) => ViewContext): ApiRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v1/requests',
      operation: 'listRequests',
      summary: 'The inbox: requests waiting for an answer, oldest first, each with its full input.',
      roles: EVERY_ROLE,
      query: requestsQuery,
      answers: { 200: { description: 'A page of open requests.', schema: requestsPage } },
      async run({ context: { store }, principal, query: { session, after, limit } }) {
        const { items, next } = await store.inbox({
          limit,
          ...(!readsAll(principal) && { principal: principal.id }),
          ...(session !== undefined && { sessionId: session }),
          ...(after !== undefined && { after }),
        });
        const sessions = new Map<string, Promise<StoredSession | undefined>>();
        const sessionOf = ({ sessionId }: StoredRequest): Promise<StoredSession | undefined> => {
          const known = sessions.get(sessionId) ?? store.session(sessionId);
          sessions.set(sessionId, known);
          return known;
        };
        const view = viewOf(principal);
        const shown = await Promise.all(
          items.map(async (row): Promise<ApiRequest[]> => {
            const of = await sessionOf(row);
            return of ? [await requestView(row, of, view)] : [];
          }),
        );
        const json: RequestsPage = { requests: shown.flat(), ...(next !== undefined && { next }) };
        return { status: 200, json };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v1/requests/{requestId}',
      operation: 'getRequest',
      summary: 'A request, open or settled.',
      roles: EVERY_ROLE,
      answers: { 200: { description: 'The request.', schema: apiRequest } },
      async run({ context, principal, params }) {
        const { request, session } = await visibleRequest(context.store, principal, params['requestId'] ?? '');
        const stale = request.outcome ? undefined : await examined(context, principal, request);
        const json: ApiRequest = {
          ...(await requestView(request, session, viewOf(principal))),
          ...(stale && { stale }),
        };
        return { status: 200, json };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v1/requests/{requestId}/answer',
      operation: 'answerRequest',
      summary: 'Answers a request, once: later answers are told who decided what.',
      roles: DECIDERS,
      body: answerBody,
      repeat: 'run-again',
      maxBodyBytes: 4 * 1024 * 1024,
      answers: {
        200: { description: 'The answer was accepted.', schema: answeredRequest },
        409: {
          description:
            'It was already settled, and `outcome` says by whom and how; or it may no longer mean what it meant, and `stale` says why.',
          schema: apiError,
        },
      },
      async run({ context, principal, params, body: { acceptEdits = false, ...given }, isRepeat }) {
        refuseMisplaced({ acceptEdits, ...given });
        const { store } = context;
        const view = viewOf(principal);
        const id = params['requestId'] ?? '';
        const { request, session } = await visibleRequest(store, principal, id);
        if (request.outcome) {
          const { by, decision } = request.outcome;
          const isThisAnswer = isRepeat && by === principal.id && decision === given.decision;
          return isThisAnswer
            ? { status: 200, json: { request: await requestView(request, session, view) } }
            : settledBefore(request.outcome, view);
        }
        const client = context.clientFor(principal);
        try {
          const answer = { ...given, ...(acceptEdits && { updatedPermissions: [ACCEPT_EDITS] }) };
          const command = { kind: 'respond', sessionId: session.id, requestId: id, answer } as const;
          const { warnings } = await client.execute<'respond'>(command);
          await context.stored();
          const row = (await store.request(id)) ?? request;
          const json: AnsweredRequest = {
            request: await requestView(row, session, view),
            ...(warnings.length > 0 && { warnings: [...warnings] }),
          };
          return { status: 200, json };
        } catch (error) {
          if (!(error instanceof DomainError)) throw error;
          if (error.code === 'INVALID_ARGUMENT' && given.decision === 'allow') {
            const stale = await examined(context, principal, request);
            if (stale && stale.digest !== given.confirm) return mayHaveChanged(error, stale);
          }
          if (error.code !== 'PERMISSION_REQUEST_NOT_FOUND') throw error;
          // Someone was faster; their decision may not have reached the store yet.
          await context.stored();
          const row = await store.request(id);
          if (row?.outcome) return settledBefore(row.outcome, view);
          throw error;
        }
      },
    }),
  ];
}

/** What does not go with the decision is refused, as by the tools, not dropped. */
function refuseMisplaced({ decision, message: _, interrupt, ...withAllow }: AnswerBody): void {
  const given = decision === 'allow' ? { interrupt } : withAllow;
  const names = Object.entries(given).flatMap(([name, value]) =>
    value === undefined || value === false ? [] : [name],
  );
  if (names.length > 0)
    throw new DomainError(
      'INVALID_ARGUMENT',
      `${names.join(', ')}: only valid with decision "${decision === 'allow' ? 'deny' : 'allow'}".`,
    );
}

/** What has changed since it was asked; undefined also if that cannot be found out now. */
async function examined(
  context: Pick<ApiContext, 'clientFor'>,
  principal: Principal,
  { id: requestId, sessionId }: StoredRequest,
): Promise<Stale | undefined> {
  try {
    return (await context.clientFor(principal).execute<'examine'>({ kind: 'examine', sessionId, requestId })).stale;
  } catch (error) {
    if (error instanceof DomainError) return undefined;
    throw error;
  }
}

function mayHaveChanged({ message }: DomainError, stale: Stale): RouteResponse {
  const json: ApiError = { error: { code: 'stale', message }, stale };
  return { status: 409, json };
}

async function settledBefore(stored: NonNullable<StoredRequest['outcome']>, view: ViewContext): Promise<RouteResponse> {
  const outcome = await outcomeView(stored, view);
  const did = outcome.decision === 'allow' ? 'allowed' : 'denied';
  const message = `This request was ${did} by ${outcome.by} (${outcome.source}) at ${outcome.at}.`;
  const json: ApiError = { error: { code: 'PERMISSION_REQUEST_NOT_FOUND', message }, outcome };
  return { status: 409, json };
}
