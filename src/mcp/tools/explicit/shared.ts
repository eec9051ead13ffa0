import { z } from 'zod';
import type { Engine } from '../../../engine/engine.ts';
import type { Session } from '../../../engine/session.ts';
import { EXPLICIT_STATUSES } from '../../views/status.ts';

export const status = z.enum(EXPLICIT_STATUSES);

/** What an error is told in. */
export const errorFields = { isError: z.boolean().optional(), error: z.string().optional() };

/** The whole answer of a tool that sets a session in motion or stops it. */
export const statusOutput = z.looseObject({
  sessionId: z.string(),
  status: status.optional(),
  warnings: z.array(z.string()).optional(),
  ...errorFields,
});

/** What a tool answers that set a session in motion. */
export function startedView(session: Session, engine: Engine): object {
  const warnings = engine.warningsOf(session);
  return { sessionId: session.id, status: 'running', ...(warnings.length > 0 && { warnings }) };
}
