import { z } from 'zod';
import type { Session } from '../../../engine/session.ts';
import { explicitStatus, statusAnswer, type StatusAnswer } from '../../../schema/results.ts';
import type { ToolContext } from '../../define-tool.ts';
import { listedAs } from '../../list-schema.ts';
import { explicitStatusView } from '../../views/explicit-status-view.ts';
import { waitForSession } from '../../wait.ts';

export const DEFAULT_OUTPUT_LINES = 50;

/** The fields of an error. */
export const errorFields = { isError: z.boolean().optional(), error: z.string().optional() };

/** The whole answer of a tool that stops a session. */
export const briefOutput = z.object({ sessionId: z.string(), status: explicitStatus.optional(), ...errorFields });

const OBJECTS = { type: 'array', items: { type: 'object' } };
const { pendingInputs, toolUseEvents, work } = statusAnswer.shape;

/** The response of a tool that sets a session in motion: without a wait, only the first two fields. */
export const statusOutput = z
  .object({
    ...statusAnswer.shape,
    work: listedAs(work, { type: 'object' }),
    pendingInputs: listedAs(pendingInputs, OBJECTS),
    toolUseEvents: listedAs(toolUseEvents, OBJECTS),
  })
  .partial()
  .extend({ sessionId: z.string(), ...errorFields });

/** Immediately, or after a wait like `claude_get_status`. */
export async function movedView(
  session: Session,
  waitMs: number | undefined,
  context: ToolContext,
): Promise<StatusAnswer | undefined> {
  if (waitMs === undefined || waitMs === 0) return undefined;
  const waited = await waitForSession(session, waitMs, context);
  return explicitStatusView(waited, { outputLines: DEFAULT_OUTPUT_LINES, turn: 'last' });
}
