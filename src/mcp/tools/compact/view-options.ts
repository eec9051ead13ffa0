import { z } from 'zod';
import type { EngineClient } from '../../../engine/client.ts';
import type { SessionReading } from '../../../engine/conversation/reading.ts';
import type { Driven, Started } from '../../../engine/elsewhere/elsewhere.ts';
import { WORK_DETAILS, type ResponseMode } from '../../../schema/enums.ts';
import type { AttemptsAnswer, CheckAnswer, CheckedSession } from '../../../schema/results.ts';
import { checkView, checkViews, type CheckViewOptions } from '../../../views/check-view.ts';
import { effectiveLine, startedWorkspace } from '../../../views/session-view.ts';
import { shownWarnings, type ToolContext } from '../../define-tool.ts';
import { unlisted } from '../../list-schema.ts';
import { waitForSession, waitForSessions } from '../../wait.ts';

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
  { sessionId, warnings, attempts }: Started,
  waitMs: number | undefined,
  context: ToolContext,
): Promise<CheckAnswer | AttemptsAnswer> {
  const { engine } = context;
  if (attempts) return attemptsView(attempts, waitMs, context);
  const reading = await engine.read(sessionId);
  const started = {
    effective: effectiveLine(reading.record),
    ...startedFields(reading, engine),
    ...shownWarnings(warnings),
  };
  if (waitMs === undefined || waitMs === 0) return { ...runningView(reading), ...started };
  await waitForSession(sessionId, waitMs, context);
  return { ...checkView(await engine.read(sessionId), viewOptions('wait', {})), ...started };
}

/** What is the same for all of them stands beside them. */
async function attemptsView(
  attempts: readonly Driven[],
  waitMs: number | undefined,
  context: ToolContext,
): Promise<AttemptsAnswer> {
  const { engine } = context;
  const ids = attempts.map(({ sessionId }) => sessionId);
  const read = (): Promise<SessionReading[]> => Promise.all(ids.map((id) => engine.read(id)));
  const waits = waitMs !== undefined && waitMs > 0;
  if (waits) await waitForSessions(ids, waitMs, context);
  const readings = await read();
  const views = waits ? checkViews(readings, viewOptions('wait', {})) : readings.map(runningView);
  const shared = new Set(attempts[0]?.warnings.filter((line) => attempts.every((one) => one.warnings.includes(line))));
  const entries = readings.map((reading, index): CheckedSession => ({
    ...views[index],
    sessionId: reading.record.id,
    ...startedFields(reading, engine),
    ...shownWarnings(attempts[index]?.warnings.filter((line) => !shared.has(line)) ?? []),
  }));
  const { cwd: _, ...options } = readings[0]?.record.options ?? {};
  return {
    sessionId: ids[0] ?? '',
    status: entries[0]?.status ?? 'running',
    effective: effectiveLine({ ...readings[0]?.record, options }),
    ...shownWarnings([...shared]),
    attempts: entries,
  };
}

function startedFields(
  { record }: SessionReading,
  engine: EngineClient,
): Pick<CheckAnswer, 'workspace' | 'resumeToken'> {
  const resumeToken = engine.resumeTokenFor(record.id);
  return { ...startedWorkspace(record), ...(resumeToken !== undefined && { resumeToken }) };
}

function runningView({ record, log }: SessionReading): CheckAnswer {
  return { sessionId: record.id, status: 'running', pollInterval: 3000, nextCursor: log.nextId };
}
