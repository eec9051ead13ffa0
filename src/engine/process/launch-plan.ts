import { childEnvironment, inheritedRules } from '../../config/child-environment.ts';
import { findProgram, isBareName } from '../../config/setting-kinds.ts';
import { DEPTH_VARIABLE, depthForChildren, type Settings } from '../../config/load-settings.ts';
import { variableOf } from '../../config/settings-table.ts';
import type { SpareTemplate } from '../../driver/driver.ts';
import { DomainError } from '../../errors/errors.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { Workspace } from '../../workspace/workspace.ts';
import { realPath, type Directories } from '../rules/directories.ts';
import { checkSandboxPackages } from '../rules/imposed-sandbox.ts';
import { imposeRules, type LaunchPlace } from '../rules/imposed-rules.ts';
import { placeOf } from '../rules/standing/place.ts';
import type { EngineServices } from '../ports.ts';
import { maskedPlaces, ownWorktree } from '../session/session-worktrees.ts';

export interface LaunchPlan {
  readonly launch: SpareTemplate;
  /** What a caller should know about it, one line each. */
  readonly warnings: readonly string[];
}

/**
 * How a Claude Code process is launched: what its caller asked for, what the operator's rules impose on it, and its
 * environment. Planned again for every process: a directory may have lost its trust since the session started.
 */
export class LaunchPlanner {
  readonly #settings: Settings;
  readonly #services: EngineServices;
  readonly #directories: Directories;

  constructor(settings: Settings, services: EngineServices, directories: Directories) {
    this.#settings = settings;
    this.#services = services;
    this.#directories = directories;
  }

  /** `owner`: the principal that the session belongs to. */
  async plan(admitted: SessionOptions, worktree?: Workspace, owner = ''): Promise<LaunchPlan> {
    const { options, managedSettings, env, warnings } = imposeRules(this.#settings, admitted, {
      trusted: await this.isTrusted(admitted),
      configDir: this.#services.configDir,
      worktree: ownWorktree(worktree, this.#settings),
      masked: this.#settings.sandbox ? maskedPlaces(this.#services.privatePlaces ?? [], worktree) : [],
      closesState: this.#services.archive !== undefined,
      standing: this.#standingRules(admitted, owner),
    });
    checkProgram(options, { ...this.#services.baseEnv, ...options.env });
    const launch = {
      options: withoutEnv(options),
      ...(managedSettings && { managedSettings }),
      env: { ...this.#childEnv(options), ...env },
    };
    return { launch, warnings };
  }

  #standingRules({ cwd, additionalDirectories = [] }: SessionOptions, owner: string): LaunchPlace['standing'] {
    const { standingRules, clock } = this.#services;
    const directory = cwd ?? this.#directories.own;
    if (!standingRules || directory === undefined) return undefined;
    const place = placeOf(owner, [directory, ...additionalDirectories]);
    const { deny, ask } = standingRules.inForce.imposed(place, clock.wallTime());
    const { rules: file } = this.#settings;
    const files = file === undefined ? [] : new Set([file, realPath(file)]);
    return { deny: [...deny, ...[...files].map((one) => `Edit(/${one})`)], ask };
  }

  /** Throws if the sandbox that the operator requires is not available. */
  checkSandbox(): void {
    if (this.#settings.sandbox) checkSandboxPackages(this.#services.baseEnv);
  }

  /** What is missing on this machine that Claude Code could use. */
  get missing(): string | undefined {
    const bash = this.#services.findGitBash?.();
    if (bash?.kind !== 'missing') return undefined;
    return `Git Bash: ${bash.problem}, so Claude has no Bash tool. ${bash.remedy}`;
  }

  /** A directory needs trust only where a person must grant permissions: otherwise it is used as in the terminal. */
  async isTrusted({ cwd, projectConfigRoot }: SessionOptions): Promise<boolean> {
    const directory = projectConfigRoot ?? cwd;
    if (this.#settings.approvals !== 'human' || directory === undefined) return true;
    if (this.#directories.isOwn(directory)) return true;
    return this.#directories.limited ? this.#directories.isInside(directory) : this.#services.isTrusted(directory);
  }

  #childEnv(options: SessionOptions): Record<string, string> {
    const { gitBashPath } = this.#settings;
    const bash = this.#services.findGitBash?.();
    const found = bash?.kind === 'found' && { CLAUDE_CODE_GIT_BASH_PATH: bash.file };
    const { baseEnv } = this.#services;
    return {
      ...childEnvironment({ ...baseEnv, ...inheritedRules(this.#settings, baseEnv), ...found }, options.env ?? {}),
      ...(gitBashPath !== undefined && { CLAUDE_CODE_GIT_BASH_PATH: gitBashPath }),
      [DEPTH_VARIABLE]: depthForChildren(this.#settings),
      ...(this.#settings.rules !== undefined && { [variableOf('rules')]: this.#settings.rules }),
    };
  }
}

/** If a start failed and something was missing, that is the most likely reason. */
export function withReason(error: unknown, missing: string | undefined): unknown {
  if (missing === undefined || !(error instanceof DomainError)) return error;
  return new DomainError(error.code, `${error.message} ${missing}`, { cause: error });
}

/** `env` is merged into the child's full environment, which is passed to the driver separately. */
function withoutEnv({ env: _merged, ...options }: SessionOptions): SessionOptions {
  return options;
}

/** A name without a path is looked up by the system, whose error would not say what was wrong. */
function checkProgram({ pathToClaudeCodeExecutable: given }: SessionOptions, env: NodeJS.ProcessEnv): void {
  if (given === undefined || !isBareName(given)) return;
  if (findProgram(given, { env, platform: process.platform, homedir: '' }) !== undefined) return;
  throw new DomainError(
    'INVALID_ARGUMENT',
    `pathToClaudeCodeExecutable: there is no program called ${given} on the PATH; give its full path, or omit it.`,
  );
}
