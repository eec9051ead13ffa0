import type { ToolUse } from '../engine/conversation/activity.ts';
import type { SessionReading } from '../engine/conversation/reading.ts';
import { isAtRest } from '../engine/conversation/state.ts';
import { roundUsd } from '../engine/conversation/totals.ts';
import type { StatusSpan } from '../schema/enums.ts';
import type { SessionRecord } from '../schema/records.ts';
import type { StatusAnswer, ToolUseEvent } from '../schema/results.ts';
import { askedPerson, pendingInputView } from './action-view.ts';
import { recentOutput } from './recent-output.ts';
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
  const { totals, work } = record;
  const all = options.turn === 'all';
  return {
    sessionId: record.id,
    status: explicitStatus(record),
    ...outcome(record),
    ...(isAtRest(record.state) && work && { work }),
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
