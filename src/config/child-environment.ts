import { parseCommandLine } from './command-line.ts';
import type { Settings, SettingsOverrides, SettingsSource } from './load-settings.ts';
import { rowOf, SETTING_KEYS, variableOf, type SettingKey } from './settings-table.ts';

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

/**
 * Set by the driver for each child, after this module: who owns the process, which session it is, how deep it is
 * nested.
 */
const DRIVER_VARIABLES = [
  'CLAUDE_CODE_MCP_OWNER',
  'CLAUDE_CODE_MCP_SESSION',
  'CLAUDE_CODE_MCP_DEPTH',
  'CLAUDE_CODE_MCP_PARENT',
  'CLAUDE_CODE_MCP_SERVICE',
  'CLAUDE_CODE_MCP_SECRETS_FROM',
];

const SECRET_VARIABLES = SETTING_KEYS.filter(
  (key) => rowOf(key).kind.isSecret === true || rowOf(key).scope === 'hub',
).map(variableOf);

/**
 * What Claude Code 2.1.325 passes to its commands, hooks and MCP servers about itself. A Claude Code that finds them
 * considers itself part of that outer session: its id, its messaging socket, its host's abilities.
 */
const OUTER_SESSION_VARIABLES = [
  'AI_AGENT',
  'CLAUDECODE',
  'CLAUDE_AGENT_SDK_CLIENT_APP',
  'CLAUDE_AGENT_SDK_VERSION',
  'CLAUDE_CODE_AGENT_PROGRESS_SUMMARIES',
  'CLAUDE_CODE_BRIDGE_SESSION_ID',
  'CLAUDE_CODE_CHILD_SESSION',
  'CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS',
  'CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING',
  'CLAUDE_CODE_ENTRYPOINT',
  'CLAUDE_CODE_EXECPATH',
  'CLAUDE_CODE_HOST_WORKTREE',
  'CLAUDE_CODE_HOST_WORKTREE_FENCE',
  'CLAUDE_CODE_INVOKED_SKILLS',
  'CLAUDE_CODE_MESSAGING_SOCKET',
  'CLAUDE_CODE_MESSAGING_TOKEN',
  'CLAUDE_CODE_SESSION_ATTENDED',
  'CLAUDE_CODE_SESSION_ID',
  'CLAUDE_CODE_SESSION_KIND',
  'CLAUDE_CODE_SESSION_NAME',
  'CLAUDE_CODE_SSE_PORT',
  'CLAUDE_CODE_TASK_LIST_ID',
  'CLAUDE_CODE_TOOL_USE_ID',
  'CLAUDE_EFFORT',
  'CLAUDE_JOB_DIR',
  'CLAUDE_PID',
  'CLAUDE_PROJECT_DIR',
];

const OUTER_SESSION_PREFIXES = ['CLAUDE_BG_', 'CLAUDE_CODE_QUESTION_', 'CLAUDE_CODE_SDK_', 'CLAUDE_PLUGIN_'];

/** What the commands present to a hub: a session that had it could answer its own requests. */
export const TOKEN_VARIABLE = 'CLAUDE_CODE_MCP_TOKEN';

const STRIPPED: ReadonlySet<string> = new Set([
  ...SECRET_VARIABLES,
  ...DRIVER_VARIABLES,
  ...OUTER_SESSION_VARIABLES,
  TOKEN_VARIABLE,
]);

const RESERVED: ReadonlySet<string> = new Set([...SETTING_KEYS.map(variableOf), ...DRIVER_VARIABLES, TOKEN_VARIABLE]);

/**
 * A variable that only the operator or the driver sets. A caller that could set or remove one would change the rules of
 * every server its session starts.
 */
export function isReservedVariable(name: string): boolean {
  return RESERVED.has(name.toUpperCase());
}

/** A variable by which servers of this kind know their sessions and nesting depth. */
export function isMarkVariable(name: string): boolean {
  return DRIVER_VARIABLES.includes(name.toUpperCase());
}

/** The environment of a Claude Code child: the server's own without secrets and marks, then what was given on top. */
export function childEnvironment(
  env: NodeJS.ProcessEnv,
  overlay: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  // Windows takes `Path` and `PATH` for one variable and would pass on only one of them, not always the given one.
  const identityOf = (name: string): string => (platform === 'win32' ? name.toUpperCase() : name);
  const child = new Map<string, readonly [name: string, value: string]>();
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && !isStripped(name)) child.set(identityOf(name), [name, value]);
  }
  for (const [name, value] of Object.entries(overlay)) {
    if (isReservedVariable(name)) continue;
    if (value === undefined) child.delete(identityOf(name));
    else child.set(identityOf(name), [name, value]);
  }
  return Object.fromEntries(child.values());
}

function isStripped(name: string): boolean {
  const upper = name.toUpperCase();
  return STRIPPED.has(upper) || OUTER_SESSION_PREFIXES.some((prefix) => upper.startsWith(prefix));
}

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
