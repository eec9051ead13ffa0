import type { ToolUse } from '../../engine/activity.ts';
import type { OpenRequest } from '../../engine/requests.ts';
import type { Session } from '../../engine/session.ts';
import { roundUsd } from '../../engine/totals.ts';
import { LONGEST_INPUT_TEXT, requestSummary } from './action-view.ts';
import { recentOutput } from './recent-output.ts';
import { shortenTexts } from './shorten.ts';
import { explicitStatus } from './status.ts';

const MOST_TOOL_USES = 50;

/** What `claude_get_status` answers. */
export function explicitStatusView(session: Session, outputLines: number): Record<string, unknown> {
  const { session: sums } = session.totals;
  return {
    sessionId: session.id,
    status: explicitStatus(session),
    ...outcome(session),
    recentOutput: recentOutput(session.log, outputLines),
    pendingInputs: session.requests.map(pendingInput),
    toolUseEvents: toolUseEvents(session.activity.toolUses),
    costUsd: roundUsd(sums.costUsd),
    turnCount: sums.turns,
  };
}

function outcome({ atRest, result, cancellation }: Session): Record<string, unknown> {
  if (cancellation) return { error: `The session was stopped for good: ${cancellation.reason}.` };
  if (!atRest || !result) return {};
  return result.isError ? { error: result.text } : { result: result.text };
}

/** The plan is shown whole, wherever Claude Code put it: somebody has to judge it. */
function pendingInput(request: OpenRequest): Record<string, unknown> {
  const { id, kind, ask, plan, expiresAt } = request;
  return {
    inputId: id,
    type: kind,
    toolName: ask.toolName,
    toolInput: shortenTexts(ask.input, LONGEST_INPUT_TEXT).value,
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
