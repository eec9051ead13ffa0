import path from 'node:path';
import type { Settings } from '../config/load-settings.ts';
import { rowOf, SETTING_KEYS, variableOf, type SettingKey } from '../config/settings-table.ts';
import type { ClientRules } from '../transports/attach/protocol.ts';

/** Which of two settings counts for a connection. */
type Whose = 'connection' | 'both' | 'hub';

/**
 * Whose value counts, for every setting. `both`: a connection can only narrow what the hub allows. What is the hub's is
 * ignored if a connection brings it, and the connection is told.
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
  retainDays: 'hub',
  retainAuditDays: 'hub',
  notify: 'hub',
  notifySecret: 'hub',
};

export type Intersection = { readonly rules: ClientRules } | { readonly refusal: string };

/** The rules that hold where both sets do. Refused where nothing would be left to allow. */
export function intersectRules(hub: ClientRules, client: ClientRules): Intersection {
  const approvals = commonDeciders(hub.approvals, client.approvals);
  if (approvals === undefined)
    return {
      refusal: `nobody could decide anything: the hub has APPROVALS=${hub.approvals}, this client ${client.approvals}`,
    };
  const allowedDirs = commonDirectories(hub.allowedDirs, client.allowedDirs);
  if (allowedDirs?.length === 0)
    return { refusal: 'no directory is inside the ALLOWED_DIRS of both the hub and this client' };
  return {
    rules: {
      approvals,
      allowedDirs,
      denyOptions: [...new Set([...hub.denyOptions, ...client.denyOptions])],
      maxTurns: lower(hub.maxTurns, client.maxTurns),
      maxBudgetUsd: lower(hub.maxBudgetUsd, client.maxBudgetUsd),
      allowBypass: hub.allowBypass && client.allowBypass,
      sandbox: hub.sandbox || client.sandbox,
      sandboxNetwork: commonNetwork(hub, client),
      maxDepth: Math.min(hub.maxDepth, client.maxDepth),
      depth: Math.max(hub.depth, client.depth),
    },
  };
}

/** One line about what a client was given and the hub decides otherwise. */
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

const DECIDERS: Readonly<Record<Settings['approvals'], readonly string[]>> = {
  auto: ['person', 'caller'],
  caller: ['caller'],
  human: ['person'],
};

function commonDeciders(a: Settings['approvals'], b: Settings['approvals']): Settings['approvals'] | undefined {
  const common = DECIDERS[a].filter((decider) => DECIDERS[b].includes(decider));
  const modes = Object.keys(DECIDERS) as Settings['approvals'][];
  return modes.find((mode) => common.length > 0 && DECIDERS[mode].join() === common.join());
}

/** Of two directories of which one lies in the other, the inner one. */
function commonDirectories(
  a: readonly string[] | undefined,
  b: readonly string[] | undefined,
): readonly string[] | undefined {
  if (!a || !b) return a ?? b;
  const inner = a.flatMap((one) =>
    b.flatMap((other) => (isInside(other, one) ? [one] : isInside(one, other) ? [other] : [])),
  );
  return [...new Set(inner)];
}

function isInside(directory: string, candidate: string): boolean {
  const way = path.relative(directory, candidate);
  return way === '' || (way !== '..' && !way.startsWith(`..${path.sep}`) && !path.isAbsolute(way));
}

/** Without a sandbox nothing holds commands back from the network, so the list of that side says nothing. */
function commonNetwork(hub: ClientRules, client: ClientRules): readonly string[] {
  if (!hub.sandbox) return client.sandbox ? client.sandboxNetwork : hub.sandboxNetwork;
  if (!client.sandbox) return hub.sandboxNetwork;
  const covered = (names: readonly string[], by: readonly string[]): string[] =>
    names.filter((name) => by.some((pattern) => covers(pattern, name)));
  return [
    ...new Set([
      ...covered(hub.sandboxNetwork, client.sandboxNetwork),
      ...covered(client.sandboxNetwork, hub.sandboxNetwork),
    ]),
  ];
}

function covers(pattern: string, name: string): boolean {
  const [wanted, host] = [pattern.toLowerCase(), name.toLowerCase()];
  return wanted === host || (wanted.startsWith('*.') && host.endsWith(wanted.slice(1)));
}

function lower(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}
