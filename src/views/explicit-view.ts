import type { ToolUse } from '../engine/conversation/activity.ts';
import type { SessionReading } from '../engine/conversation/reading.ts';
import { assistantText } from '../engine/conversation/agent-reports.ts';
import { isAtRest } from '../engine/conversation/state.ts';
import { cutAt } from '../engine/conversation/tool-summary.ts';
import { roundUsd } from '../engine/conversation/totals.ts';
import { kindOf } from '../engine/requests/requests.ts';
import type { ListedSession } from '../engine/session/session-listing.ts';
import type { StatusSpan } from '../schema/enums.ts';
import type { ListedSessionShown } from '../schema/listed-sessions.ts';
import type { ShownRecord } from '../schema/records.ts';
import type { Problem, StatusAnswer, ToolUseEvent } from '../schema/results.ts';
import { askedPerson, pendingInputView } from './action-view.ts';
import { explicitStatus } from './status.ts';

const MAX_TOOL_USES = 50;

export interface StatusViewOptions {
  outputLines: number;
  /** Since the last message, or from the oldest that is kept. */
  turn: StatusSpan;
  /** A request to show to its last character. */
  wholeInputId?: string | undefined;
  /** No field repeats another, as in the answers of calls that waited. */
  once: boolean;
}

/** What `claude_get_status` answers. */
export function explicitStatusView(reading: SessionReading, options: StatusViewOptions): StatusAnswer {
  const { record, now, requests } = reading;
  const { totals } = record;
  const { once } = options;
  const all = options.turn === 'all';
  const ended = outcome(record);
  const work = isAtRest(record.state) ? record.work : undefined;
  const output = recentOutput(reading, options.outputLines, all ? 0 : record.lastMessageAt);
  return {
    sessionId: record.id,
    status: explicitStatus(record),
    ...(work?.attention && { attention: work.attention }),
    ...ended,
    ...(work && { work }),
    recentOutput: once ? withoutResult(output, ended.result) : output,
    pendingInputs: requests.map((request) => {
      const { said, ...view } = pendingInputView(request, { now, whole: request.id === options.wholeInputId, once });
      const isOutput = once && said !== undefined && output.includes(said);
      return { ...view, ...(said !== undefined && !isOutput && { said }), ...askedPerson(reading, request) };
    }),
    toolUseEvents: toolUseEvents(
      reading.toolUses(all ? 'all' : 'message'),
      once ? { problems: work?.problems ?? [] } : undefined,
    ),
    ...(totals.costKnown && { costUsd: roundUsd(totals.costUsd) }),
    ...(totals.costUnknown && { costUnknown: true }),
    turnCount: totals.turns,
  };
}

/** Claude's last words are the result. */
function withoutResult(output: readonly string[], result: string | undefined): string[] {
  const lines = result?.trimEnd().split('\n') ?? [];
  const last = output.slice(Math.max(0, output.length - lines.length));
  const isResult = last.length > 0 && last.join('\n') === lines.slice(-last.length).join('\n');
  return isResult ? output.slice(0, output.length - last.length) : [...output];
}

function outcome({ turn, state, cancellation }: ShownRecord): Pick<StatusAnswer, 'result' | 'error'> {
  if (state === 'cancelled' && cancellation) return { error: `The session was cancelled: ${cancellation.reason}.` };
  if (!isAtRest(state) || !turn) return {};
  return turn.isError ? { error: turn.text } : { result: turn.text };
}

/** The newest, and anything still running or waiting. `besides`: what stands beside them and is not repeated. */
function toolUseEvents(
  uses: readonly ToolUse[],
  besides: { readonly problems: readonly Problem[] } | undefined,
): ToolUseEvent[] {
  const told = new Set(besides?.problems.map((problem) => problem.tail));
  return uses
    .filter(({ status }, index) => !isOver(status) || index >= uses.length - MAX_TOOL_USES)
    .map(({ toolName, status, summary, inputChanged, answer, tail, deniedBy, requestId }) => ({
      toolName,
      status:
        status === 'awaiting_permission' && kindOf(toolName) === 'user_question'
          ? ('awaiting_answer' as const)
          : status,
      // The request itself has the input, the report of problems the output.
      ...(summary !== '' && !(besides && requestId !== undefined) && { input: summary }),
      ...(inputChanged && { inputChanged }),
      ...(answer !== undefined && { answer }),
      ...(tail !== undefined && tail !== '' && !told.has(tail) && { error: tail }),
      ...(deniedBy !== undefined && { deniedBy }),
      ...(requestId !== undefined && { inputId: requestId }),
    }));
}

function isOver(status: ToolUse['status']): boolean {
  return status !== 'running' && status !== 'awaiting_permission';
}

const MAX_LINE_LENGTH = 2_000;
/** A client that truncates an answer must not lose the rest of it to old output. */
const MAX_CHARS = 24_000;

/** The last lines of what Claude said and is saying, oldest first, starting at the event `since`. */
function recentOutput(
  reading: Pick<SessionReading, 'log' | 'unfinishedText'>,
  maxLines: number,
  since: number,
): string[] {
  const lines: string[] = [];
  let chars = 0;
  for (const line of linesNewestFirst(reading, since)) {
    const shown = line.length > MAX_LINE_LENGTH ? `${cutAt(line, MAX_LINE_LENGTH)}…` : line;
    chars += shown.length;
    if (lines.length >= maxLines || chars > MAX_CHARS) break;
    lines.push(shown);
  }
  return lines.reverse();
}

function* linesNewestFirst(
  { log, unfinishedText }: Pick<SessionReading, 'log' | 'unfinishedText'>,
  since: number,
): Generator<string> {
  if (unfinishedText.trim() !== '') yield* unfinishedText.trimEnd().split('\n').reverse();
  for (const { id, body } of log.newestFirst()) {
    if (id < since) return;
    const text = assistantText(body);
    if (text !== undefined) yield* text.trimEnd().split('\n').reverse();
  }
}

/**
 * A session on the machine; active means that this server has a process for it. `sensitive` shows where it was and what
 * it was about; the text is always present, because callers rely on it.
 */
export function listedSessionView(session: ListedSession, sensitive: boolean): ListedSessionShown {
  const { sessionId, projectDirectory, displayText, lastActiveAt, active } = session;
  return {
    sessionId,
    ...(sensitive && projectDirectory !== undefined && { projectDirectory }),
    displayText: sensitive ? displayText : '',
    timestamp: new Date(lastActiveAt).toISOString(),
    isActive: active !== undefined,
    ...(active && { activeStatus: explicitStatus({ state: active }) }),
  };
}
