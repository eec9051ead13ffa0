import type { ListedSession } from '../engine/session/session-listing.ts';
import type { ListedSessionShown } from '../schema/listed-sessions.ts';
import { explicitStatus } from './status.ts';

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
