import { statSync } from 'node:fs';
import path from 'node:path';
import { isMarkVariable, isReservedVariable } from '../../config/child-environment.ts';
import type { Settings } from '../../config/load-settings.ts';
import { isBareName } from '../../config/setting-kinds.ts';
import { classOf } from '../../driver/options-table.ts';
import type { PermissionUpdate } from '../../driver/permission-ask.ts';
import { DomainError } from '../../errors/errors.ts';
import { fields, type Fields } from '../../schema/json.ts';
import { SETTING_SOURCES } from '../../schema/enums.ts';
import {
  PERMISSION_MODES,
  type PermissionMode,
  type SessionOptionName,
  type SessionOptions,
} from '../../schema/session-options.ts';
import { callersDecide } from '../requests/approvals.ts';
import { type ClosedPlaces, Directories } from './directories.ts';
import { drawsLimits, NO_MENTIONS_VARIABLE } from './imposed-rules.ts';
import { checkSandboxEscapes, settingsObject, withCheckedDirectories } from './sandbox-escapes.ts';

/** Fields of an agent that grant no permissions. An allowlist of what is known to be harmless. */
const HARMLESS_AGENT_FIELDS: ReadonlySet<string> = new Set([
  'description',
  'prompt',
  'model',
  'maxTurns',
  'effort',
  'disallowedTools',
  'background',
  'autoCompactWindow',
  'omitClaudeMd',
  'criticalSystemReminder_EXPERIMENTAL',
]);

/** The values of the sandbox's switches that tighten it. */
const TIGHTER_SANDBOX: Readonly<Record<string, boolean>> = {
  enabled: true,
  failIfUnavailable: true,
  allowUnsandboxedCommands: false,
  autoAllowBashIfSandboxed: false,
};

/** Values that remove permissions, or grant none, for options that could grant some. */
export function isHarmless(name: SessionOptionName, asked: SessionOptions): boolean {
  switch (name) {
    case 'allowedTools':
    case 'additionalDirectories':
    case 'plugins':
    case 'env':
    case 'mcpServers':
    case 'settings':
    case 'skills':
    case 'toolAliases':
      return isEmpty(asked[name]);
    case 'agents':
      return Object.values(asked.agents ?? {}).every(grantsNothing);
    case 'agent':
      // The agents passed along with it are checked separately.
      return asked.agent !== undefined && Object.hasOwn(asked.agents ?? {}, asked.agent);
    case 'sandbox':
      return isTighter(asked.sandbox ?? {});
    case 'settingSources':
      return SETTING_SOURCES.every((source) => asked.settingSources?.includes(source));
    default:
      return false;
  }
}

/** Whether sandboxed commands still need permission is up to Claude Code's defaults unless set here. */
function isTighter(sandbox: Record<string, unknown>): boolean {
  if (sandbox['enabled'] === true && sandbox['autoAllowBashIfSandboxed'] !== false) return false;
  return Object.entries(sandbox).every(([key, value]) => TIGHTER_SANDBOX[key] === value);
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function grantsNothing(agent: object): boolean {
  return Object.keys(agent).every((field) => HARMLESS_AGENT_FIELDS.has(field));
}

/** Modes that give a caller nothing beyond what a person granted. */
const MODES_THAT_GRANT_NOTHING: ReadonlySet<PermissionMode> = new Set<PermissionMode>(['default', 'plan', 'dontAsk']);

/** Variables that make Claude Code skip questions, or take its rules from elsewhere. */
const BYPASS_VARIABLES = /SKIP_PERMISSIONS|PERMISSION_RULES|MANAGED_SETTINGS/i;

/** The operator's rules, applied to what a caller asks for. */
export class Policy {
  readonly directories: Directories;
  readonly #settings: Settings;
  readonly #callersDecide: boolean;

  /** `cwd`: where sessions work if their caller names no directory. `closed`: where they may not. */
  constructor(settings: Settings, cwd: string | undefined, closed: ClosedPlaces = {}) {
    this.#settings = settings;
    this.#callersDecide = callersDecide(settings.approvals);
    const inside = settings.sandbox ? [settings.stateDir] : [];
    this.directories = new Directories(settings.allowedDirs, cwd, { inside, ...closed });
  }

  /**
   * What the caller asked for, in the form in which it may run: checked, paths resolved, limits applied. Throws if
   * something is refused. `defaults` fills in what the caller did not set, and is not subject to rules about callers.
   */
  async admit(asked: SessionOptions, defaults: SessionOptions = {}): Promise<SessionOptions> {
    this.check(asked);
    const options = { ...this.#ownDefaults(), ...defaults, ...asked };
    const cwd = this.directories.existing(options.cwd ?? this.#ownDirectory(), 'cwd');
    const settings = await settingsObject(options.settings, cwd, this.directories);
    this.#checkContents(contentsOf(options, settings));
    if (this.#settings.sandbox) checkSandboxEscapes(asked, settings ?? {}, cwd);
    checkConflicts(options);
    const { maxTurns, maxBudgetUsd } = this.#settings;
    const turns = ceiling('maxTurns', options.maxTurns, maxTurns);
    const budget = ceiling('maxBudgetUsd', options.maxBudgetUsd, maxBudgetUsd);
    const program = this.#program(options.pathToClaudeCodeExecutable);
    return {
      ...options,
      ...this.#resolvedPaths(options, cwd),
      ...(settings && { settings: withCheckedDirectories(settings, cwd, this.directories) }),
      cwd,
      ...(turns !== undefined && { maxTurns: turns }),
      ...(budget !== undefined && { maxBudgetUsd: budget }),
      ...(program !== undefined && { pathToClaudeCodeExecutable: program }),
    };
  }

  #ownDirectory(): string {
    const { own } = this.directories;
    if (own === undefined)
      throw new DomainError('INVALID_ARGUMENT', 'cwd: specify the directory that the session works in.');
    return own;
  }

  /** Where only a person may grant permissions, a mode configured elsewhere must not. */
  #ownDefaults(): SessionOptions {
    return this.#callersDecide ? {} : { permissionMode: 'default' };
  }

  /** Checks on options that do not depend on where they will run. */
  check(asked: SessionOptions): void {
    const given = (Object.keys(asked) as SessionOptionName[]).filter((name) => asked[name] !== undefined);
    for (const name of given) this.#checkName(name, asked);
    this.checkMode(asked.permissionMode);
  }

  /** A session started by a session of such a server, and so on: limited, or one prompt could fill the machine. */
  checkDepth(): void {
    const { depth, maxDepth } = this.#settings;
    if (depth < maxDepth) return;
    throw new DomainError(
      'PERMISSION_DENIED',
      `This server is nested inside ${String(depth)} session(s); the operator allows ${String(maxDepth)} (CLAUDE_CODE_MCP_MAX_DEPTH).`,
    );
  }

  checkMode(mode: PermissionMode | undefined): void {
    if (mode === undefined) return;
    this.#checkBypass(mode);
    if (!this.#callersDecide && !MODES_THAT_GRANT_NOTHING.has(mode)) throw humanOnly(`permissionMode "${mode}"`);
  }

  #checkBypass(mode: PermissionMode): void {
    if (mode !== 'bypassPermissions' || this.#settings.allowBypass) return;
    throw new DomainError(
      'PERMISSION_DENIED',
      'permissionMode "bypassPermissions" is disabled; the operator can allow it with CLAUDE_CODE_MCP_ALLOW_BYPASS=1.',
    );
  }

  /**
   * The permissions that an answer may grant: for this session, and none that a caller could not have requested as an
   * option; a person may grant what is denied to callers, within the operator's limits. Throws if something is refused.
   * `cwd` is the session's directory.
   */
  grantable(updates: readonly PermissionUpdate[], cwd: string, by: 'caller' | 'person' = 'caller'): PermissionUpdate[] {
    if (by === 'caller' && !this.#callersDecide && updates.length > 0) throw humanOnly('updatedPermissions');
    return updates.map((update) => {
      const option = optionFor(update);
      if (option !== undefined && by === 'caller') this.#checkDenied(option);
      if (update.type === 'setMode') this.#checkBypass(update.mode);
      if (update.type === 'setMode' && by === 'caller') this.checkMode(update.mode);
      const inSession = { ...update, destination: 'session' as const };
      if (inSession.type !== 'addDirectories') return inSession;
      const what = 'updatedPermissions';
      return {
        ...inSession,
        directories: inSession.directories.map((one) => this.directories.written(one, what, cwd)),
      };
    });
  }

  checkSensitive(): void {
    if (this.#settings.allowSensitiveSessionDetails) return;
    throw new DomainError(
      'PERMISSION_DENIED',
      'includeSensitive is disabled by the operator (CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS=0).',
    );
  }

  #checkName(name: SessionOptionName, asked: SessionOptions): void {
    this.#checkDenied(name);
    if (name === 'verbatimPrompts' && asked.verbatimPrompts === false && drawsLimits(this.#settings)) {
      throw new DomainError(
        'PERMISSION_DENIED',
        'verbatimPrompts: prompts are plain text here, because commands in them would get around limits set by the operator; omit it.',
      );
    }
    if (this.#callersDecide || name === 'permissionMode') return;
    if (classOf(name).grants !== undefined && !isHarmless(name, asked)) throw humanOnly(name);
  }

  #checkDenied(name: SessionOptionName): void {
    if (!this.#settings.denyOptions.includes(name)) return;
    throw new DomainError(
      'PERMISSION_DENIED',
      `The operator does not let callers set ${name} (CLAUDE_CODE_MCP_DENY_OPTIONS).`,
    );
  }

  #checkContents({ modes, variables, serverVariables, prompts }: OptionContents): void {
    for (const mode of modes.filter(isPermissionMode)) this.checkMode(mode);
    for (const name of variables) this.#checkVariable(name, isReservedVariable(name) || this.#isImposed(name));
    // A nested server may be given its own settings, but not a different nesting depth.
    for (const name of serverVariables) this.#checkVariable(name, isMarkVariable(name));
    if (prompts.length > 0 && drawsLimits(this.#settings)) {
      throw new DomainError(
        'PERMISSION_DENIED',
        'agents: initialPrompt could contain commands, which are not allowed here because of limits set by the operator; put it into the prompt.',
      );
    }
  }

  #isImposed(variable: string): boolean {
    return variable.toUpperCase() === NO_MENTIONS_VARIABLE && drawsLimits(this.#settings);
  }

  #checkVariable(name: string, reserved: boolean): void {
    if (reserved) {
      throw new DomainError(
        'PERMISSION_DENIED',
        `env: ${name} can only be set by the operator, where the server is started.`,
      );
    }
    if (BYPASS_VARIABLES.test(name) && !this.#settings.allowBypass) {
      throw new DomainError(
        'PERMISSION_DENIED',
        `env: ${name} would bypass permissions (CLAUDE_CODE_MCP_ALLOW_BYPASS is off).`,
      );
    }
  }

  /** Absolute, because Claude Code may resolve a relative path differently from what was checked. */
  #resolvedPaths({ additionalDirectories, projectConfigRoot, debugFile }: SessionOptions, cwd: string): SessionOptions {
    const file = debugFile === undefined ? undefined : path.resolve(cwd, debugFile);
    if (file !== undefined) this.directories.checkInside(file, 'debugFile');
    return {
      ...(additionalDirectories && {
        additionalDirectories: additionalDirectories.map((dir) =>
          this.directories.existing(dir, 'additionalDirectories', cwd),
        ),
      }),
      ...(projectConfigRoot !== undefined && {
        projectConfigRoot: this.directories.existing(projectConfigRoot, 'projectConfigRoot', cwd),
      }),
      ...(file !== undefined && { debugFile: file }),
    };
  }

  /** The caller's program, or the operator's; a bare name is looked up on PATH. */
  #program(asked: string | undefined): string | undefined {
    const given = asked ?? this.#settings.executable;
    if (given === undefined) return undefined;
    if (isBareName(given)) {
      if (asked !== undefined) return asked;
      throw new DomainError(
        'INTERNAL',
        `Claude Code is not installed, or this server cannot find it: there is no program called ${given} on its PATH. Install Claude Code, or set its full path where the server is configured (CLAUDE_CODE_MCP_EXECUTABLE); then restart the server.`,
      );
    }
    const absolute = path.resolve(this.directories.own ?? path.sep, given);
    if (statSync(absolute, { throwIfNoEntry: false })?.isFile() === true) return absolute;
    if (asked === undefined)
      throw new DomainError(
        'INTERNAL',
        `The operator's Claude Code (CLAUDE_CODE_MCP_EXECUTABLE) is not at ${given}: install it there, or correct the path where the server is configured.`,
      );
    throw new DomainError(
      'INVALID_ARGUMENT',
      `pathToClaudeCodeExecutable: no program at ${given}; omit it to use the bundled one.`,
    );
  }
}

function isPermissionMode(mode: unknown): mode is PermissionMode {
  return (PERMISSION_MODES as readonly unknown[]).includes(mode);
}

/** The Agent SDK refuses this too, but only once the session is already starting. */
function checkConflicts({ model, fallbackModel }: SessionOptions): void {
  if (fallbackModel !== undefined && fallbackModel === model)
    throw new DomainError('INVALID_ARGUMENT', 'fallbackModel: same as the model itself; choose another one.');
}

/** The option by which a caller could have requested the same permission. */
function optionFor(update: PermissionUpdate): SessionOptionName | undefined {
  switch (update.type) {
    case 'setMode':
      return 'permissionMode';
    case 'addDirectories':
      return 'additionalDirectories';
    case 'addRules':
    case 'replaceRules':
      return { allow: 'allowedTools', deny: 'disallowedTools', ask: undefined }[update.behavior] as
        'allowedTools' | 'disallowedTools' | undefined;
    default:
      return undefined;
  }
}

function ceiling(name: string, asked: number | undefined, limit: number | undefined): number | undefined {
  if (limit === undefined) return asked;
  if (asked !== undefined && asked > limit) {
    throw new DomainError(
      'PERMISSION_DENIED',
      `${name} ${String(asked)} exceeds the operator's limit of ${String(limit)}.`,
    );
  }
  return asked ?? limit;
}

function humanOnly(what: string): DomainError {
  return new DomainError(
    'PERMISSION_DENIED',
    `${what} grants permissions in advance, and only a person may grant them here (CLAUDE_CODE_MCP_APPROVALS=human): omit it.`,
  );
}

/*
 * Rights can be written in more places than the option that is named after them: a settings file has a permission
 * mode, directories and variables, an agent has a mode and servers, a server has variables. A rule that checks only one
 * of them is useless.
 */

interface OptionContents {
  /** As given, which need not be valid modes. */
  readonly modes: readonly unknown[];
  /** Variables of Claude Code itself. */
  readonly variables: readonly string[];
  /** Variables of the servers it starts. */
  readonly serverVariables: readonly string[];
  /** What an agent would send to itself as if it came from the caller. */
  readonly prompts: readonly unknown[];
}

function contentsOf(options: SessionOptions, settings: Fields = {}): OptionContents {
  const { permissionMode, env = {}, mcpServers = {} } = options;
  const permissions = fields(settings['permissions']);
  const agents = Object.values(options.agents ?? {});
  const servers = [
    mcpServers,
    ...agents.flatMap(({ mcpServers: own }) => (Array.isArray(own) ? (own as unknown[]) : [])),
  ];
  return {
    modes: [permissionMode, permissions['defaultMode'], ...agents.map((agent) => agent['permissionMode'])].filter(
      (mode) => mode !== undefined,
    ),
    variables: [...Object.keys(env), ...Object.keys(fields(settings['env']))],
    serverVariables: servers
      .flatMap((group) => Object.values(fields(group)))
      .flatMap((server) => Object.keys(fields(fields(server)['env']))),
    prompts: agents.map(({ initialPrompt }) => initialPrompt).filter((prompt) => prompt !== undefined),
  };
}
