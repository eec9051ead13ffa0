import { APPROVAL_MODES, LOG_LEVELS, TOOLSET_NAMES } from '../schema/setting-choices.ts';
import {
  choice,
  directories,
  directory,
  dollars,
  duration,
  filePath,
  filePathOrOff,
  hosts,
  integer,
  milliseconds,
  names,
  onOff,
  program,
  secret,
  text,
  httpsHosts,
  httpsOrigin,
  issuerUrl,
  listenAddress,
  notifyTarget,
  postgresUrl,
  type Kind,
} from './setting-kinds.ts';

export interface Setting<T, Default extends T | undefined> {
  readonly kind: Kind<T>;
  readonly default: Default;
  /** One sentence for the help and the docs. */
  readonly meaning: string;
  /** What the documentation says if there is no literal default. */
  readonly defaultInWords?: string;
  /** Variables to fall back to when the prefixed one is not set. */
  readonly alsoReads?: readonly string[];
  /** Only the hub uses it; other processes never see it, and its sessions do not inherit it. */
  readonly scope?: 'hub';
  /** The default in the hub, if it differs. */
  readonly hubDefault?: NonNullable<T>;
}

function setting<T, const Default extends NoInfer<T> | undefined>(row: Setting<T, Default>): Setting<T, Default> {
  return row;
}

/**
 * Every rule an operator can set. Variable and flag follow from the key:
 * `maxSessions` is CLAUDE_CODE_MCP_MAX_SESSIONS and --max-sessions.
 */
export const SETTINGS_TABLE = {
  toolset: setting({
    kind: choice(TOOLSET_NAMES),
    default: 'compact',
    meaning: 'Which tools to offer: four versatile ones (compact) or six single-purpose ones (explicit).',
  }),
  executable: setting({
    kind: program,
    default: undefined,
    defaultInWords: 'the one bundled with the Agent SDK',
    alsoReads: ['CLAUDE_CODE_PATH'],
    meaning: 'The Claude Code executable to run unless a caller specifies one.',
  }),
  approvals: setting({
    kind: choice(APPROVAL_MODES),
    default: 'auto',
    meaning:
      'Who may answer requests from Claude: a person by form or the caller by tool (auto), the caller only, or a person only (human).',
  }),
  permissionTimeoutMs: setting({
    kind: milliseconds(0),
    default: 300_000,
    alsoReads: ['PERMISSION_TIMEOUT_MS'],
    hubDefault: 0,
    meaning: 'How long a request waits for an answer before it is denied; 0 means no limit.',
  }),
  allowBypass: setting({
    kind: onOff,
    default: false,
    meaning: 'Lets callers use bypassPermissions and dangerouslySkipPermissions.',
  }),
  allowedDirs: setting({
    kind: directories,
    default: undefined,
    defaultInWords: 'any',
    meaning: 'Directories that sessions may work in, with links resolved; separated by ":" (";" on Windows) or commas.',
  }),
  sandbox: setting({
    kind: onOff,
    default: false,
    meaning:
      "Runs every command in Claude Code's sandbox: it reads and writes only the session's directories and reaches no network. A session that cannot be sandboxed does not start.",
  }),
  sandboxNetwork: setting({
    kind: hosts,
    default: [],
    defaultInWords: 'none',
    meaning: 'Hosts that commands in the sandbox may reach, such as registry.npmjs.org,*.github.com.',
  }),
  denyOptions: setting({
    kind: names,
    default: [],
    defaultInWords: 'none',
    meaning: 'Options no caller may set, such as env,mcpServers,pathToClaudeCodeExecutable,settings,plugins.',
  }),
  allowSensitiveSessionDetails: setting({
    kind: onOff,
    default: true,
    meaning: 'Whether includeSensitive may show the directory, system prompt and agents of a session.',
  }),
  allowDiskResume: setting({
    kind: onOff,
    default: false,
    meaning: 'Lets a reply resume a session that exists only on disk; requires a resume secret.',
  }),
  resumeSecret: setting({
    kind: secret,
    default: undefined,
    defaultInWords: 'none',
    meaning: 'Key of the resume tokens; set it as a variable, since other users can read flags in the process list.',
  }),
  startTimeoutMs: setting({
    kind: milliseconds(1),
    default: 10_000,
    meaning: 'How long a session may take to start, unless the caller sets sessionInitTimeoutMs.',
  }),
  maxSessions: setting({
    kind: integer(1, 1000),
    default: 10,
    alsoReads: ['MAX_SESSIONS'],
    meaning: 'How many Claude Code processes may run at once.',
  }),
  maxBudgetUsd: setting({
    kind: dollars,
    default: undefined,
    defaultInWords: 'none',
    meaning: 'Maximum and default budget of a session.',
  }),
  maxTurns: setting({
    kind: integer(1, 1_000_000),
    default: undefined,
    defaultInWords: 'none',
    meaning: 'Maximum and default number of turns of a session.',
  }),
  maxDepth: setting({
    kind: integer(0, 100),
    default: 2,
    meaning: 'How deeply sessions may be nested: a session that starts a server that starts sessions.',
  }),
  eventBufferSize: setting({
    kind: integer(1, 1_000_000),
    default: 1000,
    alsoReads: ['EVENT_BUFFER_SIZE'],
    meaning: 'How many events are kept in memory for each session.',
  }),
  parkAfterMs: setting({
    kind: milliseconds(1),
    default: 300_000,
    meaning: 'How long a session may be idle before its process is closed; the next reply restarts it.',
  }),
  sessionTtlMs: setting({
    kind: milliseconds(1),
    default: 1_800_000,
    meaning: 'How long a session may be idle before the server drops it; its transcript stays on disk.',
  }),
  runningSessionMaxMs: setting({
    kind: milliseconds(1),
    default: 14_400_000,
    meaning: 'How long a session may work before it is stopped.',
  }),
  cleanupIntervalMs: setting({
    kind: milliseconds(10),
    default: 60_000,
    meaning: 'How often the server checks for sessions to park, drop or stop.',
  }),
  prewarm: setting({
    kind: onOff,
    default: false,
    meaning: 'Keeps one spare process warm, so that the next session starts faster.',
  }),
  stateDir: setting({
    kind: filePath,
    default: undefined,
    defaultInWords: "claude-code-mcp in the user's state directory",
    meaning: 'Where this server keeps its own files.',
  }),
  worktreesDir: setting({
    kind: filePath,
    default: undefined,
    defaultInWords: 'worktrees in the state directory',
    meaning: 'Where the git worktrees of sessions are created.',
  }),
  auditLog: setting({
    kind: filePathOrOff,
    default: undefined,
    defaultInWords: 'audit.jsonl in the state directory',
    meaning: 'Where every call, request and decision is recorded.',
  }),
  logLevel: setting({
    // LOG_LEVEL is often set for other programs: their level names must not stop the server.
    kind: choice([...LOG_LEVELS, 'silent'], {
      all: 'debug',
      trace: 'debug',
      verbose: 'debug',
      notice: 'info',
      warning: 'warn',
      critical: 'error',
      fatal: 'error',
      off: 'silent',
      none: 'silent',
    }),
    default: 'info',
    alsoReads: ['LOG_LEVEL'],
    meaning: 'The minimum level of log lines written to stderr.',
  }),
  gitBashPath: setting({
    kind: filePath,
    default: undefined,
    defaultInWords: 'searched in the usual places',
    alsoReads: ['CLAUDE_CODE_GIT_BASH_PATH'],
    meaning: 'On Windows: the path to bash.exe.',
  }),
  hub: setting({
    kind: choice(['auto', 'require', 'off']),
    default: 'auto',
    meaning:
      "Whether to attach to this user's hub: if one is running (auto), always, failing without one (require), or never (off).",
  }),
  listen: setting({
    kind: listenAddress,
    default: { host: '127.0.0.1', port: 7433 },
    scope: 'hub',
    meaning: 'Where the hub listens for HTTP; port 0 picks a free one. A non-loopback address requires TLS.',
  }),
  tlsCert: setting({
    kind: filePath,
    default: undefined,
    defaultInWords: 'none',
    scope: 'hub',
    meaning: 'The TLS certificate, with its chain, as a PEM file.',
  }),
  tlsKey: setting({
    kind: filePath,
    default: undefined,
    defaultInWords: 'none',
    scope: 'hub',
    meaning: 'The private key of the TLS certificate, as a PEM file.',
  }),
  behindProxy: setting({
    kind: httpsOrigin,
    default: undefined,
    defaultInWords: 'none',
    scope: 'hub',
    meaning: 'The public URL of a reverse proxy that terminates TLS for the hub.',
  }),
  oauthIssuer: setting({
    kind: issuerUrl,
    default: undefined,
    defaultInWords: 'none',
    scope: 'hub',
    meaning: 'The OAuth issuer whose access tokens the hub accepts; requires an audience.',
  }),
  oauthAudience: setting({
    kind: text,
    default: undefined,
    defaultInWords: 'none',
    scope: 'hub',
    meaning: 'The audience that an OAuth access token for the hub must have.',
  }),
  store: setting({
    kind: postgresUrl,
    default: undefined,
    defaultInWords: 'hub.db in the state directory',
    scope: 'hub',
    meaning: 'A Postgres database instead of the SQLite file; set it as a variable if it contains a password.',
  }),
  sharedWorkspace: setting({
    kind: directory,
    default: undefined,
    defaultInWords: 'none',
    scope: 'hub',
    meaning:
      'A directory on a file system that all hubs on the same Postgres share: another hub can take over a session that works in it.',
  }),
  retainDays: setting({
    kind: integer(1, 36_500, 'days'),
    default: 30,
    scope: 'hub',
    meaning: 'How long the hub keeps an idle session and its events.',
  }),
  retainAuditDays: setting({
    kind: integer(1, 36_500, 'days'),
    default: 365,
    scope: 'hub',
    meaning: 'How long the hub keeps its audit records.',
  }),
  notify: setting({
    kind: notifyTarget,
    default: undefined,
    defaultInWords: 'none',
    scope: 'hub',
    meaning:
      'Where to send a notification when a session needs attention: a URL to POST to, or a command that reads it from stdin.',
  }),
  notifySecret: setting({
    kind: secret,
    default: undefined,
    defaultInWords: 'none',
    scope: 'hub',
    meaning: 'Key that signs the notifications sent to a URL; set it as a variable.',
  }),
  keepFor: setting({
    kind: duration,
    default: 900_000,
    scope: 'hub',
    meaning:
      'How long sessions go on without a hub, for example after it was killed, before their processes are ended.',
  }),
  rules: setting({
    kind: filePath,
    default: undefined,
    defaultInWords: 'none',
    meaning:
      'File of standing rules for a server without a hub: read at its start, private to its owner, and outside every directory that sessions work in. A hub keeps its rules in its store.',
  }),
  pushHosts: setting({
    kind: httpsHosts,
    default: [],
    defaultInWords: 'none',
    scope: 'hub',
    meaning:
      'Push services besides those of the known browsers, each with its port unless it is 443; their addresses may be private.',
  }),
  remindAfter: setting({
    kind: duration,
    default: 600_000,
    scope: 'hub',
    meaning:
      'How long a request may stay unanswered before its push notification is repeated, at most three times; 0 means never.',
  }),
  staleAfter: setting({
    kind: duration,
    default: 86_400_000,
    scope: 'hub',
    meaning:
      'How old a request may be before allowing it needs a second confirmation; 0 means that its age does not matter.',
  }),
} as const;

export type SettingKey = keyof typeof SETTINGS_TABLE;

export const SETTING_KEYS = Object.keys(SETTINGS_TABLE) as SettingKey[];

/** Settings that only the hub uses. */
export const HUB_ONLY_KEYS: readonly SettingKey[] = SETTING_KEYS.filter((key) => rowOf(key).scope === 'hub');

export const VARIABLE_PREFIX = 'CLAUDE_CODE_MCP_';

export function variableOf(key: SettingKey): string {
  return VARIABLE_PREFIX + key.replace(/[A-Z]/g, '_$&').toUpperCase();
}

export function flagOf(key: SettingKey): string {
  return `--${key.replace(/[A-Z]/g, '-$&').toLowerCase()}`;
}

/** A row seen without its value type, for code that treats all rows alike. */
export function rowOf(key: SettingKey): Setting<unknown, unknown> {
  return SETTINGS_TABLE[key];
}
