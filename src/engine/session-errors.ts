import { DomainError } from '../errors/errors.ts';
import type { PermissionMode } from '../schema/session-options.ts';
import type { Session } from './session.ts';

export function busy(session: Session): DomainError {
  const why = session.state === 'waiting' ? 'waits for an answer to a request' : 'is working';
  return new DomainError(
    'SESSION_BUSY',
    `Session ${session.id} ${why}. Wait until it is at rest, interrupt it, or have the message queued.`,
  );
}

/** Whether it never was, was forgotten or is somebody else's: to whoever asks it is the same. */
export function unknownSession(sessionId: string): DomainError {
  return notFound(
    sessionId,
    'It is not known to this server: it may have been forgotten after its rest, or belong to another server.',
  );
}

export function notFound(sessionId: string, why: string): DomainError {
  return new DomainError('SESSION_NOT_FOUND', `No session ${sessionId}. ${why}`);
}

/** Two processes that write one transcript would lose each other's words. */
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

/** Another hub may have taken it over, and would run it too. */
export function outOfTouch(sessionId: string): DomainError {
  return new DomainError(
    'UNAVAILABLE',
    `This hub has lost touch with the store that it shares: session ${sessionId} may run on another one by now. Try again.`,
  );
}

export function runsElsewhere(sessionId: string): DomainError {
  return new DomainError(
    'UNAVAILABLE',
    `Another hub has taken over session ${sessionId}. Try again; if it was this session, see first whether what you sent has arrived.`,
  );
}

export function cannotSwitch(session: Session, mode: PermissionMode): DomainError {
  return new DomainError(
    'SESSION_BUSY',
    `Session ${session.id} would have to start again for permissionMode "${mode}", and cannot now: it is working, has tasks in the background or keeps no transcript. Reply when it is at rest, or start a new session.`,
  );
}

export function requestNotFound(requestId: string): DomainError {
  return new DomainError(
    'PERMISSION_REQUEST_NOT_FOUND',
    `No open request ${requestId}: it was answered, has expired or never existed. Poll the session for its open requests.`,
  );
}
