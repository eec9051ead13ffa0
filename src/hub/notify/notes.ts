import { z } from 'zod';
import { COMPACT_STATUS } from '../../views/status.ts';
import { STATES_AT_REST } from '../../schema/enums.ts';
import type { FeedEntry, StoredSession } from '../../schema/store.ts';

/** Contents of a notification: where to look, never what was said or done. */
export const note = z.object({
  /** The same however often it is sent. */
  id: z.string(),
  type: z.enum(['request.opened', 'session.rested']),
  /** When it happened. */
  time: z.iso.datetime(),
  session: z.object({ id: z.string(), status: z.string() }),
  request: z.object({ id: z.string(), kind: z.string(), toolName: z.string() }).optional(),
  /** To the dashboard. */
  link: z.string(),
});
export type Note = z.infer<typeof note>;

const MAX_RESTS = 2_000;

/**
 * Idle sessions that have been reported, each with what distinguishes this rest from the next. The oldest are
 * forgotten.
 */
export type KnownRests = Map<string, string>;

/** What a change in the store gives reason to report, if anything. */
export function noteOf(
  entry: FeedEntry,
  session: StoredSession,
  rests: KnownRests,
  { url, now }: { readonly url: string; readonly now: number },
): Note | undefined {
  const status = COMPACT_STATUS[session.state.tag];
  if (entry.kind === 'request') {
    const { id, kind, ask, createdAt, outcome } = entry.row;
    if (outcome) return undefined;
    const toolName = typeof ask['toolName'] === 'string' ? ask['toolName'] : '';
    return {
      id: `request.opened ${id}`,
      type: 'request.opened',
      time: new Date(createdAt).toISOString(),
      session: { id: session.id, status },
      request: { id, kind, toolName },
      link: `${url}/#/sessions/${encodeURIComponent(session.id)}`,
    };
  }
  if (entry.kind !== 'session') return undefined;
  const rest = restOf(session);
  const isReported = rest !== undefined && rests.get(session.id) === rest;
  rests.delete(session.id);
  if (rest === undefined) return undefined;
  rests.set(session.id, rest);
  if (rests.size > MAX_RESTS) rests.delete(rests.keys().next().value ?? '');
  if (isReported) return undefined;
  return {
    id: `session.rested ${session.id} ${rest} ${session.lastActiveAt}`,
    type: 'session.rested',
    time: new Date(now).toISOString(),
    session: { id: session.id, status },
    link: `${url}/#/sessions/${encodeURIComponent(session.id)}`,
  };
}

/** A row may be stored again while the session rests, and a turn may start and end between two looks. */
function restOf({ state: { tag }, totals }: StoredSession): string | undefined {
  if (!(STATES_AT_REST as readonly string[]).includes(tag)) return undefined;
  return [tag, totals['turns'], totals['costUsd']].join('/');
}
