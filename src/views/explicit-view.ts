import type { ToolUse } from '../engine/conversation/activity.ts';
import type { SessionReading } from '../engine/conversation/reading.ts';
import { assistantText } from '../engine/conversation/speech.ts';
import { isAtRest } from '../engine/conversation/state.ts';
import { cutAt } from '../engine/conversation/tool-summary.ts';
import { roundUsd } from '../engine/conversation/totals.ts';
import type { ListedSession } from '../engine/session/session-listing.ts';
import type { StatusSpan } from '../schema/enums.ts';
import type { ListedSessionShown } from '../schema/listed-sessions.ts';
import type { SessionRecord } from '../schema/records.ts';
import type { StatusAnswer, ToolUseEvent } from '../schema/results.ts';
import { askedPerson, pendingInputView } from './action-view.ts';
import { explicitStatus } from './status.ts';

const MAX_TOOL_USES = 50;

export interface StatusViewOptions {
  outputLines: number;
  /** Since the last message, or from the oldest that is kept. */
  turn: StatusSpan;
  /** A request to show to its last character. */
  wholeInputId?: string | undefined;
}

/** What `claude_get_status` answers. */
export function explicitStatusView(reading: SessionReading, options: StatusViewOptions): StatusAnswer {
  const { record, now, requests } = reading;
  const { totals } = record;
  const work = isAtRest(record.state) ? record.work : undefined;
  const all = options.turn === 'all';
  return {
    sessionId: record.id,
    status: explicitStatus(record),
    ...(work?.attention && { attention: work.attention }),
    ...outcome(record),
    ...(work && { work }),
    recentOutput: recentOutput(reading, options.outputLines, all ? 0 : record.lastMessageAt),
    pendingInputs: requests.map((request) => ({
      ...pendingInputView(request, { now, whole: request.id === options.wholeInputId }),
      ...askedPerson(reading, request),
    })),
    toolUseEvents: toolUseEvents(reading.toolUses(all ? 'all' : 'message')),
    ...(totals.costKnown && { costUsd: roundUsd(totals.costUsd) }),
    ...(totals.costUnknown && { costUnknown: true }),
    turnCount: totals.turns,
  };
}

function outcome({ turn, state, cancellation }: SessionRecord): Pick<StatusAnswer, 'result' | 'error'> {
  if (state === 'cancelled' && cancellation) return { error: `The session was cancelled: ${cancellation.reason}.` };
  if (!isAtRest(state) || !turn) return {};
  return turn.isError ? { error: turn.text } : { result: turn.text };
}

/** The newest, and anything still running or waiting. */
function toolUseEvents(uses: readonly ToolUse[]): ToolUseEvent[] {
  return uses
    .filter(({ status }, index) => !isOver(status) || index >= uses.length - MAX_TOOL_USES)
    .map(({ toolName, status, summary, inputChanged, tail, deniedBy, requestId }) => ({
      toolName,
      status,
      ...(summary !== '' && { input: summary }),
      ...(inputChanged && { inputChanged }),
      ...(tail !== undefined && tail !== '' && { error: tail }),
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
