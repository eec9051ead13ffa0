import type { Driven } from '../../../engine/session/elsewhere.ts';
import type { CheckAnswer } from '../../../schema/results.ts';
import type { ToolContext } from '../../define-tool.ts';
import { checkView } from '../../../views/check-view.ts';
import { effectiveLine } from '../../../views/effective.ts';
import { startedWorkspace } from '../../../views/workspace-view.ts';
import { waitForSession } from '../../wait.ts';
import { shownWarnings } from '../driven.ts';
import { viewOptions } from './view-options.ts';

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
