import type { Engine } from '../engine/engine.ts';
import type { Session } from '../engine/session.ts';
import { activityLine } from './views/activity-line.ts';

/** A waiting client is told at least this often; Claude Code gives up a call that is silent for long. */
const TELL_EVERY_MS = 4_000;
const NOT_MORE_OFTEN_THAN_MS = 400;

/** Tells what a session does until told to stop. */
export function tellProgress(engine: Engine, session: Session, tell: (line: string) => void): () => void {
  let last = 0;
  let lastLine = '';
  let callOff: () => void = () => undefined;
  const say = (line: string): void => {
    last = engine.clock.now();
    lastLine = line;
    tell(line);
  };
  const tick = (): void => {
    say(activityLine(session));
    callOff = engine.clock.after(TELL_EVERY_MS, tick);
  };
  const onChange = (): void => {
    const line = activityLine(session);
    if (line !== lastLine && engine.clock.now() - last >= NOT_MORE_OFTEN_THAN_MS) say(line);
  };
  tick();
  const unsubscribe = session.changed.subscribe(onChange);
  return () => {
    callOff();
    unsubscribe();
  };
}
