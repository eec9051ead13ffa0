import type { EngineClient } from '../engine/client.ts';
import { later, msBetween, type Instant } from '../engine/clock.ts';
import type { ToolContext } from './define-tool.ts';

export const MAX_WAIT_MS = 600_000;
export const DEFAULT_WAIT_MS = 45_000;

/**
 * Until a request that the caller should answer is open, the session is at rest, the time is up or the client has lost
 * interest. Where calls have to carry the forms, this one then ends with those for open requests, and continues with
 * the rest of its wait when repeated. Returns when it is this call's turn to answer: views of a session can be large.
 */
export async function waitForSession(sessionId: string, waitMs: number, context: ToolContext): Promise<void> {
  await waited(sessionId, waitMs, context);
  await context.turn?.take(context.signal);
}

async function waited(sessionId: string, waitMs: number, context: ToolContext): Promise<void> {
  const { engine, signal, forms } = context;
  if (waitMs <= 0 || signal.aborted) return;
  const until = forms?.until ?? later(engine.clock.instant(), Math.min(waitMs, MAX_WAIT_MS));
  do {
    // Another hub may have taken it over.
    if (engine.hasLeft(sessionId)) await engine.read(sessionId);
    await waitUntil(sessionId, until, context);
    if (engine.hasLeft(sessionId)) continue;
    if (signal.aborted || forms?.ask(sessionId, until) === true) return;
    // Another call may have asked first: then there is a person to wait for.
  } while (!signal.aborted && msBetween(engine.clock.instant(), until) > 0 && !isOver(sessionId, context));
}

/** A session that has left is looked up again. */
function isOver(sessionId: string, context: ToolContext): boolean {
  return !context.engine.hasLeft(sessionId) && hasReason(sessionId, context);
}

async function waitUntil(sessionId: string, until: Instant, context: ToolContext): Promise<void> {
  const { engine, progress, signal } = context;
  const leftMs = (): number => msBetween(engine.clock.instant(), until);
  if (leftMs() <= 0 || hasReason(sessionId, context)) return;
  const stopReporting = progress ? reportProgress(engine, sessionId, progress) : undefined;
  try {
    // A request that a rule refuses is open only for a moment, and not worth returning for.
    do await reasonOrTimeUp(sessionId, leftMs(), context);
    while (!signal.aborted && leftMs() > 0 && !hasReason(sessionId, context));
  } finally {
    stopReporting?.();
  }
}

function hasReason(sessionId: string, { engine, forms }: ToolContext): boolean {
  return engine.hasReason(sessionId, forms !== undefined);
}

function reasonOrTimeUp(sessionId: string, waitMs: number, context: ToolContext): Promise<void> {
  const { engine, signal } = context;
  return new Promise((resolve) => {
    const done = (): void => {
      cancelTimer();
      unsubscribe();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const cancelTimer = engine.clock.after(waitMs, done);
    const unsubscribe = engine.watch(sessionId, () => {
      if (hasReason(sessionId, context)) done();
    });
    signal.addEventListener('abort', done);
  });
}

/** A waiting client hears something at least this often; Claude Code gives up on a call that stays silent for long. */
const MAX_INTERVAL_MS = 4_000;
const MIN_INTERVAL_MS = 400;

/** Told instead of what cannot be stored, so that a waiting client still hears something. */
const STORE_AWAY = 'waiting for the store, which cannot be reached';

/**
 * Reports what a session is doing until told to stop: regularly, and on every change unless the last report was too
 * recent.
 */
export function reportProgress(
  engine: Pick<EngineClient, 'clock' | 'stored' | 'watch' | 'activity'>,
  sessionId: string,
  tell: (line: string) => void,
): () => void {
  const { clock } = engine;
  let lastLine = '';
  let soonest: Instant;
  let due: Instant;
  let cancelTimer: () => void = () => undefined;
  const stopped = new AbortController();
  const tellStored = (line: string): void => {
    const stored = engine.stored();
    if (!stored) return tell(line);
    const unlessStopped = (told: string) => (): void => {
      if (!stopped.signal.aborted) tell(told);
    };
    stored.then(unlessStopped(line), unlessStopped(STORE_AWAY));
  };
  const tellIn = (ms: number): void => {
    cancelTimer();
    due = later(clock.instant(), ms);
    cancelTimer = clock.after(ms, say);
  };
  const say = (): void => {
    soonest = later(clock.instant(), MIN_INTERVAL_MS);
    lastLine = engine.activity(sessionId);
    tellStored(lastLine);
    tellIn(MAX_INTERVAL_MS);
  };
  const onChange = (): void => {
    if (engine.activity(sessionId) === lastLine) return;
    const earlyByMs = msBetween(clock.instant(), soonest);
    if (earlyByMs <= 0) say();
    else if (msBetween(soonest, due) > 0) tellIn(earlyByMs);
  };
  say();
  const unsubscribe = engine.watch(sessionId, onChange);
  return () => {
    stopped.abort();
    cancelTimer();
    unsubscribe();
  };
}
