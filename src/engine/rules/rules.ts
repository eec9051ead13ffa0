import type { Settings } from '../../config/load-settings.ts';
import { DomainError } from '../../errors/errors.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import { closedPlaces, USER_ACCESS, type DirectoryAccess } from './access.ts';
import { LaunchPlanner } from '../process/launch-plan.ts';
import { Policy } from './policy.ts';
import { areInside, ruleSettingsOf, strictest } from './rule-intersection.ts';
import type { EngineServices } from '../ports.ts';
import { inCheckout } from '../session/session-worktrees.ts';
import type { Session } from '../session/session.ts';

/** What a connection brings along: rules that only narrow the server's, a working directory, an environment. */
export interface ConnectionContext {
  readonly settings: Settings;
  /** Where sessions work if their caller names no directory; without it, the caller must. */
  readonly cwd: string | undefined;
  /** What its sessions inherit; without it, this process's own. Never stored. */
  readonly baseEnv?: NodeJS.ProcessEnv | undefined;
  /** What callers that start a session here should know, one line each. */
  readonly warnings?: readonly string[] | undefined;
  /** Which directories its callers may work in; without it, those of the user this process runs as. */
  readonly access?: DirectoryAccess | undefined;
}

/**
 * What Claude Code uses to sign in and reach the network, and anything that looks like a credential. An editor's own
 * variables are not missed.
 */
const NEEDED =
  /^(?:ANTHROPIC|CLAUDE|AWS|GOOGLE|AZURE|VERTEX|BEDROCK)_|PROXY$|^NODE_EXTRA_CA_CERTS$|^SSL_CERT|TOKEN|SECRET|PASSWORD|CREDENTIAL|API_?KEY/i;

/** The operator's rules as they apply to one connection and the sessions it starts. */
export class Rules {
  readonly settings: Settings;
  readonly policy: Policy;
  readonly launches: LaunchPlanner;
  readonly baseEnv: NodeJS.ProcessEnv;
  /**
   * Variables that the connection brought, that this process does not have, and that a session could not run without.
   */
  readonly ownVariables: string[];
  readonly warnings: readonly string[];
  readonly access: DirectoryAccess;

  #kept: Record<string, unknown> | undefined;

  constructor(context: ConnectionContext, services: EngineServices) {
    const { settings, cwd, baseEnv, warnings = [], access = USER_ACCESS } = context;
    this.settings = settings;
    this.baseEnv = baseEnv ?? services.baseEnv;
    this.ownVariables = Object.keys(this.baseEnv).filter(
      (name) => NEEDED.test(name) && this.baseEnv[name] !== services.baseEnv[name],
    );
    this.warnings = warnings;
    this.access = access;
    this.policy = new Policy(settings, cwd, closedPlaces(access, services.privatePlaces ?? [], settings.rules));
    this.launches = new LaunchPlanner(settings, { ...services, baseEnv: this.baseEnv }, this.policy.directories);
  }

  /** What a session keeps of them, across a restart too. */
  get kept(): Record<string, unknown> {
    this.#kept ??= ruleSettingsOf(this.settings);
    return this.#kept;
  }

  /**
   * A session keeps the rules and values it was started with. A connection with narrower rules may not drive it beyond
   * them: it would do through another's session what it may not do in its own.
   */
  checkMayDrive({ id, rules, options, worktree }: Pick<Session, 'id' | 'rules' | 'options' | 'worktree'>): void {
    if (rules === this) return;
    if (this.settings.sandbox && !rules.settings.sandbox) throw wider(id, 'without the sandbox', 'SANDBOX');
    // They apply inside the session too.
    if (!areInside(rules.settings.allowedDirs, this.settings.allowedDirs))
      throw wider(id, 'for more directories than those', 'ALLOWED_DIRS');
    const directory = worktree ? inCheckout(worktree) : options.cwd;
    // Where it works was for its own rules to say: a person who may drive every session may continue one there.
    if (directory !== undefined) this.policy.directories.checkAllowed(directory, 'cwd');
    this.policy.check(withoutServersOwn(options, this.settings, worktree !== undefined));
    this.policy.checkMode(options.permissionMode);
  }

  /** The rules of a session that a connection with its own rules creates from one with these. */
  narrowedTo(other: Rules, services: EngineServices): Rules {
    if (other === this) return this;
    const settings = { ...this.settings, ...strictest(this.settings, other.settings) };
    const { baseEnv, policy } = this;
    const access = other.access.of === 'others' ? other.access : this.access;
    return new Rules({ settings, cwd: policy.directories.own, baseEnv, warnings: other.warnings, access }, services);
  }
}

/** What a caller chose. The rest was set where the session was created, under whatever rules. */
function withoutServersOwn(options: SessionOptions, { executable }: Settings, hasWorktree: boolean): SessionOptions {
  const { cwd: _, permissionMode: _mode, maxTurns: _turns, maxBudgetUsd: _budget, ...chosen } = options;
  const { pathToClaudeCodeExecutable, projectConfigRoot, ...others } = chosen;
  return {
    ...others,
    ...(pathToClaudeCodeExecutable !== executable && { pathToClaudeCodeExecutable }),
    ...(!hasWorktree && { projectConfigRoot }),
  };
}

function wider(sessionId: string, how: string, setting: string): DomainError {
  return new DomainError(
    'PERMISSION_DENIED',
    `Session ${sessionId} was started ${how} that this connection requires (CLAUDE_CODE_MCP_${setting}).`,
  );
}
