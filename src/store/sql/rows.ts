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
  StoredToken,
  type FeedEntry,
} from '../../schema/store.ts';
import { EMPTY_BOOK, type EventBook } from '../event-bounds.ts';
import type { SqlRow } from './connection.ts';

export const toSession = parser(StoredSession);
export const toMessage = parser(StoredMessage);
const toRemoval = parser(StoredRemoval);
export const toRequest = parser(StoredRequest);
export const toCommand = parser(StoredCommand);
export const toGrant = parser(StoredGrant);
export const toToken = parser(StoredToken);
export const toLease = parser(StoredLease);

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

/** NULL before the first event. */
export function toBook(text: unknown): EventBook {
  return typeof text === 'string' ? (JSON.parse(text) as EventBook) : EMPTY_BOOK;
}

function parser<Row>(schema: { parse(value: unknown): Row }): (row: SqlRow) => Row {
  return (row) => schema.parse(JSON.parse(String(row['data'])));
}
