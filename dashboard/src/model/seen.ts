import { signal } from '@preact/signals';
import type { ApiSession } from '../../../src/schema/api.ts';
import { STATES_AT_REST } from '../../../src/schema/enums.ts';

const STORED_AS = 'claude-code-hub.seen';
const MAX_KEPT = 500;

/** When each session was last looked at in this browser, by the hub's own times. */
const seen = signal<ReadonlyMap<string, string>>(stored());

// What another tab has shown is no news here.
addEventListener('storage', ({ key }) => {
  if (key === STORED_AS) seen.value = stored();
});

/** It has come to rest since it was last looked at. One that never was looked at here has nothing new to tell. */
export function isUnread({ sessionId, state, lastActiveAt }: ApiSession): boolean {
  const at = seen.value.get(sessionId);
  return at !== undefined && at < lastActiveAt && (STATES_AT_REST as readonly string[]).includes(state);
}

export function markSeen({ sessionId, lastActiveAt }: ApiSession): void {
  if ((seen.peek().get(sessionId) ?? '') >= lastActiveAt) return;
  const others = [...seen.peek()].filter(([id]) => id !== sessionId);
  const kept = [...others, [sessionId, lastActiveAt] as const].slice(-MAX_KEPT);
  seen.value = new Map(kept);
  try {
    localStorage.setItem(STORED_AS, JSON.stringify(kept));
  } catch {
    return;
  }
}

function stored(): Map<string, string> {
  try {
    return new Map(JSON.parse(localStorage.getItem(STORED_AS) ?? '[]') as [string, string][]);
  } catch {
    return new Map();
  }
}
