import { randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import type { Settings } from '../../config/load-settings.ts';
import { rowOf, SETTING_KEYS, variableOf, type SettingKey } from '../../config/settings-table.ts';
import { LOCAL, nestedIn, type Principal } from '../../engine/rules/access.ts';
import { intersectRules, strictest } from '../../engine/rules/rule-intersection.ts';
import type { AttachRequest, TerminalRequest, UserPlace } from '../../transports/attach/protocol.ts';
import type { InsidePeer, OutsidePeer } from './peer.ts';

export type Admission =
  | { readonly settings: Settings; readonly warnings: readonly string[] }
  /** Completes "the hub does not accept this client: …". */
  | { readonly why: string };

const NAMES: Readonly<Record<keyof UserPlace, string>> = {
  user: 'the user',
  home: 'HOME',
  configDir: 'CLAUDE_CONFIG_DIR',
  stateDir: 'the state directory',
};

/**
 * Whether a client belongs to this hub, and under which rules: those that satisfy both it and `outer`, which are the
 * hub's own or, for a client inside a session, also those of the sessions it runs in.
 */
export function admit(request: AttachRequest | TerminalRequest, outer: Settings, place: UserPlace): Admission {
  for (const key of Object.keys(NAMES) as (keyof UserPlace)[]) {
    if (realPath(request.place[key]) !== realPath(place[key]))
      return { why: `${NAMES[key]} is ${place[key]} there and ${request.place[key]} here` };
  }
  // A link created by the client must not lead out of the directories it is compared with.
  const allowedDirs = request.rules.allowedDirs?.map(realPath);
  const common = intersectRules(outer, { ...request.rules, allowedDirs });
  if ('refusal' in common) return { why: common.refusal };
  return {
    settings: { ...outer, ...common.rules, toolset: request.toolset },
    warnings: ignoredSettings(outer, request.given),
  };
}

/**
 * The rules for a client inside these sessions, which are those of all of them together: naming a session that it does
 * not run in can only narrow them. The depth is counted from what the hub knows of the sessions.
 */
export function withinSessions(hub: Settings, sessions: readonly Settings[]): Settings {
  const outer = sessions.reduce((rules, session) => ({ ...rules, ...strictest(rules, session) }), hub);
  return sessions.length === 0 ? hub : { ...outer, depth: outer.depth + 1 };
}

/**
 * All clients of the user share their sessions. One that runs inside a session is a separate principal: it sees only
 * what was started from there, and its form answers are not a person's. If no process shows which session that is, it
 * sees only what it starts itself.
 */
export function principalOf(peer: Pick<OutsidePeer, 'kind'> | InsidePeer): Principal {
  return peer.kind === 'outside' ? LOCAL : nestedIn(peer.session ?? randomUUID());
}

/**
 * The user at a command outside any session. Everything can be read there; to answer or drive sessions, a person must
 * be able to see what they do, so it takes a terminal.
 */
export function principalAtTerminal({ isInteractive }: OutsidePeer): Principal {
  return { ...LOCAL, role: isInteractive ? 'admin' : 'viewer', attended: isInteractive };
}

/** Unchanged if it is not a path, or does not exist. */
function realPath(text: string): string {
  try {
    return realpathSync.native(text);
  } catch {
    return text;
  }
}

/** Which of two settings applies to a connection. */
type Whose = 'connection' | 'both' | 'hub';

/**
 * Whose value applies, for every setting. `both`: a connection can only narrow what the hub allows. Hub settings are
 * ignored if a connection brings them, and the connection is told.
 */
export const WHOSE_SETTING: Readonly<Record<SettingKey, Whose>> = {
  toolset: 'connection',
  logLevel: 'connection',
  approvals: 'both',
  allowedDirs: 'both',
  denyOptions: 'both',
  maxTurns: 'both',
  maxBudgetUsd: 'both',
  allowBypass: 'both',
  sandbox: 'both',
  sandboxNetwork: 'both',
  maxDepth: 'both',
  executable: 'hub',
  permissionTimeoutMs: 'hub',
  allowSensitiveSessionDetails: 'hub',
  allowDiskResume: 'hub',
  resumeSecret: 'hub',
  startTimeoutMs: 'hub',
  maxSessions: 'hub',
  eventBufferSize: 'hub',
  parkAfterMs: 'hub',
  sessionTtlMs: 'hub',
  runningSessionMaxMs: 'hub',
  cleanupIntervalMs: 'hub',
  prewarm: 'hub',
  worktreesDir: 'hub',
  auditLog: 'hub',
  gitBashPath: 'hub',
  // Compared when a client attaches.
  stateDir: 'connection',
  // Says whether to attach at all.
  hub: 'connection',
  listen: 'hub',
  tlsCert: 'hub',
  tlsKey: 'hub',
  behindProxy: 'hub',
  oauthIssuer: 'hub',
  oauthAudience: 'hub',
  store: 'hub',
  sharedWorkspace: 'hub',
  retainDays: 'hub',
  retainAuditDays: 'hub',
  notify: 'hub',
  notifySecret: 'hub',
  keepFor: 'hub',
  rules: 'hub',
  pushHosts: 'hub',
  remindAfter: 'hub',
  staleAfter: 'hub',
};

/** One line about client settings that the hub overrides. */
export function ignoredSettings(hub: Settings, given: Readonly<Partial<Record<SettingKey, string>>>): string[] {
  const ignored = SETTING_KEYS.filter((key) => {
    const text = given[key];
    if (text === undefined || WHOSE_SETTING[key] !== 'hub') return false;
    const { kind } = rowOf(key);
    const own = hub[key];
    return kind.isSecret === true || own === undefined || kind.format(own, process) !== text;
  });
  if (ignored.length === 0) return [];
  return [`Ignored, because the hub decides it for all its clients: ${ignored.map(variableOf).join(', ')}.`];
}
