import { z } from 'zod';
import { EXPLICIT_STATUSES } from '../../views/status.ts';

export const status = z.enum(EXPLICIT_STATUSES);

/** What an error is told in. */
export const errorFields = { isError: z.boolean().optional(), error: z.string().optional() };

/** The whole answer of a tool that sets a session in motion or stops it. */
export const statusOutput = z.looseObject({
  sessionId: z.string(),
  status: status.optional(),
  ...errorFields,
});

/** The same of a tool that may start a process. */
export const startedOutput = z.looseObject({ ...statusOutput.shape, warnings: z.array(z.string()).optional() });
