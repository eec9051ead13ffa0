import { DomainError } from '../../errors/errors.ts';
import type { Settings } from '../../config/load-settings.ts';
import type { PermissionMode } from '../../schema/session-options.ts';
import type { Session } from './session.ts';

/** `more`: what else the caller could do. */
export function busy(session: Session, more = ''): DomainError {
  const what =
    session.state === 'waiting'
      ? 'is waiting for an answer to a request. Answer that first'
      : 'is working. Wait until it is idle';
  return new DomainError('SESSION_BUSY', `Session ${session.id} ${what}, or interrupt it${more}.`);
}

const WAY_ON: Readonly<Record<Settings['toolset'], string>> = {
  compact:
    ' List the sessions (claude_code_session with action "list"); one that is only on disk continues with claude_code_reply and its resumeToken.',
  explicit:
    ' List the sessions with claude_list_sessions; one that is only on disk continues with claude_send_message.',
};

/** Whether it never existed, was dropped or belongs to someone else: the caller cannot tell. */
export function unknownSession(sessionId: string, toolset?: Settings['toolset']): DomainError {
  const why = 'This server does not know it: it may have been dropped after being idle, or belong to another server.';
  return notFound(sessionId, `${why}${toolset === undefined ? '' : WAY_ON[toolset]}`);
}

export function notFound(sessionId: string, why: string): DomainError {
  return new DomainError('SESSION_NOT_FOUND', `No session ${sessionId}. ${why}`);
}

/** Two processes that write one transcript would overwrite each other. */
export function heldElsewhere(
  sessionId: string,
  pid: number,
  by: 'Claude Code' | 'server' = 'Claude Code',
): DomainError {
  return new DomainError(
    'SESSION_BUSY',
    `Another ${by} (pid ${String(pid)}) has session ${sessionId} open. Close it there, or fork the session.`,
  );
}

/** Another hub may have taken it over and be running it too. */
export function outOfContact(sessionId: string): DomainError {
  return new DomainError(
    'UNAVAILABLE',
    `This hub has lost contact with the shared store: session ${sessionId} may be running on another hub by now. Try again.`,
  );
}

export function runsElsewhere(sessionId: string): DomainError {
  return new DomainError(
    'UNAVAILABLE',
    `Another hub has taken over session ${sessionId}. Try again, but first check whether your message has arrived.`,
  );
}

/** The server ended while it was starting Claude Code. */
export function stoppedBeforeStart(sessionId: string): DomainError {
  return new DomainError(
    'UNAVAILABLE',
    `The hub stopped before Claude Code had started for session ${sessionId}. Try again.`,
  );
}

export function cannotSwitch(session: Session, mode: PermissionMode): DomainError {
  return new DomainError(
    'SESSION_BUSY',
    `Session ${session.id} would have to be restarted for permissionMode "${mode}", which is not possible now: it is working, has background tasks or has no transcript. Reply when it is idle, or start a new session.`,
  );
}

export function requestNotFound(requestId: string): DomainError {
  return new DomainError(
    'PERMISSION_REQUEST_NOT_FOUND',
    `No open request ${requestId}: it was answered, has expired or never existed. Poll the session for its open requests.`,
  );
}
