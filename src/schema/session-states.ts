/** The states of a session. `src/engine/state.ts` has the transitions. */
export const SESSION_STATES = [
  'starting',
  'running',
  'waiting',
  'interrupting',
  'idle',
  'interrupted',
  'error',
  'cancelled',
] as const;
export type SessionState = (typeof SESSION_STATES)[number];
