import type { ToolUse } from '../../engine/activity.ts';
import type { OpenRequest } from '../../engine/requests.ts';
import type { Session } from '../../engine/session.ts';
import { shownRequest } from '../../engine/shown-request.ts';
import { roundUsd } from '../../engine/totals.ts';
import { askedPerson, requestSummary } from './action-view.ts';
import { recentOutput } from './recent-output.ts';
import { explicitStatus } from './status.ts';

const MOST_TOOL_USES = 50;

/** What `claude_get_status` answers. */
export function explicitStatusView(
  session: Session,
  outputLines: number,
  wholeInputId?: string,
): Record<string, unknown> {
  const { session: sums } = session.totals;
  return {
    sessionId: session.id,
    status: explicitStatus(session),
    ...outcome(session),
    recentOutput: recentOutput(session, outputLines),
    pendingInputs: session.requests.map((request) => ({
      ...pendingInput(request, request.id === wholeInputId),
      ...askedPerson(session, request),
    })),
    toolUseEvents: toolUseEvents(session.activity.toolUses),
    costUsd: roundUsd(sums.costUsd),
    turnCount: sums.turns,
  };
}

function outcome({ atRest, result, state, cancellation }: Session): Record<string, unknown> {
  if (state === 'cancelled' && cancellation)
    return { error: `The session was stopped for good: ${cancellation.reason}.` };
  if (!atRest || !result) return {};
  return result.isError ? { error: result.text } : { result: result.text };
}

/** The plan is shown wherever Claude Code put it: somebody has to judge it. */
function pendingInput(request: OpenRequest, whole: boolean): Record<string, unknown> {
  const { id, kind, ask, expiresAt } = request;
  const { input, plan, fullChars } = shownRequest(request, whole);
  return {
    inputId: id,
    type: kind,
    toolName: ask.toolName,
    toolInput: input,
    ...(fullChars !== undefined && { inputTruncated: true, inputChars: fullChars }),
    description: plan ?? requestSummary(request),
    ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
  };
}

/** The newest, and whatever still runs. */
function toolUseEvents(uses: readonly ToolUse[]): Pick<ToolUse, 'toolName' | 'status'>[] {
  return uses
    .filter(({ status }, index) => status === 'running' || index >= uses.length - MOST_TOOL_USES)
    .map(({ toolName, status }) => ({ toolName, status }));
}
