import type { Session } from '../../../engine/session.ts';
import type { CheckAnswer } from '../../../schema/results.ts';
import type { ToolContext } from '../../define-tool.ts';
import { checkView } from '../../views/check-view.ts';
import { effectiveLine } from '../../views/effective.ts';
import { startedWorkspace } from '../../views/workspace-view.ts';
import { waitForSession } from '../../wait.ts';
import { takeWarnings } from '../warnings.ts';
import { viewOptions } from './view-options.ts';

/** What start and reply return: immediately, or after a wait with what a check would return. */
export async function startedView(
  session: Session,
  waitMs: number | undefined,
  context: ToolContext,
): Promise<CheckAnswer> {
  const token = context.engine.resumeTokenFor(session.id);
  const started = {
    effective: effectiveLine(session),
    ...startedWorkspace(session),
    ...(token !== undefined && { resumeToken: token }),
    ...takeWarnings(session),
  };
  if (waitMs === undefined || waitMs === 0) {
    return {
      sessionId: session.id,
      status: 'running',
      pollInterval: 3000,
      nextCursor: session.log.nextId,
      ...started,
    };
  }
  const waited = await waitForSession(session, waitMs, context);
  return { ...checkView(waited, viewOptions('wait', {})), ...started };
}
