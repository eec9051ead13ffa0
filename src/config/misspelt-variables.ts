import { nearestName } from './nearest-name.ts';
import { SETTING_KEYS, VARIABLE_PREFIX, variableOf } from './settings-table.ts';

export interface MisspeltVariable {
  readonly name: string;
  readonly nearest: string;
}

/**
 * Variables that look like a misspelt setting. A rule such as CLAUDE_CODE_MCP_ALLOWED_DIR would otherwise have no
 * effect. Only near misses count: Claude Code has its own variables with this prefix.
 */
export function misspeltVariables(env: NodeJS.ProcessEnv): MisspeltVariable[] {
  const known = new Map(SETTING_KEYS.map((key) => [variableOf(key).slice(VARIABLE_PREFIX.length), variableOf(key)]));
  return Object.keys(env).flatMap((name) => {
    const given = name.startsWith(VARIABLE_PREFIX) ? name.slice(VARIABLE_PREFIX.length) : '';
    if (given === '' || known.has(given)) return [];
    const nearest = known.get(nearestName(given, known.keys()) ?? '');
    return nearest === undefined ? [] : [{ name, nearest }];
  });
}
