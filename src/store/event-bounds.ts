/** Which events of a session are dropped when there are too many of them. */

import type { EventBounds } from './contract.ts';

/** Kept with a session, so that an append need not count. Ordinary and kept events have separate bounds. */
export interface EventBook {
  readonly lastId: number;
  readonly droppedThrough: number;
  readonly ordinary: Tally;
  readonly kept: Tally;
}

interface Tally {
  readonly count: number;
  readonly bytes: number;
}

export interface EventSize {
  readonly id: number;
  readonly keep: boolean;
  readonly size: number;
}

export const EMPTY_BOOK: EventBook = {
  lastId: 0,
  droppedThrough: 0,
  ordinary: { count: 0, bytes: 0 },
  kept: { count: 0, bytes: 0 },
};

/** Drops a little more than necessary, so that it happens occasionally rather than at every append. */
const DROP_TO = 0.9;

export function appended(book: EventBook, { id, keep, size }: EventSize): EventBook {
  const tally = keep ? 'kept' : 'ordinary';
  const { count, bytes } = book[tally];
  return { ...book, lastId: id, [tally]: { count: count + 1, bytes: bytes + size } };
}

export function isOver(book: EventBook, bounds: EventBounds): boolean {
  return exceeds(book.ordinary, bounds) || exceeds(book.kept, bounds);
}

/** The oldest of each kind that exceeds its bounds, never the newest event. `sizes` are all events, by ascending id. */
export function dropOldest(
  book: EventBook,
  sizes: readonly EventSize[],
  bounds: EventBounds,
): { dropped: number[]; book: EventBook } {
  const target = {
    maxEvents: Math.max(1, Math.floor(bounds.maxEvents * DROP_TO)),
    maxBytes: Math.floor(bounds.maxBytes * DROP_TO),
  };
  const tallies = { ordinary: book.ordinary, kept: book.kept };
  const dropping = { ordinary: exceeds(book.ordinary, bounds), kept: exceeds(book.kept, bounds) };
  const dropped: number[] = [];
  for (const { id, keep, size } of sizes) {
    const kind = keep ? 'kept' : 'ordinary';
    if (id === book.lastId || !dropping[kind] || !exceeds(tallies[kind], target)) continue;
    tallies[kind] = { count: tallies[kind].count - 1, bytes: tallies[kind].bytes - size };
    dropped.push(id);
  }
  const droppedThrough = Math.max(book.droppedThrough, ...dropped.slice(-1));
  return { dropped, book: { ...book, ...tallies, droppedThrough } };
}

function exceeds({ count, bytes }: Tally, { maxEvents, maxBytes }: EventBounds): boolean {
  return count > maxEvents || bytes > maxBytes;
}
