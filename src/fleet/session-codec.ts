/** How the records of sessions and requests are stored, in both directions. */

import type { Decision } from '../driver/permission-ask.ts';
import type { Message } from '../engine/conversation/outbox.ts';
import type { Outcome } from '../engine/requests/requests.ts';
import { ranInstead } from '../engine/requests/shown-request.ts';
import { RequestRecord, type SessionEvent } from '../schema/events.ts';
import { SessionRecord } from '../schema/records.ts';
import type {
  HubRef,
  RequestOutcome,
  StoredMessage,
  StoredRequest,
  StoredSession,
  StoredEvent,
} from '../schema/store.ts';
import type { EventPage, Store } from '../store/contract.ts';

export function sessionRow(record: SessionRecord, runsOn: HubRef): StoredSession {
  const {
    id,
    owner,
    state: tag,
    title,
    createdAt,
    lastActiveAt,
    archivedAt,
    options,
    workspace,
    totals,
    ...state
  } = record;
  const { secretNames, movable } = record.continuity;
  return {
    id,
    principal: owner.id,
    ...(title !== '' && { title: withoutNul(title) }),
    cwd: withoutNul(options.cwd ?? ''),
    options: asJson(options),
    secretNames,
    workspace,
    totals,
    state: asJson({ tag, owner, ...state }) as StoredSession['state'],
    createdAt: Math.trunc(createdAt),
    lastActiveAt: Math.trunc(lastActiveAt),
    ...(archivedAt !== undefined && { archivedAt: Math.trunc(archivedAt) }),
    runsOn,
    ...(movable && { movable: true }),
  };
}

/** Throws if the row is not one that this version can read. */
export function recordOfRow(row: StoredSession): SessionRecord {
  const { tag, ...state } = row.state;
  const { id, title = '', createdAt, lastActiveAt, archivedAt, options, workspace, totals } = row;
  const times = { createdAt, lastActiveAt, archivedAt };
  return SessionRecord.parse({ ...state, id, state: tag, title, ...times, options, workspace, totals });
}

/** Undefined if the row is not one that this version can read. */
export function readableRecord(row: StoredSession): SessionRecord | undefined {
  try {
    return recordOfRow(row);
  } catch {
    return undefined;
  }
}

/** A message to Claude Code, with how much of it is the hub's own words. */
export function messageContent({ text, preamble }: Message): unknown {
  return preamble === undefined ? text : { text, preamble };
}

export function messageOfRow({ id, content }: StoredMessage): Message {
  if (typeof content === 'string') return { id, text: content };
  const { text, preamble } = content as { text: string; preamble: number };
  return { id, text, preamble };
}

/** A request with everything needed to show and answer it, whichever process asked. */
export function requestRow(sessionId: string, request: RequestRecord): Omit<StoredRequest, 'outcome'> {
  const { id, kind, createdAt, expiresAt, ask, ...context } = request;
  return {
    id,
    sessionId,
    kind,
    ask: asJson({ ...ask, ...context }),
    createdAt: Math.trunc(createdAt),
    ...(expiresAt !== undefined && { expiresAt: Math.trunc(expiresAt) }),
  };
}

export function requestOfRow({ id, kind, ask, createdAt, expiresAt }: StoredRequest): RequestRecord {
  const { plan, said, agent, cwd, scope, edit, target, branch, own, ...asked } = ask;
  const context = { plan, said, agent, cwd, scope, edit, target, branch, own };
  return RequestRecord.parse({ id, kind, ask: asked, ...context, createdAt, expiresAt });
}

/** `hub`: the one that stores and audits it. */
export function outcomeRow(request: RequestRecord, outcome: Outcome, at: number, hub: string): RequestOutcome {
  const { decision, source, by, byName, always, rule } = outcome;
  return {
    decision: decision.behavior,
    by: by ?? source,
    source,
    at: Math.trunc(at),
    hub,
    ...(byName !== undefined && { byName }),
    ...(always && { always }),
    ...(rule && { rule }),
    ...(decision.behavior === 'deny' && { message: decision.message }),
    ...(ranInstead(request, decision) && { inputChanged: true }),
    // For a process that has not heard of it when the hub ends.
    given: asJson(decision),
  };
}

/** As Claude Code is to be told; undefined if it was stored by a version that did not keep it. */
export function decisionOf(outcome: RequestOutcome): Decision | undefined {
  return (outcome as { given?: Decision }).given;
}

/** Values omitted in JSON are omitted here too. */
function asJson(value: object): Record<string, unknown> {
  return JSON.parse(JSON.stringify(value)) as Record<string, unknown>;
}

/** Postgres has no NUL in text. */
function withoutNul(text: string): string {
  return text.replaceAll('\0', '');
}

const EVENTS_PER_PAGE = 1_000;

/** What a session is loaded with; whoever wants to read more gets it from the store. */
const LOADED_EVENTS = 2_000;
/** No event has a higher id. */
const LAST_POSSIBLE = 2 ** 31 - 1;

type StoredEvents = Omit<EventPage, 'events'> & { events: SessionEvent[] };

/** The newest events of a session as they are stored; those before them count as dropped. */
export async function newestEvents(store: Pick<Store, 'events'>, sessionId: string): Promise<StoredEvents> {
  const { lastId } = await store.events(sessionId, { after: LAST_POSSIBLE, limit: 1 });
  const before = Math.max(0, lastId - LOADED_EVENTS);
  const newest = await storedEvents(store, sessionId, before);
  return { ...newest, droppedThrough: Math.max(before, newest.droppedThrough) };
}

/** The events of a session as they are stored, from after one on. */
export async function storedEvents(
  store: Pick<Store, 'events'>,
  sessionId: string,
  after: number,
): Promise<StoredEvents> {
  const events: StoredEvent[] = [];
  for (;;) {
    const page = await store.events(sessionId, { after: events.at(-1)?.id ?? after, limit: EVENTS_PER_PAGE });
    events.push(...page.events);
    // One that cannot be read is missing from its page, which is then not the last one.
    if (page.events.length === 0 || (events.at(-1)?.id ?? 0) >= page.lastId)
      return { ...page, events: events.map(sessionEvent) };
  }
}

export function sessionEvent({ id, type, at, data }: StoredEvent): SessionEvent {
  return { id, type, at, ...(data as object) } as SessionEvent;
}
