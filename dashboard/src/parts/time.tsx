import { now } from '../model/clock.ts';
import { exactTime, relativeTime } from '../text/words.ts';

export function Time({ at }: { at: string | number }) {
  const moment = typeof at === 'number' ? at : Date.parse(at);
  return (
    <time dateTime={new Date(moment).toISOString()} title={exactTime(moment)}>
      {relativeTime(moment, Math.max(now.value, moment))}
    </time>
  );
}

/** One that lies ahead, or may. */
export function Deadline({ at }: { at: string }) {
  const moment = Date.parse(at);
  return (
    <time dateTime={at} title={exactTime(moment)}>
      {relativeTime(moment, now.value)}
    </time>
  );
}
