import { z } from 'zod';
import type { Driven } from '../../../engine/session/elsewhere.ts';
import { WORK_DETAILS, type ResponseMode } from '../../../schema/enums.ts';
import type { CheckAnswer } from '../../../schema/results.ts';
import { checkView, type CheckViewOptions } from '../../../views/check-view.ts';
import { effectiveLine, startedWorkspace } from '../../../views/session-view.ts';
import { shownWarnings, type ToolContext } from '../../define-tool.ts';
import { unlisted } from '../../list-schema.ts';
import { waitForSession } from '../../wait.ts';

export const CHECK_ACTIONS = ['poll', 'wait', 'respond_permission'] as const;

export const pollOptions = z
  .strictObject({
    includeEvents: z
      .boolean()
      .describe('default only for poll')
      .meta({ note: '`events`.', whenOmitted: '`true` for `poll`, `false` for the others' }),
    includeTools: unlisted(z.boolean()).meta({
      note: '`availableTools`: the tools of this session.',
      whenOmitted: '`false`',
    }),
    includeActions: unlisted(z.boolean()).meta({
      note: '`actions`: requests waiting for an answer.',
      whenOmitted: '`true`',
    }),
    includeResult: unlisted(z.boolean()).meta({
      note: '`result`, once the session is at rest.',
      whenOmitted: '`true`',
    }),
    includeUsage: unlisted(z.boolean()).meta({
      note: '`result.usage`: tokens of this call.',
      whenOmitted: 'only in `full`',
    }),
    includeModelUsage: unlisted(z.boolean()).meta({
      note: '`result.modelUsage`: tokens and cost by model.',
      whenOmitted: 'only in `full`',
    }),
    includeStructuredOutput: unlisted(z.boolean()).meta({
      note: '`result.structuredOutput`, if the session has an `outputFormat`.',
      whenOmitted: '`true`',
    }),
    includeTerminalEvents: unlisted(z.boolean()).meta({
      note: 'Events that end a call, of type `result` and `error`.',
      whenOmitted: 'only in `full`',
    }),
    includeProgressEvents: unlisted(z.boolean()).meta({
      note: 'Events of type `progress`.',
      whenOmitted: 'only in `full`',
    }),
    includeWork: unlisted(z.enum(WORK_DETAILS)).meta({
      note: '`full`: `result.work` lists every file and command of the call.',
      whenOmitted: '`short`: counts, and as many files as fit into 1,200 bytes',
    }),
    toolUseID: z.string().min(1).describe('show this tool call in full').meta({
      note: 'Show this tool call in full: input, output, outcome. Omits events and result unless requested.',
      whenOmitted: 'none',
    }),
    maxBytes: z.int().min(1).describe('default 24000').meta({
      note: 'Approximate maximum size of the answer. `truncatedFields` lists what was cut.',
      whenOmitted: '24000 in `minimal`, no limit in `full`',
    }),
    resultOffset: z.int().min(0).describe('read a long result from here on').meta({
      note: 'Read a long final answer, or the output of `toolUseID`, starting at this character.',
      whenOmitted: '0',
    }),
  })
  .partial();

export const POLL_OPTION_NAMES = Object.keys(pollOptions.shape);

interface CheckArguments {
  cursor?: number | undefined;
  responseMode?: ResponseMode | undefined;
  maxEvents?: number | undefined;
  pollOptions?: z.infer<typeof pollOptions> | undefined;
}

const MINIMAL_BYTES = 24_000;
const MINIMAL_EVENTS = 200;

/** The defaults of a check, by what it is for. */
export function viewOptions(action: (typeof CHECK_ACTIONS)[number], args: CheckArguments): CheckViewOptions {
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

/** What start and reply return: immediately, or after a wait with what a check would return. */
export async function startedView(
  { sessionId, warnings }: Driven,
  waitMs: number | undefined,
  context: ToolContext,
): Promise<CheckAnswer> {
  const { engine } = context;
  const token = engine.resumeTokenFor(sessionId);
  const { record, log } = await engine.read(sessionId);
  const started = {
    effective: effectiveLine(record),
    ...startedWorkspace(record),
    ...(token !== undefined && { resumeToken: token }),
    ...shownWarnings(warnings),
  };
  if (waitMs === undefined || waitMs === 0) {
    return {
      sessionId,
      status: 'running',
      pollInterval: 3000,
      nextCursor: log.nextId,
      ...started,
    };
  }
  await waitForSession(sessionId, waitMs, context);
  return { ...checkView(await engine.read(sessionId), viewOptions('wait', {})), ...started };
}
