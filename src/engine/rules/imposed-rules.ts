import path from 'node:path';
import type { Settings } from '../../config/load-settings.ts';
import { fields, type Fields } from '../../schema/json.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import { sandboxFor, strings, thisSandboxHost, type OwnWorktree, type SandboxHost } from './imposed-sandbox.ts';

/*
 * What the operator's rules impose on every process of Claude Code, whatever its caller asked for: the first of a session,
 * the next after it was parked, that of a fork. It never becomes part of the session's own options, so no caller can set
 * it aside. Pure: rules and admitted options go in, what is launched comes out. Checks that refuse belong to the policy.
 */

type Limits = Pick<Settings, 'approvals' | 'allowedDirs' | 'denyOptions'>;
type Rules = Limits & Pick<Settings, 'sandbox' | 'sandboxNetwork' | 'stateDir'>;

export interface LaunchPlace {
  /** Whether a directory's hooks, rules, servers and skills may be loaded. */
  readonly trusted: boolean;
  /** Where Claude Code keeps this user's data. */
  readonly configDir: string;
  readonly worktree?: OwnWorktree | undefined;
  /** What commands in the sandbox must not see, wherever the session works. */
  readonly masked?: readonly string[];
  /** The server's files there would let a session pose as a client, and contain the data of all others. */
  readonly closesState?: boolean;
  readonly sandboxHost?: () => SandboxHost;
  /** Standing rules, as Claude Code reads them. */
  readonly standing?: Readonly<Record<'deny' | 'ask', readonly string[]>> | undefined;
}

export interface ImposedLaunch {
  readonly options: SessionOptions;
  /** Claude Code's policy layer: no settings of a caller, a project or a user override it. */
  readonly managedSettings?: Fields;
  /** Set over the caller's own variables. */
  readonly env: Readonly<Record<string, string>>;
  /** What a caller should know about it, one line each. */
  readonly warnings: readonly string[];
}

/** One rule, added to those imposed before it. */
type Imposition = (rules: Rules, launch: ImposedLaunch, place: LaunchPlace) => ImposedLaunch;

export function imposeRules(rules: Rules, admitted: SessionOptions, place: LaunchPlace): ImposedLaunch {
  const unlimited: ImposedLaunch = { options: admitted, env: {}, warnings: [] };
  return IMPOSITIONS.reduce((launch, imposition) => imposition(rules, launch, place), unlimited);
}

/** Whether there are limits that a slash command or an `@path` in a prompt would get around. */
export function drawsLimits({ approvals, allowedDirs, denyOptions }: Limits): boolean {
  return approvals === 'human' || allowedDirs !== undefined || denyOptions.length > 0;
}

/** Makes Claude Code attach no file that a prompt mentions. */
export const NO_MENTIONS_VARIABLE = 'CLAUDE_CODE_DISABLE_FILE_MENTIONS';

const literalPrompts: Imposition = (rules, launch) =>
  drawsLimits(rules)
    ? {
        ...launch,
        options: { ...launch.options, verbatimPrompts: true },
        env: { ...launch.env, [NO_MENTIONS_VARIABLE]: '1' },
      }
    : launch;

/**
 * Tools that Claude Code (2.1.325) runs without asking although they reach into the user's other sessions or leave
 * something behind that acts later.
 */
const ASK_BEFORE = [
  'ListAgents',
  'SendMessage',
  'CronCreate',
  'CronDelete',
  'CronList',
  'ScheduleWakeup',
  'RemoteTrigger',
  'PushNotification',
  'EnterWorktree',
  'ExitWorktree',
];

/** An ask rule overrides an allow rule, and what Claude Code allows by default. */
const personAsked: Imposition = ({ approvals }, launch, { configDir }) => {
  if (approvals !== 'human') return launch;
  const settings = settingsOf(launch.options);
  const permissions = fields(settings['permissions']);
  const ask = [...strings(permissions['ask']), ...ASK_BEFORE, `Edit(${memoryFiles(configDir)})`];
  const asking = {
    ...settings,
    permissions: { ...permissions, ask },
    crossSessionInbound: 'refuse',
    autoDreamEnabled: false,
  };
  return { ...launch, options: { ...launch.options, settings: asking } };
};

/**
 * Claude Code writes memory files in a folder of each project without asking. `//` starts an absolute path in a rule.
 */
function memoryFiles(configDir: string): string {
  const absolute = path.join(path.resolve(configDir), 'projects').replaceAll('\\', '/').replace(/^\/*/, '');
  return `//${absolute}/**`;
}

const untrustedSkipped: Imposition = ({ approvals }, launch, { trusted }) => {
  if (approvals !== 'human' || trusted) return launch;
  const { options, warnings } = launch;
  const warning = untrusted(options.projectConfigRoot ?? options.cwd ?? '');
  return { ...launch, options: { ...options, settingSources: ['user'] }, warnings: [...warnings, warning] };
};

function untrusted(directory: string): string {
  return `${directory} is not trusted in Claude Code: its settings, hooks, rules, skills and MCP servers were skipped, and only the user’s own apply. To use them, run claude there once and accept the trust dialog, or have the operator allow the directory (CLAUDE_CODE_MCP_ALLOWED_DIRS).`;
}

/**
 * A limit is written into both layers that the launching program controls. The policy layer cannot be overridden, but
 * Claude Code drops it on a machine whose administrator has set a policy; `settings` always applies.
 */
const confined: Imposition = (rules, launch, { worktree, masked, sandboxHost = thisSandboxHost }) => {
  if (rules.allowedDirs === undefined && !rules.sandbox) return launch;
  const { sandbox: inSettings, ...asked } = settingsOf(launch.options);
  const given = { ...fields(inSettings), ...launch.options.sandbox };
  const sandbox = rules.sandbox ? sandboxFor(rules, given, sandboxHost(), worktree, masked) : undefined;
  const permissions = { ...BLOCKED, ...(rules.sandbox && closedTo(stateOf(rules, worktree))) };
  const askedPermissions = fields(asked['permissions']);
  const settings = {
    ...asked,
    permissions: {
      ...askedPermissions,
      ...permissions,
      deny: [...strings(askedPermissions['deny']), ...strings(permissions['deny'])],
      blockReadsExemptPaths: rules.allowedDirs ?? [],
    },
  };
  const launched = sandbox ?? (Object.keys(given).length > 0 ? given : undefined);
  return {
    ...launch,
    options: { ...launch.options, settings, ...(launched && { sandbox: launched }) },
    managedSettings: { permissions, ...(sandbox && { sandbox }) },
  };
};

/** Claude Code denies its file tools anything outside the session's directories, in every mode and before any rule. */
const BLOCKED: Fields = { blockReadsOutsideWorkingDirectories: true, blockWritesOutsideWorkingDirectories: true };

/** A session may work in a directory above the server's own files. */
function closedTo(places: readonly string[]): Fields {
  return { deny: ['Read', 'Edit'].flatMap((tool) => places.map((place) => `${tool}(/${place})`)) };
}

/** Any string left here is inline JSON: the policy has already read files. */
function settingsOf({ settings }: SessionOptions): Fields {
  return fields(typeof settings === 'string' ? JSON.parse(settings) : settings);
}

/** Without a sandbox, commands can still reach it; file tools cannot. */
const stateClosed: Imposition = (rules, launch, { worktree, closesState }) => {
  if (closesState !== true || rules.sandbox) return launch;
  const deny = strings(closedTo(stateOf(rules, worktree))['deny']);
  return {
    ...launch,
    options: { ...launch.options, settings: withPermissions(settingsOf(launch.options), { deny }) },
    managedSettings: withPermissions(launch.managedSettings ?? {}, { deny }),
  };
};

/**
 * Standing rules that deny or ask then also hold where Claude Code would not ask. In the layer that can be changed while
 * it runs.
 */
const standingRules: Imposition = (_rules, launch, { standing }) => {
  if (!standing || (standing.deny.length === 0 && standing.ask.length === 0)) return launch;
  return { ...launch, options: { ...launch.options, settings: withPermissions(settingsOf(launch.options), standing) } };
};

function withPermissions(settings: Fields, added: Readonly<Record<string, readonly string[]>>): Fields {
  const permissions = fields(settings['permissions']);
  const lists = Object.entries(added).filter(([, rules]) => rules.length > 0);
  const merged = lists.map(([name, rules]) => [name, [...strings(permissions[name]), ...rules]] as const);
  return { ...settings, permissions: { ...permissions, ...Object.fromEntries(merged) } };
}

function stateOf({ stateDir }: Rules, worktree: OwnWorktree | undefined): string[] {
  return worktree?.besides.flatMap((place) => [place, `${place}/**`]) ?? [`${stateDir}/**`];
}

const IMPOSITIONS: readonly Imposition[] = [
  literalPrompts,
  personAsked,
  untrustedSkipped,
  confined,
  stateClosed,
  standingRules,
];
