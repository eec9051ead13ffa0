/** Values derived from rows: their text, what state they are in, and where a page of them ends. */

import { DomainError } from '../errors/errors.ts';
import { STATES_AT_REST } from '../schema/enums.ts';
import type { HubRef, StoredCommand, StoredSession } from '../schema/store.ts';

/** Nothing that a session says or is asked comes close, and Postgres accepts no more than a gigabyte. */
const MAX_ROW_CHARACTERS = 64 * 1024 * 1024;

export function toJson(row: unknown): string {
  const json = JSON.stringify(row);
  if (json.length <= MAX_ROW_CHARACTERS) return json;
  throw new DomainError('INVALID_ARGUMENT', `${json.length} characters exceed the store's row limit.`);
}

export function isSameIncarnation(one: HubRef, other: HubRef): boolean {
  return one.hub === other.hub && one.fence === other.fence;
}

export function isResting({ state }: StoredSession): boolean {
  return (STATES_AT_REST as readonly string[]).includes(state.tag);
}

/** What a hub carries out at once is in no session's queue, where a hub would pick it up. */
export const NO_SESSION = 'api';

/** Its outcome is not known yet. */
export function isUnderWay(command: StoredCommand): boolean {
  return finishedAt(command) === undefined || command.progress.status === 'carriedOut';
}

/** When there was nothing left to be done that must not be done twice. */
export function finishedAt({ progress }: StoredCommand): number | undefined {
  return progress.status === 'queued' || progress.status === 'taken' ? undefined : progress.at;
}

/** Where a page ended: the time it is ordered by, and the id among rows with the same time. */
export interface PageEnd {
  readonly at: number;
  readonly id: string;
}

function toCursor({ at, id }: PageEnd): string {
  return `${at}.${id}`;
}

export function fromCursor(cursor: string): PageEnd {
  const [, at, id] = /^(\d{1,15})\.(.+)$/s.exec(cursor) ?? [];
  if (at === undefined || id === undefined) {
    throw new DomainError('INVALID_ARGUMENT', 'This is not a cursor from an earlier page; start again without it.');
  }
  return { at: Number(at), id };
}

/** One row more than requested means that there is another page. */
export function toPage<Row>(
  rows: readonly Row[],
  limit: number,
  endOf: (row: Row) => PageEnd,
): { items: Row[]; next?: string } {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return rows.length > limit && last !== undefined ? { items, next: toCursor(endOf(last)) } : { items };
}
