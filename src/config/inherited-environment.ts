import { parseCommandLine } from './command-line.ts';
import type { Settings, SettingsOverrides, SettingsSource } from './load-settings.ts';
import { rowOf, variableOf, type SettingKey } from './settings-table.ts';

/**
 * The environment that sessions, and the servers they start, inherit. Rules given as variables are in it anyway; those
 * given as flags or by a program are added, or a session could start this server without them.
 */
export function inheritedEnvironment(
  { argv, ...host }: SettingsSource,
  settings: Settings,
  overrides: SettingsOverrides = {},
): NodeJS.ProcessEnv {
  const env = { ...host.env };
  for (const key of [...parseCommandLine(argv).flags.keys(), ...(Object.keys(overrides) as SettingKey[])]) {
    const { kind, scope } = rowOf(key);
    const value = settings[key];
    if (value !== undefined && kind.isSecret !== true && scope !== 'hub')
      env[variableOf(key)] = kind.format(value, host);
  }
  return env;
}
