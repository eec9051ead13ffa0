import type { ListedSession } from '../../engine/session-listing.ts';
import { explicitStatus } from './status.ts';

/** A session of the machine; active is one that this server has and that takes messages. */
export function listedSessionView(session: ListedSession): Record<string, unknown> {
  const { sessionId, projectDirectory, displayText, lastActiveAt, live } = session;
  const active = live && live.state !== 'cancelled' ? live : undefined;
  return {
    sessionId,
    ...(projectDirectory !== undefined && { projectDirectory }),
    displayText,
    timestamp: new Date(lastActiveAt).toISOString(),
    isActive: active !== undefined,
    ...(active && { activeStatus: explicitStatus(active) }),
  };
}
