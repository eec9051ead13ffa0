import { environmentsOfAncestors } from '../../platform/ancestors.ts';
import type { Host } from '../../config/host.ts';
import { RULE_KEYS } from '../../config/child-environment.ts';
import { DEPTH_VARIABLE, depthFrom, loadSettings, type Settings } from '../../config/load-settings.ts';
import { variableOf } from '../../config/settings-table.ts';
import { strictest } from '../../engine/rules/rule-intersection.ts';

const RULE_VARIABLES = [DEPTH_VARIABLE, ...RULE_KEYS.map(variableOf)];

/**
 * Settings narrowed to the rules and the depth of the sessions that this server runs in. A project's `.mcp.json` can
 * give the server it names other variables, but cannot change the environment of the Claude Code that reads it. Linux
 * only.
 */
export function withinEnclosingRules(
  settings: Settings,
  host: Host,
  environments: Iterable<NodeJS.ProcessEnv> = environmentsOfAncestors(host.platform),
): Settings {
  let narrowed = settings;
  for (const env of environments) {
    if (depthFrom(env).depth === 0) continue;
    const rules = Object.fromEntries(RULE_VARIABLES.map((name) => [name, env[name]]));
    narrowed = { ...narrowed, ...strictest(narrowed, loadSettings({ ...host, argv: [], env: rules })) };
  }
  return narrowed;
}
