import type { ApiSession } from '../../../src/schema/api.ts';

const WORDS: Record<ApiSession['state'], string> = {
  starting: 'Starting',
  running: 'Working',
  waiting: 'Waiting',
  interrupting: 'Stopping',
  idle: 'Idle',
  interrupted: 'Interrupted',
  error: 'Error',
  cancelled: 'Cancelled',
};

/** Each state has its own shape; the colour only repeats it. */
const SHAPES: Record<ApiSession['state'], string> = {
  starting: 'M8 2.5a5.5 5.5 0 1 1-5.5 5.5',
  running: 'M4.5 2.8v10.4L13 8z',
  waiting: 'M8 1.5 14.5 8 8 14.5 1.5 8z',
  interrupting: 'M8 2.5a5.5 5.5 0 1 1-5.5 5.5',
  idle: 'M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3z',
  interrupted: 'M4.5 3v10M11.5 3v10',
  error: 'M8 2 14.5 13.5h-13zM8 6.5v3M8 11.5v.5',
  cancelled: 'm3.5 3.5 9 9m0-9-9 9',
};

export function Status({ state }: { state: ApiSession['state'] }) {
  return (
    <span class={`state state-${state}`}>
      <svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true" focusable="false">
        <path d={SHAPES[state]} />
      </svg>
      {WORDS[state]}
    </span>
  );
}
