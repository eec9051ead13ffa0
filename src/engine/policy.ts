import { existsSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import type { Settings } from '../config/load-settings.ts';
import { isReservedVariable } from '../config/child-environment.ts';
import { classOf } from '../driver/options-table.ts';
import type { PermissionUpdate } from '../driver/permission-ask.ts';
import { DomainError } from '../errors/errors.ts';
import {
  PERMISSION_MODES,
  type PermissionMode,
  type SessionOptionName,
  type SessionOptions,
} from '../schema/session-options.ts';

/** Modes that give a caller nothing a person did not grant. */
const MODES_THAT_GRANT_NOTHING: ReadonlySet<PermissionMode> = new Set<PermissionMode>(['default', 'plan', 'dontAsk']);

const PATH_OPTIONS = ['additionalDirectories', 'projectConfigRoot', 'debugFile'] as const;

/** The operator's rules, applied to what a caller asks for. */
export class Policy {
  readonly #settings: Settings;
  readonly #cwd: string;

  constructor(settings: Settings, cwd: string) {
    this.#settings = settings;
    this.#cwd = cwd;
  }

  /** What the caller asked for as it may run: checked, directories resolved, ceilings applied. Throws what is refused. */
  admit(asked: SessionOptions): SessionOptions {
    this.check(asked);
    const { maxTurns, maxBudgetUsd, executable } = this.#settings;
    const turns = ceiling('maxTurns', asked.maxTurns, maxTurns);
    const budget = ceiling('maxBudgetUsd', asked.maxBudgetUsd, maxBudgetUsd);
    const program = this.#program(asked.pathToClaudeCodeExecutable ?? executable);
    return {
      ...asked,
      cwd: this.directory(asked.cwd ?? this.#cwd, 'cwd'),
      ...(asked.additionalDirectories && {
        additionalDirectories: asked.additionalDirectories.map((dir) => this.directory(dir, 'additionalDirectories')),
      }),
      ...(turns !== undefined && { maxTurns: turns }),
      ...(budget !== undefined && { maxBudgetUsd: budget }),
      ...(program !== undefined && { pathToClaudeCodeExecutable: program }),
    };
  }

  check(asked: SessionOptions): void {
    const given = (Object.keys(asked) as SessionOptionName[]).filter((name) => asked[name] !== undefined);
    for (const name of given) this.#checkName(name, asked);
    for (const mode of modesWithin(asked)) this.checkMode(mode);
    for (const option of PATH_OPTIONS) this.#checkPaths(option, asked[option]);
    this.#checkEnv(asked.env);
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

  checkMode(mode: PermissionMode | undefined): void {
    if (mode === undefined) return;
    if (mode === 'bypassPermissions' && !this.#settings.allowBypass) {
      throw new DomainError(
        'PERMISSION_DENIED',
        'bypassPermissions is switched off; the operator can allow it with CLAUDE_CODE_MCP_ALLOW_BYPASS=1.',
      );
    }
    if (this.#settings.approvals === 'human' && !MODES_THAT_GRANT_NOTHING.has(mode))
      throw humanOnly(`permissionMode "${mode}"`);
  }

  /** Rights that an answer would grant for later. */
  checkUpdates(updates: PermissionUpdate[]): void {
    if (this.#settings.approvals === 'human') throw humanOnly('updatedPermissions');
    for (const update of updates) {
      if (update.type === 'setMode') this.checkMode(update.mode);
      if (update.type === 'addDirectories')
        for (const dir of update.directories) this.checkInside(dir, 'updatedPermissions');
    }
  }

  checkCallerMayAnswer(): void {
    if (this.#settings.approvals !== 'human') return;
    throw new DomainError(
      'PERMISSION_DENIED',
      'Requests are answered by a person here (CLAUDE_CODE_MCP_APPROVALS=human): wait until the form was answered.',
    );
  }

  checkSensitive(): void {
    if (this.#settings.allowSensitiveSessionDetails) return;
    throw new DomainError(
      'PERMISSION_DENIED',
      'includeSensitive is switched off by the operator (CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS=0).',
    );
  }

  /** An existing directory inside the allowed ones, absolute. */
  directory(given: string, what: string): string {
    const absolute = path.resolve(this.#cwd, given);
    const found = statSync(absolute, { throwIfNoEntry: false });
    if (!found) throw new DomainError('INVALID_ARGUMENT', `${what}: ${absolute} does not exist.`);
    if (!found.isDirectory()) throw new DomainError('INVALID_ARGUMENT', `${what}: ${absolute} is not a directory.`);
    this.checkInside(absolute, what);
    return absolute;
  }

  isInside(directory: string): boolean {
    const { allowedDirs } = this.#settings;
    if (!allowedDirs) return true;
    const real = realPath(path.resolve(this.#cwd, directory));
    return allowedDirs.some(
      (allowed) => real === allowed || real.startsWith(allowed.endsWith(path.sep) ? allowed : allowed + path.sep),
    );
  }

  checkInside(directory: string, what: string): void {
    if (this.isInside(directory)) return;
    throw new DomainError(
      'PERMISSION_DENIED',
      `${what}: ${directory} lies outside the directories the operator allows (CLAUDE_CODE_MCP_ALLOWED_DIRS).`,
    );
  }

  #checkName(name: SessionOptionName, asked: SessionOptions): void {
    if (this.#settings.denyOptions.includes(name)) {
      throw new DomainError(
        'PERMISSION_DENIED',
        `The operator does not let callers set ${name} (CLAUDE_CODE_MCP_DENY_OPTIONS).`,
      );
    }
    if (this.#settings.approvals !== 'human' || name === 'permissionMode') return;
    if (classOf(name).grants !== undefined && !isHarmless(name, asked)) throw humanOnly(name);
  }

  #checkEnv(env: Record<string, string> | undefined): void {
    for (const name of Object.keys(env ?? {})) {
      if (isReservedVariable(name)) {
        throw new DomainError(
          'PERMISSION_DENIED',
          `env: ${name} is the operator's to set, where the server is started.`,
        );
      }
      if (/SKIP_PERMISSIONS|MANAGED_SETTINGS/i.test(name) && !this.#settings.allowBypass) {
        throw new DomainError(
          'PERMISSION_DENIED',
          `env: ${name} would go around permissions (CLAUDE_CODE_MCP_ALLOW_BYPASS is off).`,
        );
      }
    }
  }

  #checkPaths(option: string, given: string | string[] | undefined): void {
    for (const entry of typeof given === 'string' ? [given] : (given ?? [])) this.checkInside(entry, option);
  }

  #program(given: string | undefined): string | undefined {
    if (given === undefined) return undefined;
    const bare = !given.includes('/') && !given.includes('\\');
    if (!bare && !existsSync(path.resolve(this.#cwd, given))) {
      throw new DomainError(
        'INVALID_ARGUMENT',
        `No Claude Code at ${given}; leave the path out to use the bundled one.`,
      );
    }
    return bare ? given : path.resolve(this.#cwd, given);
  }
}

/** Every place of the options where a permission mode can be written. */
function modesWithin({ permissionMode, agents, settings }: SessionOptions): PermissionMode[] {
  const written: unknown[] = [permissionMode, ...Object.values(agents ?? {}).map((agent) => agent['permissionMode'])];
  if (typeof settings === 'object')
    written.push((settings['permissions'] as { defaultMode?: unknown } | undefined)?.defaultMode);
  return written.filter((mode): mode is PermissionMode => (PERMISSION_MODES as readonly unknown[]).includes(mode));
}

/** Values that take rights away, or give none, of options that could give some. */
function isHarmless(name: SessionOptionName, asked: SessionOptions): boolean {
  switch (name) {
    case 'allowedTools':
    case 'additionalDirectories':
    case 'plugins':
      return asked[name]?.length === 0;
    case 'agents':
      return Object.values(asked.agents ?? {}).every(
        (agent) => !['tools', 'mcpServers', 'permissionMode', 'skills'].some((key) => key in agent),
      );
    case 'settingSources':
      return ['user', 'project', 'local'].every((source) => asked.settingSources?.includes(source as 'user'));
    default:
      return false;
  }
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

/** Links resolved as far as the path exists. */
function realPath(absolute: string): string {
  try {
    return realpathSync(absolute);
  } catch {
    const parent = path.dirname(absolute);
    return parent === absolute ? absolute : path.join(realPath(parent), path.basename(absolute));
  }
}
