import type { EngineClient } from '../engine/client.ts';
import { later, msBetween, type Instant } from '../engine/clock.ts';
import { cutAt } from '../engine/conversation/tool-summary.ts';
import { DomainError } from '../errors/errors.ts';
import type { WaitFor } from '../schema/enums.ts';
import type { ToolContext } from './define-tool.ts';

export const MAX_WAIT_MS = 600_000;
export const DEFAULT_WAIT_MS = 45_000;

/**
 * Until a request that the caller should answer is open, the session is at rest, the time is up or the client has lost
 * interest. Where calls have to carry the forms, this one then ends with those for open requests, and continues with
 * the rest of its wait when repeated. Returns when it is this call's turn to answer: views of a session can be large.
 */
export async function waitForSession(sessionId: string, waitMs: number, context: ToolContext): Promise<void> {
  await waitForSessions([sessionId], waitMs, context);
}

/** The same for several: until one needs an answer, or all are at rest; with `any`, or one comes to rest meanwhile. */
export async function waitForSessions(
  sessionIds: readonly string[],
  waitMs: number,
  context: ToolContext,
  waitFor: WaitFor = 'all',
): Promise<void> {
  await waited(sessionIds, waitMs, waitFor, context);
  await context.turn?.take(context.signal);
}

async function waited(
  sessionIds: readonly string[],
  waitMs: number,
  waitFor: WaitFor,
  context: ToolContext,
): Promise<void> {
  const { engine, signal, forms } = context;
  if (waitMs <= 0 || signal.aborted) return;
  const until = forms?.until ?? later(engine.clock.instant(), Math.min(waitMs, MAX_WAIT_MS));
  let ids = await lookedUp(sessionIds, context);
  const working = forms?.working ?? ids.filter((id) => engine.standing(id, forms !== undefined) !== 'rests');
  const watched = (): Watched => ({ ids, restsAlone: waitFor === 'any' ? working : [] });
  const hasLeft = (): boolean => ids.some((id) => engine.hasLeft(id));
  for (;;) {
    await waitUntil(watched(), until, context);
    if (!signal.aborted && !hasLeft() && forms?.ask(ids, until, working) === true) return;
    // Another call may have asked first: then there is a person to wait for.
    const isOver = !hasLeft() && hasReason(watched(), context);
    if (signal.aborted || isOver || msBetween(engine.clock.instant(), until) <= 0) return;
    ids = await lookedUp(ids, context);
  }
}

interface Watched {
  readonly ids: readonly string[];
  /** Those of which one at rest is reason enough to answer. */
  readonly restsAlone: readonly string[];
}

/** Another hub may have taken one over. Of several, one that is forgotten meanwhile is no longer waited for. */
async function lookedUp(ids: readonly string[], { engine }: ToolContext): Promise<readonly string[]> {
  const known: string[] = [];
  for (const id of ids) {
    try {
      if (engine.hasLeft(id)) await engine.read(id);
      known.push(id);
    } catch (error) {
      if (ids.length === 1 || !(error instanceof DomainError) || error.code !== 'SESSION_NOT_FOUND') throw error;
    }
  }
  return known;
}

async function waitUntil(watched: Watched, until: Instant, context: ToolContext): Promise<void> {
  const { engine, progress, signal } = context;
  const leftMs = (): number => msBetween(engine.clock.instant(), until);
  if (leftMs() <= 0 || hasReason(watched, context)) return;
  const stopReporting = progress ? reportProgress(engine, watched.ids, progress) : undefined;
  try {
    // A request that a rule refuses is open only for a moment, and not worth returning for.
    do await reasonOrTimeUp(watched, leftMs(), context);
    while (!signal.aborted && leftMs() > 0 && !hasReason(watched, context));
  } finally {
    stopReporting?.();
  }
}

function hasReason({ ids, restsAlone }: Watched, { engine, forms }: ToolContext): boolean {
  const standings = new Map(ids.map((id) => [id, engine.standing(id, forms !== undefined)]));
  const all = [...standings.values()];
  if (all.includes('asks') || !all.includes('works')) return true;
  // One that has left is looked up again before anyone is told that it is at rest.
  return ids.some((id) => standings.get(id) === 'rests' && (restsAlone.includes(id) || engine.hasLeft(id)));
}

function reasonOrTimeUp(watched: Watched, waitMs: number, context: ToolContext): Promise<void> {
  const { engine, signal } = context;
  return new Promise((resolve) => {
    const done = (): void => {
      cancelTimer();
      for (const unsubscribe of subscriptions) unsubscribe();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const cancelTimer = engine.clock.after(waitMs, done);
    const subscriptions = watched.ids.map((id) =>
      engine.watch(id, () => {
        if (hasReason(watched, context)) done();
      }),
    );
    signal.addEventListener('abort', done);
  });
}

/** A waiting client hears something at least this often; Claude Code gives up on a call that stays silent for long. */
const MAX_INTERVAL_MS = 4_000;
const MIN_INTERVAL_MS = 400;
/** As long as the activity of one session can be. */
const MAX_LINE = 200;

/** Told instead of what cannot be stored, so that a waiting client still hears something. */
const STORE_AWAY = 'waiting for the store, which cannot be reached';

/**
 * Reports what the sessions are doing until told to stop: regularly, and on every change unless the last report was too
 * recent.
 */
export function reportProgress(
  engine: Pick<EngineClient, 'clock' | 'stored' | 'watch' | 'activity'>,
  sessionIds: readonly string[],
  tell: (line: string) => void,
): () => void {
  const { clock } = engine;
  const line = (): string =>
    sessionIds.map((id) => cutAt(engine.activity(id), Math.floor(MAX_LINE / sessionIds.length))).join(' | ');
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
    lastLine = line();
    tellStored(lastLine);
    tellIn(MAX_INTERVAL_MS);
  };
  const onChange = (): void => {
    if (line() === lastLine) return;
    const earlyByMs = msBetween(clock.instant(), soonest);
    if (earlyByMs <= 0) say();
    else if (msBetween(soonest, due) > 0) tellIn(earlyByMs);
  };
  say();
  const subscriptions = sessionIds.map((id) => engine.watch(id, onChange));
  return () => {
    stopped.abort();
    cancelTimer();
    for (const unsubscribe of subscriptions) unsubscribe();
  };
}
