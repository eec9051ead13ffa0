import type { Session } from '../../engine/session.ts';

/** Silence of this length while Claude works is worth mentioning. */
export const QUIET_AFTER_MS = 30_000;

export function activityLine(session: Session): string {
  const { atRest, requests, totals, quietMs } = session;
  const { costUsd, results } = totals.call;
  const line = session.activity.line(results > 0 ? costUsd : undefined, !atRest);
  // A session that waits for an answer is expected to be silent.
  if (atRest || requests.length > 0 || quietMs < QUIET_AFTER_MS) return line;
  return `quiet for ${String(Math.round(quietMs / 1000))} s, ${line}`.slice(0, 200);
}
