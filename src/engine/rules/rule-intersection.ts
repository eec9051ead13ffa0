import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { RULE_KEYS } from '../../config/child-environment.ts';
import type { Settings } from '../../config/load-settings.ts';
import { commonDeciders } from '../requests/approvals.ts';

/** What a session keeps of the rules it was started under, across a restart too. */
export const RULE_SETTINGS = [...RULE_KEYS, 'depth'] as const satisfies readonly (keyof Settings)[];

export type RuleSettings = Pick<Settings, (typeof RULE_SETTINGS)[number]>;

/** As plain data. */
export function ruleSettingsOf(settings: RuleSettings): Record<string, unknown> {
  return Object.fromEntries(RULE_SETTINGS.map((name) => [name, settings[name]]));
}

/** Whether everything that these rules allow is allowed by the others too. Unset values are not in the stored form. */
export function isWithin(inner: Readonly<Record<string, unknown>>, outer: RuleSettings): boolean {
  const unset = { allowedDirs: undefined, maxTurns: undefined, maxBudgetUsd: undefined };
  const given = { ...outer, ...unset, ...inner } as RuleSettings;
  const both = strictest(given, outer);
  return isDeepStrictEqual(comparable(both), comparable(given));
}

function comparable(rules: RuleSettings): unknown {
  const entries = RULE_SETTINGS.map((name) => {
    const value = rules[name];
    return [name, Array.isArray(value) ? [...(value as readonly string[])].sort() : value];
  });
  return entries;
}

export type Intersection = { readonly rules: RuleSettings } | { readonly refusal: string };

/** The rules that satisfy both sets. Refused if nothing would be left to allow. */
export function intersectRules(hub: RuleSettings, client: RuleSettings): Intersection {
  const approvals = commonDeciders(hub.approvals, client.approvals);
  if (approvals === undefined)
    return {
      refusal: `no one would be allowed to decide: the hub has APPROVALS=${hub.approvals}, this client ${client.approvals}`,
    };
  const allowedDirs = commonDirectories(hub.allowedDirs, client.allowedDirs);
  if (allowedDirs?.length === 0)
    return { refusal: 'no directory is inside the ALLOWED_DIRS of both the hub and this client' };
  return { rules: strictest(hub, client) };
}

/**
 * Like `intersectRules`, but never refuses: if no decider is left, a person decides, and if no directory is left, none
 * is allowed.
 */
export function strictest(a: RuleSettings, b: RuleSettings): RuleSettings {
  return {
    approvals: commonDeciders(a.approvals, b.approvals) ?? 'human',
    allowedDirs: commonDirectories(a.allowedDirs, b.allowedDirs),
    denyOptions: [...new Set([...a.denyOptions, ...b.denyOptions])],
    maxTurns: lower(a.maxTurns, b.maxTurns),
    maxBudgetUsd: lower(a.maxBudgetUsd, b.maxBudgetUsd),
    allowBypass: a.allowBypass && b.allowBypass,
    sandbox: a.sandbox || b.sandbox,
    sandboxNetwork: commonNetwork(a, b),
    maxDepth: Math.min(a.maxDepth, b.maxDepth),
    depth: Math.max(a.depth, b.depth),
  };
}

/** Whether everything inside the one list is inside the other. */
export function areInside(inner: readonly string[] | undefined, outer: readonly string[] | undefined): boolean {
  if (!outer) return true;
  return inner?.every((one) => outer.some((other) => isInside(other, one))) === true;
}

/** Of two directories, one inside the other, the inner one. */
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

/** As given: both lists have their links resolved. */
function isInside(directory: string, candidate: string): boolean {
  const way = path.relative(directory, candidate);
  return way === '' || (way !== '..' && !way.startsWith(`..${path.sep}`) && !path.isAbsolute(way));
}

/** Without a sandbox, commands have unrestricted network access, so that side's list is meaningless. */
function commonNetwork(hub: RuleSettings, client: RuleSettings): readonly string[] {
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
