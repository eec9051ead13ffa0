/** Default rows for stores; each test overrides the fields it needs. */

import type { RuleContent } from '../../src/schema/standing-rules.ts';
import type {
  Change,
  HubRef,
  StoredCommand,
  StoredEvent,
  StoredGrant,
  StoredRequest,
  StoredSession,
  StoredSubscription,
  StoredToken,
} from '../../src/schema/store.ts';

export const T0 = 1_800_000_000_000;

export function session(id: string, runsOn: HubRef, more: Partial<StoredSession> = {}): StoredSession {
  return {
    id,
    principal: 'local',
    cwd: `/work/${id}`,
    options: { permissionMode: 'default', allowedTools: ['Read'] },
    secretNames: [],
    workspace: { type: 'directory' },
    totals: { turns: 1, costUsd: 0.25 },
    state: { tag: 'idle' },
    createdAt: T0,
    lastActiveAt: T0,
    runsOn,
    ...more,
  };
}

export function event(sessionId: string, id: number, more: Partial<StoredEvent> = {}): StoredEvent {
  return { sessionId, id, at: T0 + id, type: 'output', keep: false, data: { text: `event ${id}` }, ...more };
}

export function request(sessionId: string, id: string, more: Partial<StoredRequest> = {}): StoredRequest {
  return {
    id,
    sessionId,
    kind: 'permission',
    ask: { toolName: 'Bash', input: { command: 'ls' } },
    createdAt: T0,
    ...more,
  };
}

export function command(
  sessionId: string,
  id: string,
  more: Partial<StoredCommand> = {},
): Omit<StoredCommand, 'progress'> {
  return { id, sessionId, principal: 'local', body: { do: 'message', prompt: 'go on' }, createdAt: T0, ...more };
}

export function grant(sessionId: string, id: string, more: Partial<StoredGrant> = {}): StoredGrant {
  return {
    ...{ id, sessionId, requestId: `r-${id}`, tool: 'Bash', input: 'sha256:00', cwd: '/work' },
    ...{ createdAt: T0, expiresAt: T0 + 600_000 },
    ...more,
  };
}

export function token(id: string, more: Partial<StoredToken> = {}): StoredToken {
  return {
    ...{ id, kind: 'token', name: id, hash: `hash-of-${id}`, role: 'caller', attended: false, createdAt: T0 },
    ...more,
  };
}

export function rule(id: string, more: Partial<RuleContent> = {}): RuleContent {
  return {
    ...{ id, decision: 'allow', tool: 'Bash', match: 'npm test', createdBy: 'person', createdAt: T0, enabled: true },
    ...more,
  };
}

export function subscription(id: string, more: Partial<StoredSubscription> = {}): StoredSubscription {
  return {
    ...{ id, credential: 't_anna', principal: 'token:t_anna', readsAll: true },
    ...{ endpoint: `https://push.example/${id}`, p256dh: 'key', auth: 'auth', createdAt: T0 },
    ...more,
  };
}

export const allow = (by = 'local', at = T0 + 1): Extract<Change, { type: 'request.settle' }>['outcome'] => ({
  decision: 'allow',
  by,
  source: 'human',
  at,
});

export const put = (row: StoredSession): Change => ({ type: 'session.put', session: row });
export const append = (row: StoredEvent): Change => ({ type: 'event.append', event: row });
export const ask = (row: StoredRequest): Change => ({ type: 'request.open', request: row });
export const settle = (row: StoredRequest, outcome = allow()): Change => ({
  type: 'request.settle',
  sessionId: row.sessionId,
  requestId: row.id,
  outcome,
});
export const send = (row: Omit<StoredCommand, 'progress'>): Change => ({ type: 'command.add', command: row });
export const finish = (sessionId: string, commandId: string, progress: StoredCommand['progress']): Change => ({
  type: 'command.finish',
  sessionId,
  commandId,
  progress,
});
