import type { Session } from '../../engine/session.ts';

/** Silence of this length while Claude works is worth a word. */
export const QUIET_AFTER_MS = 30_000;

export function activityLine(session: Session): string {
  const line = session.activity.line(session.totals.call.costUsd, !session.atRest);
  if (session.atRest || session.quietMs < QUIET_AFTER_MS) return line;
  return `quiet for ${String(Math.round(session.quietMs / 1000))} s, ${line}`.slice(0, 200);
}
