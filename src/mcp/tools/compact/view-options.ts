import { z } from 'zod';
import { unlisted } from '../../list-schema.ts';
import type { CheckViewOptions } from '../../views/check-view.ts';

export const pollOptions = z
  .strictObject({
    includeEvents: z.boolean().describe('default only for poll'),
    includeTools: unlisted(z.boolean()),
    includeActions: unlisted(z.boolean()),
    includeResult: unlisted(z.boolean()),
    includeUsage: unlisted(z.boolean()),
    includeModelUsage: unlisted(z.boolean()),
    includeStructuredOutput: unlisted(z.boolean()),
    includeTerminalEvents: unlisted(z.boolean()),
    includeProgressEvents: unlisted(z.boolean()),
    includeWork: unlisted(z.enum(['short', 'full'])),
    toolUseID: z.string().min(1).describe('show this tool call in full'),
    maxBytes: z.int().min(1).describe('default 24000'),
    resultOffset: z.int().min(0).describe('read a long result from here on'),
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
export function viewOptions(action: 'poll' | 'wait' | 'respond_permission', args: CheckArguments): CheckViewOptions {
  const full = args.responseMode === 'full';
  const asked = args.pollOptions ?? {};
  return {
    cursor: args.cursor,
    mode: full ? 'full' : 'minimal',
    maxEvents: args.maxEvents ?? (full ? Infinity : MINIMAL_EVENTS),
    maxBytes: asked.maxBytes ?? (full ? Infinity : MINIMAL_BYTES),
    includeEvents: asked.includeEvents ?? (action === 'poll' && asked.toolUseID === undefined),
    includeTools: asked.includeTools ?? false,
    includeActions: asked.includeActions ?? true,
    includeResult: asked.includeResult ?? asked.toolUseID === undefined,
    includeUsage: asked.includeUsage ?? full,
    includeModelUsage: asked.includeModelUsage ?? full,
    includeStructuredOutput: asked.includeStructuredOutput ?? true,
    includeWork: asked.includeWork ?? 'short',
    includeTerminalEvents: asked.includeTerminalEvents ?? full,
    includeProgressEvents: asked.includeProgressEvents ?? full,
    resultOffset: asked.resultOffset ?? 0,
    toolUseID: asked.toolUseID,
  };
}
