import type { Session } from '../../engine/session.ts';
import type { State } from '../../engine/state.ts';

const COMPACT = {
  starting: 'running',
  running: 'running',
  waiting: 'waiting_permission',
  interrupting: 'running',
  idle: 'idle',
  interrupted: 'idle',
  error: 'error',
  cancelled: 'cancelled',
} as const satisfies Record<State, string>;

const EXPLICIT = {
  starting: 'running',
  running: 'running',
  waiting: 'waiting_for_input',
  interrupting: 'running',
  idle: 'completed',
  interrupted: 'interrupted',
  error: 'error',
  cancelled: 'interrupted',
} as const satisfies Record<State, string>;

export type CompactStatus = (typeof COMPACT)[State];
export type ExplicitStatus = (typeof EXPLICIT)[State];

export const EXPLICIT_STATUSES = [
  'running',
  'waiting_for_input',
  'completed',
  'interrupted',
  'error',
] as const satisfies ExplicitStatus[];

export function compactStatus(session: Session): CompactStatus {
  return COMPACT[session.state];
}

export function explicitStatus(session: Session): ExplicitStatus {
  return EXPLICIT[session.state];
}
