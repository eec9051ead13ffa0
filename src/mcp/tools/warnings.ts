import type { Session } from '../../engine/session.ts';

/** What the response to a start or a message should also mention; each line is shown once. */
export function takeWarnings({ warnings }: Session): { warnings?: string[] } {
  return warnings.length === 0 ? {} : { warnings: warnings.splice(0) };
}
