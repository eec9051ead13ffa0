import type { Session } from '../../../engine/session.ts';
import type { ToolContext } from '../../define-tool.ts';
import { checkView } from '../../views/check-view.ts';
import { waitForSession } from '../../wait.ts';
import { startWarnings } from '../start-warnings.ts';
import { viewOptions } from './view-options.ts';

/** What start and reply answer: at once, or after a wait with what a check would say. */
export async function startedView(session: Session, waitMs: number | undefined, context: ToolContext): Promise<object> {
  const token = context.engine.resumeTokenFor(session.id);
  const started = { ...(token !== undefined && { resumeToken: token }), ...startWarnings(session) };
  if (waitMs === undefined || waitMs === 0) {
    return { sessionId: session.id, status: 'running', pollInterval: 3000, ...started };
  }
  await waitForSession(session, waitMs, context);
  return { ...checkView(session, viewOptions('wait', {})), ...started };
}
