import { z } from 'zod';
import { explicitStatus, statusAnswer, type StatusAnswer } from '../../../schema/results.ts';
import type { ToolContext } from '../../define-tool.ts';
import { listedAs, unlisted } from '../../list-schema.ts';
import { explicitStatusView } from '../../../views/explicit-view.ts';
import { waitForSession } from '../../wait.ts';
import { waitMs } from '../fields.ts';

export const DEFAULT_OUTPUT_LINES = 50;

/** The fields of an error. */
export const errorFields = {
  isError: z.boolean().optional().meta({ note: '`true` if the call failed.' }),
  error: z.string().optional().meta({ note: 'What went wrong and what to do about it.' }),
};

/** How long a call waits that sets a session in motion. */
export const motionWaitMs = waitMs.meta({
  note: 'Wait up to this long for the session to finish or ask something; the answer then has everything that `claude_get_status` would return.',
});

/** The whole answer of a tool that stops a session. */
export const briefOutput = z.object({
  sessionId: statusAnswer.shape.sessionId,
  status: explicitStatus.optional().meta({ note: '`interrupted`; the session accepts messages afterwards.' }),
  ...errorFields,
});

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
  .extend({
    sessionId: statusAnswer.shape.sessionId,
    ...errorFields,
    error: statusAnswer.shape.error,
    sessionStatus: unlisted(explicitStatus.optional()).meta({
      note: 'For a message that was refused, whose `status` is `error`: the status of the session.',
    }),
  })
  .meta({ describedWith: 'claude_get_status' });

/** Immediately, or after a wait like `claude_get_status`. */
export async function movedView(
  sessionId: string,
  wait: number | undefined,
  context: ToolContext,
): Promise<StatusAnswer | undefined> {
  if (wait === undefined || wait === 0) return undefined;
  await waitForSession(sessionId, wait, context);
  const options = { outputLines: DEFAULT_OUTPUT_LINES, turn: 'last', once: true } as const;
  return explicitStatusView(await context.engine.read(sessionId), options);
}
