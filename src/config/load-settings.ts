import { parseCommandLine } from './command-line.ts';
import { defaultStateDir, pathsOf, type Host } from './host.ts';
import { quote, SettingsError } from './settings-error.ts';
import {
  flagOf,
  rowOf,
  SETTING_KEYS,
  type SETTINGS_TABLE,
  variableOf,
  type Setting,
  type SettingKey,
} from './settings-table.ts';

type ValueOf<Row> =
  Row extends Setting<infer T, infer Default> ? (Default extends undefined ? T | undefined : T) : never;

type SettingsAsWritten = { readonly [Key in SettingKey]: ValueOf<(typeof SETTINGS_TABLE)[Key]> };

/** The operator's rules, complete and checked. */
export interface Settings extends Omit<SettingsAsWritten, 'stateDir' | 'auditLog'> {
  readonly stateDir: string;
  /** A path, or `off`. */
  readonly auditLog: string;
  /** How many servers of this kind are above this one. */
  readonly depth: number;
}

export interface SettingsSource extends Host {
  readonly argv: readonly string[];
}

/**
 * Set by a server for the servers its sessions may start, as `depth/limit`; not meant for people. The limit goes along
 * because a server further in, which a repository may configure, must not raise it.
 */
export const DEPTH_VARIABLE = 'CLAUDE_CODE_MCP_DEPTH';

export function depthForChildren({ depth, maxDepth }: Pick<Settings, 'depth' | 'maxDepth'>): string {
  return `${depth + 1}/${maxDepth}`;
}

export function loadSettings({ argv, ...host }: SettingsSource): Settings {
  const { flags } = parseCommandLine(argv);
  const values = SETTING_KEYS.map((key) => [key, valueOf(key, flags.get(key), host)] as const);
  const written = Object.fromEntries(values) as SettingsAsWritten;
  const stateDir = written.stateDir ?? defaultStateDir(host);
  const { depth, limit } = depthFrom(host.env);
  return Object.freeze({
    ...written,
    maxDepth: Math.min(written.maxDepth, limit),
    stateDir,
    auditLog: written.auditLog ?? pathsOf(host).join(stateDir, 'audit.jsonl'),
    depth,
  });
}

function valueOf(key: SettingKey, flag: string | undefined, host: Host): unknown {
  const row = rowOf(key);
  const given = firstGiven(key, flag, host.env);
  if (given === undefined) return row.default;
  const parsed = row.kind.parse(given.text, host);
  if ('value' in parsed) return parsed.value;
  const complaint = row.kind.isSecret ? 'cannot be used (its value is not shown)' : `is ${quote(given.text)}`;
  const problem = parsed.problem === undefined ? '' : `, but ${parsed.problem}`;
  throw new SettingsError(`${given.from} ${complaint}${problem}; it takes ${row.kind.accepts}.`);
}

/** An empty text counts as not set: client configurations pass `""` for what the user left blank. */
function firstGiven(
  key: SettingKey,
  flag: string | undefined,
  env: NodeJS.ProcessEnv,
): { from: string; text: string } | undefined {
  if (flag) return { from: flagOf(key), text: flag };
  for (const variable of [variableOf(key), ...(rowOf(key).alsoReads ?? [])]) {
    const text = env[variable];
    if (text) return { from: variable, text };
  }
  return undefined;
}

function depthFrom(env: NodeJS.ProcessEnv): { depth: number; limit: number } {
  const [, depth, limit] = /^(\d{1,6})(?:\/(\d{1,6}))?$/.exec(env[DEPTH_VARIABLE] ?? '') ?? [];
  return { depth: Number(depth ?? 0), limit: limit === undefined ? Number.POSITIVE_INFINITY : Number(limit) };
}
