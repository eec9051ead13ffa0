import type { SessionOptions } from '../../schema/session-options.ts';
import type { NoticeStream, SessionNotice } from '../notices.ts';
import type { ProcessHolder } from '../process/process-holder.ts';
import { liesIn } from '../rules/directories.ts';
import { runsElsewhere } from './session-errors.ts';
import type { RestoredSession, SessionSeed } from './session-types.ts';

/** Options whose values are never stored: whoever continues the session in another process must provide them again. */
export function secretNamesOf({ env, mcpServers, settings, agents }: SessionOptions): string[] {
  return [
    ...(env === undefined ? [] : Object.keys(env).map((name) => `env.${name}`)),
    ...(mcpServers === undefined ? [] : ['mcpServers']),
    ...(settings === undefined ? [] : ['settings']),
    ...(agents !== undefined && JSON.stringify(agents).includes('"mcpServers"') ? ['agents'] : []),
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

export interface MobilityServices {
  /** Where sessions work that another hub can take over. */
  readonly sharedWorkspace?: string | undefined;
  /** Resolves when everything that has happened so far is stored, where there is a store. */
  stored?(): Promise<void>;
  debug(line: string): void;
}

/** The session, as far as it matters where it runs. */
interface Moving extends Omit<Portable, 'restored'> {
  readonly id: string;
  readonly missing: readonly string[];
  readonly notices: NoticeStream<SessionNotice>;
  readonly process: Pick<ProcessHolder, 'live'>;
}

/**
 * `movable`: another hub may take it over when this one is gone. `withdrawn`: it stays here, but that is not stored yet,
 * so another hub may still take it over. `left`: another hub has it, and this is only a copy.
 */
type Place = 'movable' | 'withdrawn' | 'bound' | 'left';

/** Whether a session may go to another hub, and whether it has. */
export class Mobility {
  readonly #session: Moving;
  readonly #services: MobilityServices;
  #place: Place;

  /** `seed`: what the session is made from. */
  constructor(session: Moving, seed: Portable, services: MobilityServices) {
    this.#session = session;
    this.#services = services;
    this.#place = canMove(seed, services.sharedWorkspace) ? 'movable' : 'bound';
  }

  /** One that has left was, and still is. */
  get movable(): boolean {
    return this.#place === 'movable' || this.hasLeft;
  }

  /** Another hub takes it over when this one goes silent: as far as others know, it is movable. */
  get lent(): boolean {
    return this.#place === 'movable' || this.#place === 'withdrawn';
  }

  get hasLeft(): boolean {
    return this.#place === 'left';
  }

  /** It works where other hubs can, and has no values that only this hub knows. */
  get portable(): boolean {
    const { options, rules, worktree } = this.#session;
    return canMove({ options, rules, worktree }, this.#services.sharedWorkspace);
  }

  checkOwned(): void {
    if (this.hasLeft) throw runsElsewhere(this.#session.id);
  }

  /** Another hub could not continue it from here on: it stays on this machine. */
  stays(reason: string): void {
    if (this.#place === 'movable') {
      this.#place = 'withdrawn';
      this.#services.debug(`session ${this.#session.id} stays on this machine: ${reason}`);
      this.#session.notices.tell({ kind: 'changed' });
    }
    if (this.#place !== 'withdrawn') return;
    // If the store is unavailable, this is retried with the next failed repair.
    this.#services.stored?.().then(
      () => {
        if (this.#place === 'withdrawn') this.#place = 'bound';
        this.#session.process.live?.setLent(this.lent);
      },
      () => undefined,
    );
  }

  /** Whatever kept it here is repaired. */
  mayMoveAgain(): void {
    if (this.movable || this.#session.missing.length > 0 || !this.portable) return;
    this.#place = 'movable';
    this.#session.process.live?.setLent(true);
    this.#session.notices.tell({ kind: 'changed' });
  }

  /** It now runs elsewhere: waiting callers must look it up again. */
  leave(): void {
    this.#place = 'left';
    this.#session.notices.tell({ kind: 'changed' });
  }
}
