import { variableOfAncestors } from '../platform/ancestors.ts';
import { APPROVAL_MODES } from '../schema/setting-choices.ts';
import { parseCommandLine } from './command-line.ts';
import { defaultStateDir, pathsOf, type Host } from './host.ts';
import { nearestName, quote, SettingsError } from './bad-input.ts';
import {
  flagOf,
  rowOf,
  SETTING_KEYS,
  SETTINGS_TABLE,
  variableOf,
  VARIABLE_PREFIX,
  type Setting,
  type SettingKey,
} from './settings-table.ts';

type ValueOf<Row> =
  Row extends Setting<infer T, infer Default> ? (Default extends undefined ? T | undefined : T) : never;

type SettingsAsWritten = { readonly [Key in SettingKey]: ValueOf<(typeof SETTINGS_TABLE)[Key]> };

/** The operator's rules, complete and checked. */
export interface Settings extends Omit<SettingsAsWritten, 'stateDir' | 'auditLog' | 'worktreesDir'> {
  readonly stateDir: string;
  readonly worktreesDir: string;
  /** A path, or `off`. */
  readonly auditLog: string;
  /** How many servers of this kind are above this one. */
  readonly depth: number;
}

export interface SettingsSource extends Host {
  readonly argv: readonly string[];
}

/** Settings a program passes as values instead of flags and variables. */
export type SettingsOverrides = { readonly [Key in SettingKey]?: SettingsAsWritten[Key] | undefined };

/**
 * Set by a server for the servers its sessions may start, as `depth/limit`; not meant for people. The limit goes along
 * because a server further in, which a repository may configure, must not raise it.
 */
export const DEPTH_VARIABLE = 'CLAUDE_CODE_MCP_DEPTH';

export function depthForChildren({ depth, maxDepth }: Pick<Settings, 'depth' | 'maxDepth'>): string {
  return `${depth + 1}/${maxDepth}`;
}

/** Which process the settings are for: some have a different default in the hub. */
export type SettingsFor = 'server' | 'hub';

/** Values from a program win over flags, flags over variables; all of them must pass the same checks. */
export function loadSettings(
  { argv, ...host }: SettingsSource,
  overrides: SettingsOverrides = {},
  process: SettingsFor = 'server',
): Settings {
  checkNames(overrides);
  const { flags } = parseCommandLine(argv);
  const values = SETTING_KEYS.map((key) => {
    const given =
      overrides[key] === undefined ? firstGiven(key, flags.get(key), host.env) : override(key, overrides, host);
    // Hub-only settings must not stop another process, nor be in it: they may contain a password.
    if (process === 'server' && rowOf(key).scope === 'hub') return [key, rowOf(key).default] as const;
    return [key, valueOf(key, given, host, process)] as const;
  });
  const written = Object.fromEntries(values) as SettingsAsWritten;
  if (written.sharedWorkspace !== undefined && written.store === undefined)
    throw new SettingsError(
      `${flagOf('sharedWorkspace')} is for hubs that share a store; pass the same ${flagOf('store')} postgres://… to each of them, or leave it out.`,
    );
  const stateDir = written.stateDir ?? defaultStateDir(host);
  const { depth, limit } = depthFrom(host.env);
  return Object.freeze({
    ...written,
    maxDepth: Math.min(written.maxDepth, limit),
    stateDir,
    worktreesDir: written.worktreesDir ?? pathsOf(host).join(stateDir, 'worktrees'),
    auditLog: written.auditLog ?? pathsOf(host).join(stateDir, 'audit.jsonl'),
    depth,
  });
}

interface Given {
  readonly from: string;
  readonly text: string;
}

function valueOf(key: SettingKey, given: Given | undefined, host: Host, process: SettingsFor): unknown {
  const row = rowOf(key);
  if (given === undefined) return process === 'hub' ? (row.hubDefault ?? row.default) : row.default;
  const parsed = row.kind.parse(given.text, host);
  if ('value' in parsed) return parsed.value;
  const complaint = row.kind.isSecret ? 'cannot be used (its value is not shown)' : `is ${quote(given.text)}`;
  const problem = parsed.problem === undefined ? '' : `, but ${parsed.problem}`;
  const nearest = row.kind.isSecret ? undefined : nearestName(given.text, row.kind.words ?? []);
  const meant = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
  throw new SettingsError(`${given.from} ${complaint}${problem}; it takes ${row.kind.accepts}.${meant}`);
}

function override(key: SettingKey, overrides: SettingsOverrides, host: Host): Given {
  const value = overrides[key];
  return { from: key, text: typeof value === 'string' ? value : rowOf(key).kind.format(value, host) };
}

/** A typo in a limit must not remove the limit. */
function checkNames(overrides: SettingsOverrides): void {
  for (const name of Object.keys(overrides)) {
    if (Object.hasOwn(SETTINGS_TABLE, name)) continue;
    const nearest = nearestName(name, SETTING_KEYS);
    throw new SettingsError(`${name} is not a setting${nearest === undefined ? '' : `; did you mean ${nearest}?`}`);
  }
}

/** An empty text counts as not set: client configurations pass `""` for what the user left blank. */
function firstGiven(key: SettingKey, flag: string | undefined, env: NodeJS.ProcessEnv): Given | undefined {
  if (flag) return { from: flagOf(key), text: flag };
  for (const variable of [variableOf(key), ...(rowOf(key).alsoReads ?? [])]) {
    const text = env[variable];
    if (text) return { from: variable, text };
  }
  return undefined;
}

export function depthFrom(env: NodeJS.ProcessEnv): { depth: number; limit: number } {
  const [, depth, limit] = /^(\d{1,6})(?:\/(\d{1,6}))?$/.exec(env[DEPTH_VARIABLE] ?? '') ?? [];
  return { depth: Number(depth ?? 0), limit: limit === undefined ? Number.POSITIVE_INFINITY : Number(limit) };
}

/** Settings that the operator gave, in written form; for a secret only that there is one. */
export function givenSettings(
  { argv, ...host }: SettingsSource,
  settings: Settings,
): Partial<Record<SettingKey, string>> {
  const { flags } = parseCommandLine(argv);
  const given = SETTING_KEYS.filter(
    (key) =>
      // What only the hub uses was not read here, and is not meant for this process.
      rowOf(key).scope !== 'hub' &&
      // An empty value counts as not set.
      (Boolean(flags.get(key)) || [variableOf(key), ...(rowOf(key).alsoReads ?? [])].some((name) => host.env[name])),
  );
  return Object.fromEntries(
    given.map((key) => {
      const { kind } = rowOf(key);
      return [key, kind.isSecret === true ? '' : kind.format(settings[key], host)];
    }),
  );
}

/**
 * The depth according to the parent processes. A project's `.mcp.json` could reset the variable for the server it names
 * and start servers endlessly; it cannot change the environment of the Claude Code that reads it. Linux only.
 */
export function withDepthOfAncestors(settings: Settings, platform?: NodeJS.Platform): Settings {
  let { depth, maxDepth } = settings;
  for (const value of variableOfAncestors(DEPTH_VARIABLE, platform)) {
    const above = depthFrom({ [DEPTH_VARIABLE]: value });
    depth = Math.max(depth, above.depth);
    maxDepth = Math.min(maxDepth, above.limit);
  }
  return depth === settings.depth && maxDepth === settings.maxDepth ? settings : { ...settings, depth, maxDepth };
}

/** What was set and has no effect, and what to do about it. */
export interface Ineffective {
  readonly what: string;
  readonly remedy: string;
}

/** What the operator may take for a limit or a permission although it is none. */
export function ineffectiveSettings(env: NodeJS.ProcessEnv, settings: Settings): Ineffective[] {
  const needs = (isSet: boolean, key: SettingKey, needed: SettingKey): Ineffective[] =>
    isSet
      ? [
          {
            what: `${variableOf(key)} (${flagOf(key)}) has no effect without ${variableOf(needed)}`,
            remedy: `Set ${variableOf(needed)} too.`,
          },
        ]
      : [];
  return [
    ...unknownVariables(env).map(({ name, nearest }) =>
      nearest === undefined
        ? {
            what: `${name} is not a setting of this server`,
            remedy: 'Remove it, unless it is meant for Claude Code; claude-code-mcp --help lists all settings.',
          }
        : { what: `${name} is not a setting and has no effect`, remedy: `Did you mean ${nearest}?` },
    ),
    ...needs(settings.allowDiskResume && settings.resumeSecret === undefined, 'allowDiskResume', 'resumeSecret'),
    ...needs(settings.sandboxNetwork.length > 0 && !settings.sandbox, 'sandboxNetwork', 'sandbox'),
  ];
}

/** Names with our prefix in Claude Code 2.1.325, which are no setting of ours. */
const OF_CLAUDE_CODE: ReadonlySet<string> = new Set(
  (
    'ALLOWLIST_ENV ALWAYS_LOAD_JOIN_BEFORE_INPUT APPS_HOST APPS_NO_TOOL_ROUTE AUTO_BACKGROUND_MS ' +
    'CONNECTOR_PREWAIT_MS MEMORY_CGROUP NO_REDIAL_AFTER_POLICY_REFUSAL PREWAIT_SERVERS PREWAIT_SERVERS_MS ' +
    'REGISTRY_FETCH_AT_STARTUP SERVER_NAME SERVER_URL SKIP_UNCHANGED_RELIST STARTUP_WAIT_MS TOOL_IDLE_TIMEOUT'
  ).split(' '),
);
const OF_CLAUDE_CODE_SERVE = 'SERVE_';
/** Set by this program for itself and for what it starts, or given to its commands. */
const NO_SETTINGS: ReadonlySet<string> = new Set('OWNER SESSION DEPTH PARENT SERVICE SECRETS_FROM TOKEN'.split(' '));

export interface UnknownVariable {
  readonly name: string;
  /** The setting that was probably meant. */
  readonly nearest: string | undefined;
}

/**
 * Variables with our prefix that are not settings. A limit such as CLAUDE_CODE_MCP_ALLOWED_DIR would otherwise be none,
 * and nobody would know. APPROVALS without the prefix, as documents and errors call it, counts if it has one of our values.
 */
export function unknownVariables(env: NodeJS.ProcessEnv): UnknownVariable[] {
  const known = new Map(SETTING_KEYS.map((key) => [variableOf(key).slice(VARIABLE_PREFIX.length), variableOf(key)]));
  const approvals = variableOf('approvals');
  const isMeant = APPROVAL_MODES.some((one) => one === env['APPROVALS']) && env[approvals] === undefined;
  const unprefixed = isMeant ? [{ name: 'APPROVALS', nearest: approvals }] : [];
  const misspelt = Object.keys(env).flatMap((name) => {
    const given = name.startsWith(VARIABLE_PREFIX) ? name.slice(VARIABLE_PREFIX.length) : '';
    if (given === '' || known.has(given) || NO_SETTINGS.has(given)) return [];
    if (OF_CLAUDE_CODE.has(given) || given.startsWith(OF_CLAUDE_CODE_SERVE)) return [];
    return [{ name, nearest: known.get(nearestName(given, known.keys()) ?? '') }];
  });
  return [...unprefixed, ...misspelt];
}

/**
 * Whether this process runs inside a session, according to its own environment or that of an ancestor. An agent must
 * not be able to make itself an admin.
 */
export function runsBelowSession(settings: Settings): boolean {
  return withDepthOfAncestors(settings, process.platform).depth > 0;
}

/** One line for the commands that refuse. */
export function refusedBelowSession(command: string): string {
  return `${command} does not run inside a session of Claude Code: an agent must not be able to give itself more permissions. Run it in your own terminal.`;
}
