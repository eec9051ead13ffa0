/** Where a session stands. `src/engine/state.ts` has what leads from one state to another. */
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
