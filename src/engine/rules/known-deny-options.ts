import { nearestName, quote, SettingsError } from '../../config/bad-input.ts';
import type { Settings } from '../../config/load-settings.ts';
import { SDK_OPTIONS, SERVER_OPTIONS } from '../../driver/options-table.ts';

/** Options that are not exposed may be listed too: they cannot be set anyway. */
const OPTION_NAMES: ReadonlySet<string> = new Set([...Object.keys(SDK_OPTIONS), ...Object.keys(SERVER_OPTIONS)]);

/**
 * The settings with the denied options under the names the rules use. An unknown name stops the start: a typo would
 * silently leave open what was meant to be closed.
 */
export function withKnownDenyOptions(settings: Settings): Settings {
  const denyOptions = settings.denyOptions.map((written) => {
    const name = written.replace(/^advanced\./, '');
    if (OPTION_NAMES.has(name)) return name;
    const nearest = nearestName(name, OPTION_NAMES);
    throw new SettingsError(
      `CLAUDE_CODE_MCP_DENY_OPTIONS (--deny-options) names ${quote(written)}, which is not an option${nearest === undefined ? '' : `; did you mean ${nearest}?`}`,
    );
  });
  return { ...settings, denyOptions };
}
