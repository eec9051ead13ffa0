import type { SessionOptions } from '../../schema/session-options.ts';
import { liesIn } from '../rules/directories.ts';
import { runsElsewhere } from './session-errors.ts';
import type { RestoredSession, SessionSeed } from './session-types.ts';

/** Options whose values are never stored: whoever continues the session in another process must provide them again. */
export function secretNamesOf({ env, mcpServers, settings, agents }: SessionOptions): string[] {
  return [
    ...Object.keys(env ?? {}).map((name) => `env.${name}`),
    ...(mcpServers === undefined ? [] : ['mcpServers']),
    ...(settings === undefined ? [] : ['settings']),
    ...(JSON.stringify(agents ?? {}).includes('"mcpServers"') ? ['agents'] : []),
  ];
}

interface Portable extends Pick<SessionSeed, 'options' | 'rules'> {
  /** Of a session from an earlier process. */
  readonly restored?: Pick<RestoredSession, 'movable'> | undefined;
  readonly worktree?: unknown;
}

/** Whether another hub has everything it takes to continue this session. */
export function canMove(
  { options, rules, worktree, restored }: Portable,
  sharedWorkspace: string | undefined,
): boolean {
  if (sharedWorkspace === undefined) return false;
  const cwd = options.cwd ?? rules.policy.directories.own;
  return (
    cwd !== undefined &&
    worktree === undefined &&
    options.persistSession !== false &&
    secretNamesOf(options).length === 0 &&
    // A session that once had to stay does not have its full history elsewhere.
    restored?.movable !== false &&
    liesIn([sharedWorkspace], rules.policy.directories.realPath(cwd))
  );
}

/** Whether a session may go to another hub, and whether it has. */
export class Mobility {
  readonly #sharedWorkspace: string | undefined;
  #movable: boolean;
  /** It stays here, but that is not stored yet. */
  #isUntold = false;
  /** Another hub has it; this is only a copy. */
  hasLeft = false;

  constructor(seed: Portable, sharedWorkspace: string | undefined) {
    this.#sharedWorkspace = sharedWorkspace;
    this.#movable = canMove(seed, sharedWorkspace);
  }

  get movable(): boolean {
    return this.#movable;
  }

  /** Another hub takes it over when this one goes silent: as far as others know, it is movable. */
  get lent(): boolean {
    return this.#movable || this.#isUntold;
  }

  /** Returns whether this is new. */
  stays(): boolean {
    const changes = this.#movable;
    this.#movable = false;
    this.#isUntold ||= changes;
    return changes;
  }

  /** The store now says that it stays. */
  told(): void {
    this.#isUntold = false;
  }

  /** Returns whether this changes anything. */
  mayMoveAgain(session: Omit<Portable, 'restored'>): boolean {
    if (this.#movable) return false;
    this.#movable = this.isPortable(session);
    return this.#movable;
  }

  /** Whatever kept it here, if anything. */
  isPortable({ options, rules, worktree }: Omit<Portable, 'restored'>): boolean {
    return canMove({ options, rules, worktree }, this.#sharedWorkspace);
  }

  checkOwned(sessionId: string): void {
    if (this.hasLeft) throw runsElsewhere(sessionId);
  }
}
