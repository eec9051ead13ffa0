import { z } from 'zod';
import type { CheckViewOptions } from '../../views/check-view.ts';

export const pollOptions = z
  .strictObject({
    includeTools: z.boolean(),
    includeEvents: z.boolean(),
    includeActions: z.boolean(),
    includeResult: z.boolean(),
    includeUsage: z.boolean(),
    includeModelUsage: z.boolean(),
    includeStructuredOutput: z.boolean(),
    includeTerminalEvents: z.boolean(),
    includeProgressEvents: z.boolean(),
    maxBytes: z.int().min(1),
    resultOffset: z.int().min(0),
  })
  .partial();

export const POLL_OPTION_NAMES = Object.keys(pollOptions.shape);

interface CheckArguments {
  cursor?: number | undefined;
  responseMode?: 'minimal' | 'full' | undefined;
  maxEvents?: number | undefined;
  pollOptions?: z.infer<typeof pollOptions> | undefined;
}

const MINIMAL_BYTES = 24_000;
const MINIMAL_EVENTS = 200;

/** The defaults of a check, by what it is for. */
export function viewOptions(action: 'poll' | 'wait', args: CheckArguments): CheckViewOptions {
  const full = args.responseMode === 'full';
  const asked = args.pollOptions ?? {};
  return {
    cursor: args.cursor,
    mode: full ? 'full' : 'minimal',
    maxEvents: args.maxEvents ?? (full ? Infinity : MINIMAL_EVENTS),
    maxBytes: asked.maxBytes ?? (full ? Infinity : MINIMAL_BYTES),
    includeEvents: asked.includeEvents ?? action === 'poll',
    includeCursor: action === 'poll',
    includeTools: asked.includeTools ?? false,
    includeActions: asked.includeActions ?? true,
    includeResult: asked.includeResult ?? true,
    includeUsage: asked.includeUsage ?? full,
    includeModelUsage: asked.includeModelUsage ?? full,
    includeStructuredOutput: asked.includeStructuredOutput ?? true,
    includeTerminalEvents: asked.includeTerminalEvents ?? full,
    includeProgressEvents: asked.includeProgressEvents ?? full,
    resultOffset: asked.resultOffset ?? 0,
  };
}
