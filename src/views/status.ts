import type { State } from '../engine/conversation/state.ts';
import type { ShownRecord } from '../schema/records.ts';
import type { CheckAnswer, StatusAnswer } from '../schema/results.ts';

export const COMPACT_STATUS = {
  starting: 'running',
  running: 'running',
  waiting: 'waiting_permission',
  interrupting: 'running',
  idle: 'idle',
  interrupted: 'idle',
  error: 'error',
  cancelled: 'cancelled',
} as const satisfies Record<State, CheckAnswer['status']>;

const EXPLICIT = {
  starting: 'running',
  running: 'running',
  waiting: 'waiting_for_input',
  interrupting: 'running',
  idle: 'completed',
  interrupted: 'interrupted',
  error: 'error',
  cancelled: 'interrupted',
} as const satisfies Record<State, StatusAnswer['status']>;

export function compactStatus({ state }: Pick<ShownRecord, 'state'>): CheckAnswer['status'] {
  return COMPACT_STATUS[state];
}

export function explicitStatus({ state }: Pick<ShownRecord, 'state'>): StatusAnswer['status'] {
  return EXPLICIT[state];
}
