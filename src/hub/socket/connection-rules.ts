import type { Settings } from '../../config/load-settings.ts';
import { rowOf, SETTING_KEYS, variableOf, type SettingKey } from '../../config/settings-table.ts';

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
