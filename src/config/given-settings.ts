import { parseCommandLine } from './command-line.ts';
import type { Settings, SettingsSource } from './load-settings.ts';
import { rowOf, SETTING_KEYS, variableOf, type SettingKey } from './settings-table.ts';

/** Settings that the operator gave, in written form; for a secret only that there is one. */
export function givenSettings(
  { argv, ...host }: SettingsSource,
  settings: Settings,
): Partial<Record<SettingKey, string>> {
  const { flags } = parseCommandLine(argv);
  const given = SETTING_KEYS.filter(
    (key) =>
      // An empty value counts as not set.
      Boolean(flags.get(key)) || [variableOf(key), ...(rowOf(key).alsoReads ?? [])].some((name) => host.env[name]),
  );
  return Object.fromEntries(
    given.map((key) => {
      const { kind } = rowOf(key);
      return [key, kind.isSecret === true ? '' : kind.format(settings[key], host)];
    }),
  );
}
