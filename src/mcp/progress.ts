import { later, msBetween, type Instant } from '../engine/clock.ts';
import type { EngineClient } from '../engine/client.ts';

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
