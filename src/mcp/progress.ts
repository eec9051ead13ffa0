import type { Engine } from '../engine/engine.ts';
import type { Session } from '../engine/session.ts';
import { activityLine } from './views/activity-line.ts';

/** A waiting client is told at least this often; Claude Code gives up a call that is silent for long. */
const TELL_EVERY_MS = 4_000;
const NOT_MORE_OFTEN_THAN_MS = 400;

/** Tells what a session does until told to stop: regularly, and whatever changes as soon as the last word is not too fresh. */
export function tellProgress(engine: Engine, session: Session, tell: (line: string) => void): () => void {
  let last = 0;
  let lastLine = '';
  let callOff: () => void = () => undefined;
  let dueAt = 0;
  const tellIn = (ms: number): void => {
    callOff();
    dueAt = engine.clock.now() + ms;
    callOff = engine.clock.after(ms, say);
  };
  const say = (): void => {
    last = engine.clock.now();
    lastLine = activityLine(session);
    tell(lastLine);
    tellIn(TELL_EVERY_MS);
  };
  const onChange = (): void => {
    if (activityLine(session) === lastLine) return;
    const soonest = last + NOT_MORE_OFTEN_THAN_MS;
    if (engine.clock.now() >= soonest) say();
    else if (dueAt > soonest) tellIn(soonest - engine.clock.now());
  };
  say();
  const unsubscribe = session.changed.subscribe(onChange);
  return () => {
    callOff();
    unsubscribe();
  };
}
