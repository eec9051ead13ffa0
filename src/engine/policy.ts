import { readlinkSync, realpathSync, statSync, type Stats } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Settings } from '../config/load-settings.ts';
import { isMarkVariable, isReservedVariable } from '../config/child-environment.ts';
import { isBareName } from '../config/setting-kinds.ts';
import { classOf } from '../driver/options-table.ts';
import type { PermissionUpdate } from '../driver/permission-ask.ts';
import { DomainError, messageOf } from '../errors/errors.ts';
import {
  PERMISSION_MODES,
  type PermissionMode,
  type SessionOptionName,
  type SessionOptions,
} from '../schema/session-options.ts';
import type { Approvals } from './approvals.ts';
import { isHarmless } from './harmless-values.ts';
import { imposesSettings } from './imposed-settings.ts';
import { mentionedPaths } from './mentions.ts';
import { checkSandboxEscapes } from './sandbox-escapes.ts';
import { contentsOf, settingsIn, type OptionContents } from './option-contents.ts';

/** Modes that give a caller nothing a person did not grant. */
const MODES_THAT_GRANT_NOTHING: ReadonlySet<PermissionMode> = new Set<PermissionMode>(['default', 'plan', 'dontAsk']);

/** Variables that make Claude Code ask nobody, or take its rules from elsewhere. */
const GOES_AROUND_PERMISSIONS = /SKIP_PERMISSIONS|PERMISSION_RULES|MANAGED_SETTINGS/i;

/** The operator's rules, applied to what a caller asks for. */
export class Policy {
  readonly #settings: Settings;
  readonly #approvals: Approvals;
  readonly #cwd: string;

  constructor(settings: Settings, approvals: Approvals, cwd: string) {
    this.#settings = settings;
    this.#approvals = approvals;
    this.#cwd = cwd;
  }

  /**
   * What the caller asked for as it may run: checked, paths resolved, ceilings applied. Throws what is refused.
   * `unasked` holds for what the caller did not set, and is no wish of its own that a rule could refuse.
   */
  admit(asked: SessionOptions, unasked: SessionOptions = {}): SessionOptions {
    this.check(asked);
    const options = { ...unasked, ...asked };
    const cwd = this.directory(options.cwd ?? this.#cwd, 'cwd');
    this.#checkContents(contentsOf(options, cwd), cwd);
    if (this.#settings.sandbox) checkSandboxEscapes(asked, settingsIn(asked.settings, cwd), cwd);
    for (const { initialPrompt } of Object.values(options.agents ?? {}))
      if (typeof initialPrompt === 'string') this.checkPrompt(initialPrompt, { ...options, cwd });
    checkConflicts(options);
    const { maxTurns, maxBudgetUsd } = this.#settings;
    const turns = ceiling('maxTurns', options.maxTurns, maxTurns);
    const budget = ceiling('maxBudgetUsd', options.maxBudgetUsd, maxBudgetUsd);
    const program = this.#program(options.pathToClaudeCodeExecutable);
    return {
      ...options,
      ...this.#resolvedPaths(options, cwd),
      cwd,
      ...(turns !== undefined && { maxTurns: turns }),
      ...(budget !== undefined && { maxBudgetUsd: budget }),
      ...(program !== undefined && { pathToClaudeCodeExecutable: program }),
      // What was looked at is what runs, and what the rules impose can be merged into it.
      ...(options.settings !== undefined &&
        imposesSettings(this.#settings) && { settings: settingsIn(options.settings, cwd) }),
    };
  }

  /** What can be said about options without knowing where they will run. */
  check(asked: SessionOptions): void {
    const given = (Object.keys(asked) as SessionOptionName[]).filter((name) => asked[name] !== undefined);
    for (const name of given) this.#checkName(name, asked);
    this.checkMode(asked.permissionMode);
  }

  /** A session started by a session of a server of this kind, and so on: bounded, or one prompt could fill the machine. */
  checkDepth(): void {
    const { depth, maxDepth } = this.#settings;
    if (depth < maxDepth) return;
    throw new DomainError(
      'PERMISSION_DENIED',
      `This server runs inside ${String(depth)} session(s) of servers like it; the operator allows ${String(maxDepth)} (CLAUDE_CODE_MCP_MAX_DEPTH).`,
    );
  }

  /** A file that a prompt mentions is read unasked: where reading is bounded, it has to lie inside. */
  checkPrompt(prompt: string, { cwd = this.#cwd, env, verbatimPrompts }: SessionOptions): void {
    const { allowedDirs } = this.#settings;
    const roots = this.#approvals.callerDecides ? allowedDirs : [realPath(path.resolve(cwd))];
    if (!roots || verbatimPrompts === true) return;
    const home = env?.['HOME'] ?? os.homedir();
    const stray = mentionedPaths(prompt, { cwd, home }).find((file) => !liesIn(roots, file));
    if (stray === undefined) return;
    throw new DomainError(
      'PERMISSION_DENIED',
      `prompt: "@" would read ${stray} without asking anybody, and it lies outside ${roots.join(', ')}. Write the path without "@".`,
    );
  }

  checkMode(mode: PermissionMode | undefined): void {
    if (mode === undefined) return;
    if (mode === 'bypassPermissions' && !this.#settings.allowBypass) {
      throw new DomainError(
        'PERMISSION_DENIED',
        'permissionMode "bypassPermissions" is switched off; the operator can allow it with CLAUDE_CODE_MCP_ALLOW_BYPASS=1.',
      );
    }
    if (!this.#approvals.callerDecides && !MODES_THAT_GRANT_NOTHING.has(mode))
      throw humanOnly(`permissionMode "${mode}"`);
  }

  /** Rights that an answer would grant for later. */
  checkUpdates(updates: PermissionUpdate[]): void {
    if (!this.#approvals.callerDecides) throw humanOnly('updatedPermissions');
    for (const update of updates) {
      if (update.type === 'setMode') this.checkMode(update.mode);
      if (update.type === 'addDirectories')
        for (const dir of update.directories) this.checkInside(dir, 'updatedPermissions');
    }
  }

  checkSensitive(): void {
    if (this.#settings.allowSensitiveSessionDetails) return;
    throw new DomainError(
      'PERMISSION_DENIED',
      'includeSensitive is switched off by the operator (CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS=0).',
    );
  }

  /** An existing directory inside the allowed ones, absolute. */
  directory(given: string, what: string, base = this.#cwd): string {
    const absolute = path.resolve(base, given);
    // First of all, so that a caller cannot find out what there is elsewhere.
    this.checkInside(absolute, what);
    const found = statOf(absolute, what);
    if (!found) throw new DomainError('INVALID_ARGUMENT', `${what}: ${absolute} does not exist.`);
    if (!found.isDirectory()) throw new DomainError('INVALID_ARGUMENT', `${what}: ${absolute} is not a directory.`);
    return absolute;
  }

  /** Absolute, links resolved. */
  realPath(directory: string): string {
    return realPath(path.resolve(this.#cwd, directory));
  }

  get limitsDirectories(): boolean {
    return this.#settings.allowedDirs !== undefined;
  }

  isInside(directory: string): boolean {
    const { allowedDirs } = this.#settings;
    return !allowedDirs || liesIn(allowedDirs, path.resolve(this.#cwd, directory));
  }

  checkInside(directory: string, what: string): void {
    this.#checkNotState(directory, what);
    if (this.isInside(directory)) return;
    const allowed = this.#settings.allowedDirs?.join(', ') ?? '';
    throw new DomainError(
      'PERMISSION_DENIED',
      `${what}: ${directory} lies outside the directories the operator allows (CLAUDE_CODE_MCP_ALLOWED_DIRS): ${allowed}.`,
    );
  }

  /** A directory that a session works in can be written to by its commands; worktrees are made for that. */
  #checkNotState(directory: string, what: string): void {
    const { sandbox, stateDir } = this.#settings;
    const absolute = path.resolve(this.#cwd, directory);
    if (!sandbox || !liesIn([realPath(stateDir)], absolute)) return;
    if (liesIn([realPath(path.join(stateDir, 'worktrees'))], absolute)) return;
    throw new DomainError(
      'PERMISSION_DENIED',
      `${what}: the server keeps its own files there; name another directory.`,
    );
  }

  #checkName(name: SessionOptionName, asked: SessionOptions): void {
    if (this.#settings.denyOptions.includes(name)) {
      throw new DomainError(
        'PERMISSION_DENIED',
        `The operator does not let callers set ${name} (CLAUDE_CODE_MCP_DENY_OPTIONS).`,
      );
    }
    if (this.#approvals.callerDecides || name === 'permissionMode') return;
    if (classOf(name).grants !== undefined && !isHarmless(name, asked)) throw humanOnly(name);
  }

  #checkContents({ modes, directories, variables, serverVariables }: OptionContents, cwd: string): void {
    for (const mode of modes.filter(isPermissionMode)) this.checkMode(mode);
    for (const directory of directories) this.checkInside(path.resolve(cwd, directory), 'additionalDirectories');
    for (const name of variables) this.#checkVariable(name, isReservedVariable(name));
    // A server of this kind may be given settings of its own, but not another place among servers.
    for (const name of serverVariables) this.#checkVariable(name, isMarkVariable(name));
  }

  #checkVariable(name: string, reserved: boolean): void {
    if (reserved) {
      throw new DomainError('PERMISSION_DENIED', `env: ${name} is the operator's to set, where the server is started.`);
    }
    if (GOES_AROUND_PERMISSIONS.test(name) && !this.#settings.allowBypass) {
      throw new DomainError(
        'PERMISSION_DENIED',
        `env: ${name} would go around permissions (CLAUDE_CODE_MCP_ALLOW_BYPASS is off).`,
      );
    }
  }

  /** Absolute, because what Claude Code makes of a relative path need not be what was checked. */
  #resolvedPaths({ additionalDirectories, projectConfigRoot, debugFile }: SessionOptions, cwd: string): SessionOptions {
    const file = debugFile === undefined ? undefined : path.resolve(cwd, debugFile);
    if (file !== undefined) this.checkInside(file, 'debugFile');
    return {
      ...(additionalDirectories && {
        additionalDirectories: additionalDirectories.map((dir) => this.directory(dir, 'additionalDirectories', cwd)),
      }),
      ...(projectConfigRoot !== undefined && {
        projectConfigRoot: this.directory(projectConfigRoot, 'projectConfigRoot', cwd),
      }),
      ...(file !== undefined && { debugFile: file }),
    };
  }

  /** The caller's program, or the operator's; a bare name is looked for on PATH. */
  #program(asked: string | undefined): string | undefined {
    const given = asked ?? this.#settings.executable;
    if (given === undefined) return undefined;
    if (isBareName(given)) {
      if (asked !== undefined) return asked;
      throw new DomainError(
        'INTERNAL',
        `Claude Code is not installed, or this server does not find it: there is no program called ${given} on its PATH. Install Claude Code, or set its whole path where the server is set up (CLAUDE_CODE_MCP_EXECUTABLE); then start the server again.`,
      );
    }
    const absolute = path.resolve(this.#cwd, given);
    if (statSync(absolute, { throwIfNoEntry: false })?.isFile() === true) return absolute;
    if (asked === undefined)
      throw new DomainError(
        'INTERNAL',
        `The operator's Claude Code (CLAUDE_CODE_MCP_EXECUTABLE) is not at ${given}: install it there, or correct the path where the server is set up.`,
      );
    throw new DomainError(
      'INVALID_ARGUMENT',
      `pathToClaudeCodeExecutable: no program at ${given}; leave it out to use the bundled one.`,
    );
  }
}

function isPermissionMode(mode: unknown): mode is PermissionMode {
  return (PERMISSION_MODES as readonly unknown[]).includes(mode);
}

/** What the Agent SDK refuses too, but only when the session is already on its way. */
function checkConflicts({ model, fallbackModel, settings, sandbox }: SessionOptions): void {
  if (fallbackModel !== undefined && fallbackModel === model)
    throw new DomainError('INVALID_ARGUMENT', 'fallbackModel: it is the model itself; name another one.');
  const isFile = typeof settings === 'string' && !settings.trimStart().startsWith('{');
  if (isFile && sandbox)
    throw new DomainError('INVALID_ARGUMENT', 'sandbox: it cannot go with a settings file; write it into the file.');
}

function ceiling(name: string, asked: number | undefined, limit: number | undefined): number | undefined {
  if (limit === undefined) return asked;
  if (asked !== undefined && asked > limit) {
    throw new DomainError(
      'PERMISSION_DENIED',
      `${name} ${String(asked)} is above the operator's ceiling of ${String(limit)}.`,
    );
  }
  return asked ?? limit;
}

function humanOnly(what: string): DomainError {
  return new DomainError(
    'PERMISSION_DENIED',
    `${what} grants rights in advance, and here only a person may grant them (CLAUDE_CODE_MCP_APPROVALS=human): leave it out.`,
  );
}

function liesIn(roots: readonly string[], absolute: string): boolean {
  const real = realPath(absolute);
  return roots.some((root) => real === root || real.startsWith(root.endsWith(path.sep) ? root : root + path.sep));
}

/** Links resolved as far as the path exists. A link that leads nowhere yet counts as what would be made through it. */
function realPath(absolute: string, hops = 0): string {
  try {
    return realpathSync.native(absolute);
  } catch {
    const parent = path.dirname(absolute);
    if (parent === absolute) return absolute;
    const target = hops < MOST_LINKS ? linkTarget(absolute) : undefined;
    if (target !== undefined) return realPath(path.resolve(parent, target), hops + 1);
    return path.join(realPath(parent, hops), path.basename(absolute));
  }
}

/** Links that lead in a circle end here, as they do in the kernel. */
const MOST_LINKS = 40;

function linkTarget(absolute: string): string | undefined {
  try {
    return readlinkSync(absolute);
  } catch {
    return undefined;
  }
}

function statOf(absolute: string, what: string): Stats | undefined {
  try {
    return statSync(absolute, { throwIfNoEntry: false });
  } catch (error) {
    throw new DomainError('INVALID_ARGUMENT', `${what}: ${messageOf(error)}`);
  }
}
