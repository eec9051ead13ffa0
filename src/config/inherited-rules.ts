import type { Settings } from './load-settings.ts';
import { rowOf, variableOf, type SettingKey } from './settings-table.ts';

/** The settings that can narrow what sessions may do. */
export const RULE_KEYS = [
  'approvals',
  'allowedDirs',
  'denyOptions',
  'maxTurns',
  'maxBudgetUsd',
  'allowBypass',
  'sandbox',
  'sandboxNetwork',
  'maxDepth',
] as const satisfies readonly SettingKey[];

/**
 * The rules that a session runs under, as variables for the servers it may start. Its client's own can be wider: the
 * hub has narrowed them.
 */
export function inheritedRules(settings: Settings, env: NodeJS.ProcessEnv): Record<string, string> {
  const rules: Record<string, string> = {};
  for (const key of RULE_KEYS) {
    const { kind, default: usual } = rowOf(key);
    const value = settings[key];
    if (value === undefined) continue;
    const text = kind.format(value, process);
    const isUsual = usual !== undefined && kind.format(usual, process) === text;
    if (!isUsual || env[variableOf(key)] !== undefined) rules[variableOf(key)] = text;
  }
  return rules;
}
