import { DomainError } from '../errors/errors.ts';
import type { Session } from './session.ts';

export function busy(session: Session): DomainError {
  const why = session.state === 'waiting' ? 'waits for an answer to a request' : 'is working';
  return new DomainError(
    'SESSION_BUSY',
    `Session ${session.id} ${why}. Wait until it is at rest, interrupt it, or reply with whenBusy:"queue".`,
  );
}

export function requestNotFound(requestId: string): DomainError {
  return new DomainError(
    'PERMISSION_REQUEST_NOT_FOUND',
    `No open request ${requestId}: it was answered, has expired or never existed. Look what the session asks now.`,
  );
}
