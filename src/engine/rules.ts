import type { Settings } from '../config/load-settings.ts';
import { DomainError } from '../errors/errors.ts';
import { LaunchPlanner } from './launch-plan.ts';
import { Policy } from './policy.ts';
import type { EngineServices } from './services.ts';
import type { Session } from './session.ts';

/** What a connection brings of its own: rules that only narrow the server's, a working directory, an environment. */
export interface ConnectionContext {
  readonly settings: Settings;
  /** Where sessions work whose caller names no directory; without one, the caller has to. */
  readonly cwd: string | undefined;
  /** What its sessions inherit; without one, what this process does. Never stored. */
  readonly baseEnv?: NodeJS.ProcessEnv | undefined;
  /** What whoever starts a session here should know, one line each. */
  readonly warnings?: readonly string[] | undefined;
}

/** The settings that can narrow what sessions may do; a session keeps them across a restart. */
export const RULE_SETTINGS = [
  'approvals',
  'allowedDirs',
  'denyOptions',
  'maxTurns',
  'maxBudgetUsd',
  'allowBypass',
  'sandbox',
  'sandboxNetwork',
  'maxDepth',
  'depth',
] as const satisfies readonly (keyof Settings)[];

/** The operator's rules as they hold for one connection and for the sessions it starts. */
export class Rules {
  readonly settings: Settings;
  readonly policy: Policy;
  readonly launches: LaunchPlanner;
  readonly baseEnv: NodeJS.ProcessEnv;
  /** The variables that the connection brought and this process does not have. */
  readonly ownVariables: string[];
  readonly warnings: readonly string[];

  constructor({ settings, cwd, baseEnv, warnings = [] }: ConnectionContext, services: EngineServices) {
    this.settings = settings;
    this.baseEnv = baseEnv ?? services.baseEnv;
    this.ownVariables = Object.keys(this.baseEnv).filter((name) => this.baseEnv[name] !== services.baseEnv[name]);
    this.warnings = warnings;
    this.policy = new Policy(settings, cwd);
    this.launches = new LaunchPlanner(settings, { ...services, baseEnv: this.baseEnv }, this.policy.directories);
  }

  /** A session keeps the rules it was started under. Whoever has narrower ones may not drive it beyond them. */
  checkMayDrive({ id, rules, options }: Pick<Session, 'id' | 'rules' | 'options'>): void {
    if (rules === this) return;
    if (this.settings.sandbox && !rules.settings.sandbox)
      throw new DomainError(
        'PERMISSION_DENIED',
        `Session ${id} was started without the sandbox that this connection requires (CLAUDE_CODE_MCP_SANDBOX).`,
      );
    if (options.cwd !== undefined) this.policy.directories.checkInside(options.cwd, 'cwd');
    this.policy.checkMode(options.permissionMode);
  }
}
