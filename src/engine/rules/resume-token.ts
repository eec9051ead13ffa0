import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Settings } from '../../config/load-settings.ts';
import { DomainError } from '../../errors/errors.ts';
import { notFound } from '../session/session-errors.ts';

/** Proof that the holder was given this session: the HMAC-SHA256 of its id under the operator's secret. */
export function resumeToken(secret: string, sessionId: string): string {
  return createHmac('sha256', secret).update(sessionId).digest('hex');
}

function isResumeToken(secret: string, sessionId: string, token: string): boolean {
  const expected = Buffer.from(resumeToken(secret, sessionId));
  const given = Buffer.from(token);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** Whether a caller may resume a session that exists only on disk; if not, what to set. */
export function checkMayResume(settings: Settings, sessionId: string, token: string | undefined): void {
  const { allowDiskResume, resumeSecret } = settings;
  if (!allowDiskResume) {
    throw notFound(
      sessionId,
      'It is not in this server’s memory. The operator can allow resuming from disk with CLAUDE_CODE_MCP_ALLOW_DISK_RESUME=1 and CLAUDE_CODE_MCP_RESUME_SECRET.',
    );
  }
  if (resumeSecret === undefined) {
    throw new DomainError(
      'PERMISSION_DENIED',
      'Resuming from disk requires CLAUDE_CODE_MCP_RESUME_SECRET to be set where the server is started.',
    );
  }
  if (token === undefined) {
    throw new DomainError(
      'PERMISSION_DENIED',
      'Resuming from disk requires the resumeToken returned when the session was started.',
    );
  }
  if (!isResumeToken(resumeSecret, sessionId, token)) {
    throw new DomainError('PERMISSION_DENIED', 'This resumeToken does not belong to this session.');
  }
}
