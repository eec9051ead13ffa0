import type { ToolUse } from '../../engine/activity.ts';
import type { Session } from '../../engine/session.ts';
import { roundUsd } from '../../engine/totals.ts';
import type { StatusSpan } from '../../schema/enums.ts';
import type { StatusAnswer, ToolUseEvent } from '../../schema/results.ts';
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
export function explicitStatusView(session: Session, options: StatusViewOptions): StatusAnswer {
  const { activity, atRest, now, requests, totals, work } = session;
  const all = options.turn === 'all';
  return {
    sessionId: session.id,
    status: explicitStatus(session),
    ...outcome(session),
    ...(atRest && work && { work }),
    recentOutput: recentOutput(session, options.outputLines, all ? 0 : session.lastMessageAt),
    pendingInputs: requests.map((request) => ({
      ...pendingInputView(request, { now, whole: request.id === options.wholeInputId }),
      ...askedPerson(session, request),
    })),
    toolUseEvents: toolUseEvents(all ? activity.toolUses : activity.latestToolUses),
    ...(totals.costKnown && { costUsd: roundUsd(totals.session.costUsd) }),
    ...(totals.session.costUnknown && { costUnknown: true }),
    turnCount: totals.session.turns,
  };
}

function outcome({ atRest, result, state, cancellation }: Session): Pick<StatusAnswer, 'result' | 'error'> {
  if (state === 'cancelled' && cancellation) return { error: `The session was cancelled: ${cancellation.reason}.` };
  if (!atRest || !result) return {};
  return result.isError ? { error: result.text } : { result: result.text };
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
