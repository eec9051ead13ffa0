/** Table rows to contract rows: the boundary where JSON from outside is validated. */

import {
  StoredCommand,
  StoredEvent,
  StoredGrant,
  StoredLease,
  StoredMessage,
  StoredRemoval,
  StoredRequest,
  StoredSession,
  StoredSubscription,
  StoredToken,
  type FeedEntry,
} from '../../schema/store.ts';
import { StandingRule } from '../../schema/standing-rules.ts';
import { DomainError, messageOf } from '../../errors/errors.ts';
import { EMPTY_BOOK, type EventBook } from '../event-bounds.ts';
import type { SqlRow } from './connection.ts';

export const toSession = parser(StoredSession);
export const toMessage = parser(StoredMessage);
const toRemoval = parser(StoredRemoval);
export const toRequest = parser(StoredRequest);
export const toCommand = parser(StoredCommand);
export const toGrant = parser(StoredGrant);
export const toToken = parser(StoredToken);
export const toSubscription = parser(StoredSubscription);
export const toLease = parser(StoredLease);

/** Not validated again: a replay reads a hundred thousand of them, and only compares what it knows. */
export function toKnownRequest(row: SqlRow): StoredRequest {
  return JSON.parse(String(row['data'])) as StoredRequest;
}

export function toRule(row: SqlRow): StandingRule {
  const { uses, last_used_at: lastUsedAt, data } = row;
  const content = JSON.parse(String(data)) as object;
  return StandingRule.parse({
    ...content,
    uses: Number(uses),
    ...(lastUsedAt !== null && { lastUsedAt: Number(lastUsedAt) }),
  });
}

export function toEvent(row: SqlRow): StoredEvent {
  return StoredEvent.parse({
    sessionId: row['session_id'],
    id: row['id'],
    at: row['at'],
    type: row['type'],
    keep: row['keep'] === 1,
    data: JSON.parse(String(row['data'])) as unknown,
  });
}

export function toFeedEntry(row: SqlRow): FeedEntry {
  const seq = Number(row['seq']);
  switch (row['kind']) {
    case 'session':
      return { kind: 'session', seq, row: toSession(row) };
    case 'request':
      return { kind: 'request', seq, row: toRequest(row) };
    case 'command':
      return { kind: 'command', seq, row: toCommand(row) };
    case 'removal':
      return { kind: 'removal', seq, row: toRemoval(row) };
    default:
      return { kind: 'event', seq, row: toEvent(row) };
  }
}

/** Called with one line for each row that cannot be read. */
export type ReportUnreadable = (line: string) => void;

interface ReadRows<Row> {
  readonly read: Row[];
  /** Their ids. */
  readonly unreadable: string[];
}

/** Rows that cannot be read are left out and reported, so that one of them does not hide all others. */
export function readEach<Row>(
  rows: readonly SqlRow[],
  to: (row: SqlRow) => Row,
  report: ReportUnreadable,
  nameOf: (row: SqlRow) => string,
): ReadRows<Row> {
  const found: ReadRows<Row> = { read: [], unreadable: [] };
  for (const row of rows) {
    try {
      found.read.push(to(row));
    } catch (error) {
      const name = nameOf(row);
      found.unreadable.push(String(row['id']));
      report(`The store has a ${name} that cannot be read: ${reason(error)}. It is left out, and stays in the store.`);
    }
  }
  return found;
}

/** The one row that was asked for. */
export function readOne<Row>(row: SqlRow, to: (row: SqlRow) => Row, name: string): Row {
  try {
    return to(row);
  } catch (error) {
    throw new DomainError('INTERNAL', `The ${name} is stored, but cannot be read: ${reason(error)}.`, { cause: error });
  }
}

/** Each row once: lists are read again and again. */
export function reportOnce(report: ReportUnreadable): ReportUnreadable {
  const reported = new Set<string>();
  return (line) => {
    if (reported.has(line) || reported.size >= MAX_REPORTED) return;
    reported.add(line);
    report(line);
  };
}

const MAX_REPORTED = 1_000;

/** On one line, and without quoting what is stored. */
function reason(error: unknown): string {
  const { issues } = error as { issues?: readonly { readonly path: readonly PropertyKey[] }[] };
  if (issues)
    return `${issues.map(({ path }) => path.map(String).join('.') || 'the row').join(', ')} has the wrong form`;
  return error instanceof SyntaxError ? 'it is not valid JSON' : messageOf(error);
}

/** NULL before the first event. */
export function toBook(text: unknown): EventBook {
  return typeof text === 'string' ? (JSON.parse(text) as EventBook) : EMPTY_BOOK;
}

function parser<Row>(schema: { parse(value: unknown): Row }): (row: SqlRow) => Row {
  return (row) => schema.parse(JSON.parse(String(row['data'])));
}
