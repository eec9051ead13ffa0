import type { Session } from '../../engine/session.ts';

/** What an answer to a start or a message has to say besides; each line is told once. */
export function takeWarnings({ warnings }: Session): { warnings?: string[] } {
  return warnings.length === 0 ? {} : { warnings: warnings.splice(0) };
}
