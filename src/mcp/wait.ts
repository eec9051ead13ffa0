import type { Engine } from '../engine/engine.ts';
import type { Session } from '../engine/session.ts';
import type { ToolContext } from './define-tool.ts';
import { tellProgress } from './progress.ts';

export const MAX_WAIT_MS = 600_000;
export const DEFAULT_WAIT_MS = 45_000;

/** Until a request is open, the session is at rest, the time is up or the client has lost interest. */
export async function waitForSession(session: Session, waitMs: number, context: ToolContext): Promise<void> {
  const { engine, signal, progress } = context;
  if (waitMs <= 0 || hasReason(session) || signal.aborted) return;
  const stopTelling = progress ? tellProgress(engine, session, progress) : undefined;
  try {
    await reasonOrTimeUp(engine, session, Math.min(waitMs, MAX_WAIT_MS), signal);
  } finally {
    stopTelling?.();
  }
}

function hasReason(session: Session): boolean {
  return session.atRest || session.requests.length > 0;
}

function reasonOrTimeUp(engine: Engine, session: Session, waitMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      callOff();
      unsubscribe();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const callOff = engine.clock.after(waitMs, done);
    const unsubscribe = session.changed.subscribe(() => {
      if (hasReason(session)) done();
    });
    signal.addEventListener('abort', done);
  });
}
