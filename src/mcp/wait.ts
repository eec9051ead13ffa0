import { later, msBetween, type Instant } from '../engine/clock.ts';
import type { Session } from '../engine/session.ts';
import type { ToolContext } from './define-tool.ts';
import { reportProgress } from './progress.ts';

export const MAX_WAIT_MS = 600_000;
export const DEFAULT_WAIT_MS = 45_000;

/**
 * Until a request that the caller should answer is open, the session is at rest, the time is up or the client has lost
 * interest. Where calls have to carry the forms, this one then ends with those for open requests, and continues with
 * the rest of its wait when repeated. Returns the session as it runs now, when it is this call's turn to answer: views of
 * it can be large.
 */
export async function waitForSession(asked: Session, waitMs: number, context: ToolContext): Promise<Session> {
  const session = await waited(asked, waitMs, context);
  await context.turn?.take(context.signal);
  return session;
}

async function waited(asked: Session, waitMs: number, context: ToolContext): Promise<Session> {
  const { engine, signal, forms } = context;
  let session = asked;
  if (waitMs <= 0 || signal.aborted) return session;
  const until = forms?.until ?? later(engine.clock.instant(), Math.min(waitMs, MAX_WAIT_MS));
  do {
    await waitUntil(session, until, context);
    // Another hub may have taken it over.
    if (session.hasLeft) session = await engine.session(session.id);
    else if (signal.aborted || forms?.ask(session, until) === true) return session;
    // Another call may have asked first: then there is a person to wait for.
  } while (!signal.aborted && msBetween(engine.clock.instant(), until) > 0 && !hasReason(session, context));
  return session;
}

async function waitUntil(session: Session, until: Instant, context: ToolContext): Promise<void> {
  const { engine, progress, signal } = context;
  const leftMs = (): number => msBetween(engine.clock.instant(), until);
  if (leftMs() <= 0 || hasReason(session, context)) return;
  const stopReporting = progress ? reportProgress(engine, session, progress) : undefined;
  try {
    // A request that a rule refuses is open only for a moment, and not worth returning for.
    do await reasonOrTimeUp(session, leftMs(), context);
    while (!signal.aborted && leftMs() > 0 && !hasReason(session, context));
  } finally {
    stopReporting?.();
  }
}

function hasReason(session: Session, { engine, forms }: ToolContext): boolean {
  if (session.atRest || session.hasLeft) return true;
  return session.requests.some(
    (request) => forms?.canAsk(session, request) === true || !engine.holdsWait(session, request),
  );
}

function reasonOrTimeUp(session: Session, waitMs: number, context: ToolContext): Promise<void> {
  const { engine, signal } = context;
  return new Promise((resolve) => {
    const done = (): void => {
      cancelTimer();
      unsubscribe();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const cancelTimer = engine.clock.after(waitMs, done);
    const unsubscribe = session.notices.subscribe(() => {
      if (hasReason(session, context)) done();
    });
    signal.addEventListener('abort', done);
  });
}
