import type { Session } from './session.ts';

/** Whether the session needs attention: it is at rest, or it asks something. */
export function needsAttention(session: Session): boolean {
  return session.atRest || session.requests.length > 0;
}

/** Resolves once the session is at rest or asks something, or the signal is aborted. */
export function untilAttention(session: Session, signal?: AbortSignal): Promise<void> {
  if (needsAttention(session) || signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      unsubscribe();
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const unsubscribe = session.notices.subscribe(() => {
      if (needsAttention(session)) done();
    });
    signal?.addEventListener('abort', done);
  });
}
