import { loadSettings, misspeltVariables, type Settings, type SettingsSource } from '../../config/load-settings.ts';
import { SettingsError } from '../../config/settings-error.ts';
import { rowOf, SETTING_KEYS, variableOf } from '../../config/settings-table.ts';
import { withKnownDenyOptions } from '../../engine/rules/known-deny-options.ts';
import { ok, problem, type Finding } from './finding.ts';

const CHECK = 'Settings';

/** The finding, and settings to continue with: the defaults if the real ones are invalid. */
export function checkSettings(source: SettingsSource): { finding: Finding; settings: Settings } {
  try {
    const settings = withKnownDenyOptions(loadSettings(source));
    return { finding: spelling(source), settings };
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    const remedy = 'Correct it where the server is started; claude-code-mcp --help lists every setting.';
    return { finding: problem(CHECK, error.message, remedy), settings: defaults(source) };
  }
}

function spelling({ env }: SettingsSource): Finding {
  const [first] = misspeltVariables(env);
  if (first !== undefined) {
    return problem(CHECK, `${first.name} is not a setting and has no effect`, `Did you mean ${first.nearest}?`);
  }
  const given = SETTING_KEYS.map(variableOf).filter((name) => env[name]);
  return ok(CHECK, given.length === 0 ? 'defaults' : given.join(', '));
}

function defaults({ env, ...host }: SettingsSource): Settings {
  const read = new Set(SETTING_KEYS.flatMap((key) => [variableOf(key), ...(rowOf(key).alsoReads ?? [])]));
  const others = Object.entries(env).filter(([name]) => !read.has(name));
  return loadSettings({ ...host, argv: [], env: Object.fromEntries(others) });
}

/** A server in a session of a server, and so on. */
export function checkNesting({ depth, maxDepth }: Settings): Finding {
  const check = 'Nesting';
  if (depth >= maxDepth) {
    return problem(
      check,
      `nested inside ${depth} session(s) of this server, and the limit is ${maxDepth}: sessions are refused`,
      'Start the server outside those sessions, or raise CLAUDE_CODE_MCP_MAX_DEPTH.',
    );
  }
  return ok(check, depth === 0 ? 'not nested inside another session' : `${depth} of at most ${maxDepth}`);
}
