import type { Settings } from '../config/load-settings.ts';
import { stateRecord, totalsRecord } from '../schema/records.ts';
import { RequestRecord } from '../schema/events.ts';
import { sessionOptions } from '../schema/session-options.ts';
import type { StoredRequest } from '../schema/store.ts';
import type { Principal } from './principal.ts';
import type { RecalledSession } from './services.ts';
import type { RestoredSession, SessionSeed } from './session-types.ts';

/** A session to be recreated from its stored data. */
export interface Revival extends Omit<SessionSeed, 'rules' | 'worktree'> {
  readonly restored: RestoredSession;
  /** The rules it was started under. */
  readonly settings: Partial<Settings>;
}

/** `env`: what this process could provide. */
export function revive(recalled: RecalledSession, env: NodeJS.ProcessEnv): Revival {
  const { row, events, lastEventId, droppedThrough, requests, messages, grants } = recalled;
  const state = stateRecord.parse(row.state);
  const owner: Principal = { id: row.principal, ...state.owner };
  const restored: RestoredSession = {
    state: state.tag,
    result: state.turn,
    cancellation: state.cancellation,
    reports: {
      events,
      lastEventId,
      droppedThrough,
      lastMessageAt: state.lastMessageAt,
      totals: totalsRecord.parse(row.totals),
      model: state.model,
      permissionMode: state.permissionMode,
      tools: state.tools,
    },
    createdAt: row.createdAt,
    lastActiveAt: row.lastActiveAt,
    topic: row.title ?? '',
    requests: requests.map(requestRecord),
    grants,
    handover: state.handover,
    actionUnderWay: state.actionUnderWay,
    lastAction: state.lastAction,
    undelivered: messages,
    hasAnswered: state.hasAnswered,
    work: state.work,
    movable: row.movable === true,
    arrivedAt: state.arrivedAt,
    missing: [...row.secretNames, ...state.environment.filter((name) => env[name] === undefined)],
  };
  return {
    id: row.id,
    owner,
    options: sessionOptions.parse(row.options),
    origin: state.origin ?? { kind: 'resume' },
    permissionTimeoutMs: state.permissionTimeoutMs,
    initTimeoutMs: state.startTimeoutMs,
    streamsText: state.streamsText,
    restored,
    settings: state.rules,
  };
}

function requestRecord({ id, kind, ask, createdAt, expiresAt }: StoredRequest): RequestRecord {
  const { plan, said, cwd, edit, target, own, ...asked } = ask;
  return RequestRecord.parse({ id, kind, ask: asked, plan, said, cwd, edit, target, own, createdAt, expiresAt });
}
