import { createHmac, timingSafeEqual } from 'node:crypto';

/** Proof that the holder was handed this session: the HMAC-SHA256 of its id under the operator's secret. */
export function resumeToken(secret: string, sessionId: string): string {
  return createHmac('sha256', secret).update(sessionId).digest('hex');
}

export function isResumeToken(secret: string, sessionId: string, token: string): boolean {
  const expected = Buffer.from(resumeToken(secret, sessionId));
  const given = Buffer.from(token);
  return given.length === expected.length && timingSafeEqual(given, expected);
}
