import type { Session } from '../../../engine/session.ts';
import type { ToolContext } from '../../define-tool.ts';
import { checkView } from '../../views/check-view.ts';
import { waitForSession } from '../../wait.ts';
import { viewOptions } from './view-options.ts';

/** What start and reply answer: at once, or after a wait with what a check would say. */
export async function startedView(session: Session, waitMs: number | undefined, context: ToolContext): Promise<object> {
  const token = context.engine.resumeTokenFor(session.id);
  const resumeToken = token !== undefined && { resumeToken: token };
  const told = context.engine.warningsOf(session);
  const warnings = told.length > 0 && { warnings: told };
  if (waitMs === undefined || waitMs === 0) {
    return { sessionId: session.id, status: 'running', pollInterval: 3000, ...resumeToken, ...warnings };
  }
  await waitForSession(session, waitMs, context);
  return { ...checkView(session, viewOptions('wait', {})), ...resumeToken, ...warnings };
}
