import type { Driven } from '../../engine/session/elsewhere.ts';
import type { ToolContext } from '../define-tool.ts';

/** What the response to a start or a message should also mention. */
export function shownWarnings(warnings: readonly string[]): { warnings?: string[] } {
  return warnings.length === 0 ? {} : { warnings: [...warnings] };
}

/** A call repeated with the answers to its forms has done its part already: it must not start or send anything again. */
export function repeated({ forms }: ToolContext): Driven | undefined {
  return forms?.sessionId === undefined ? undefined : { sessionId: forms.sessionId, warnings: [] };
}
