import type { Settings } from '../config/load-settings.ts';
import { DomainError, messageOf } from '../errors/errors.ts';
import type { SessionOptions } from '../schema/session-options.ts';
import type { StoredSession } from '../schema/store.ts';
import type { ConnectedClient } from './approvals.ts';
import { accessOf } from './directory-access.ts';
import { Mirrors } from './mirrors.ts';
import { isThisUser } from './principal.ts';
import { strictest, type RuleSettings } from './rule-intersection.ts';
import type { Revival } from './restored-session.ts';
import { Rules } from './rules.ts';
import type { RecalledSession, SessionArchive } from './services.ts';
import type { EngineParts, SessionHost } from './session-host.ts';
import type { SessionSeed } from './session-types.ts';
import type { Session } from './session.ts';

const NOTHING = { events: [], lastEventId: 0, droppedThrough: 0, requests: [], messages: [], grants: [] };

/** Sessions that exist only in the store: recalled on demand. */
export interface SessionList {
  readonly sessions: Session[];
  /** Ids of sessions that are stored, but cannot be read. */
  readonly unreadable: readonly string[];
}

export class SessionRecall {
  readonly #parts: EngineParts;
  readonly #host: SessionHost;
  readonly #underWay = new Map<string, Promise<Session | undefined>>();

  readonly #mirrors: Mirrors | undefined;

  constructor(parts: EngineParts, host: SessionHost) {
    this.#parts = parts;
    this.#host = host;
    const { clock, others, log } = parts.services;
    this.#mirrors =
      others &&
      new Mirrors({
        clock,
        others,
        approvals: parts.approvals,
        make: async (seen, sendAnswer) => host.createElsewhere(await this.#seed(seen), seen.row.runsOn.hub, sendAnswer),
        restored: async (seen) => (await this.#revival(seen)).restored,
        canRun: (row) =>
          this.checkCanRun(row).then(
            () => true,
            () => false,
          ),
        debug: (line) => log('debug', line),
      });
  }

  /** Those that run elsewhere and were asked for here. */
  get elsewhere(): Session[] {
    return this.#mirrors?.all ?? [];
  }

  /** One that runs elsewhere, as it was at the last look. */
  peekElsewhere(id: string): Session | undefined {
    return this.#mirrors?.peek(id);
  }

  close(): void {
    this.#mirrors?.close();
  }

  /** The session, recalled from the store if necessary. */
  async recall(id: string): Promise<Session | undefined> {
    const known = this.#parts.registry.find(id);
    const { archive } = this.#parts.services;
    if (known || !archive) return known;
    const elsewhere = await this.#mirrors?.find(id);
    if (elsewhere) return elsewhere;
    const underWay = this.#underWay.get(id);
    if (underWay) return underWay;
    const recalling = this.#recall(id, archive).finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, recalling);
    return recalling;
  }

  async #recall(id: string, archive: SessionArchive): Promise<Session | undefined> {
    const { registry, approvals } = this.#parts;
    await registry.departed(id);
    const recalled = await archive.recall(id);
    if (!recalled) return undefined;
    const session = await this.#revived(recalled);
    this.#host.register(session);
    session.takeUp();
    for (const request of session.requests) approvals.requested(session, request);
    return session;
  }

  /** Those that are only in the store, as far as a list shows them. */
  async list(principal: string | undefined, limit: number): Promise<SessionList> {
    const { services, registry } = this.#parts;
    const stored = await services.archive?.list({ limit, ...(principal !== undefined && { principal }) });
    const unreadable = [...(stored?.unreadable ?? [])];
    const unknown = (stored?.items ?? []).filter(({ id }) => !registry.find(id));
    const sessions = await Promise.all(
      unknown.map((row) =>
        this.#revived({ row, ...NOTHING }).catch((error: unknown) => {
          services.log('warn', `session ${row.id} is stored, but cannot be read: ${messageOf(error)}`);
          unreadable.push(row.id);
        }),
      ),
    );
    return { sessions: sessions.filter((session) => session !== undefined), unreadable };
  }

  /** Throws if a session of another hub could not be continued here, or if this hub's rules forbid it. */
  async checkCanRun(row: StoredSession): Promise<void> {
    const session = await this.#revived({ row, ...NOTHING });
    this.#parts.rules.checkMayDrive(session);
    this.#host.checkDirectories(session);
    if (!session.movable)
      throw new DomainError('UNAVAILABLE', `Session ${row.id} works in a directory that is not shared with this hub.`);
  }

  /** Delivers decisions on sessions that lacked their variables, if this connection of their owner has them. */
  async handOverWaiting({ principal, rules }: ConnectedClient): Promise<void> {
    const { services, registry, connections } = this.#parts;
    if (!services.archive || !rules) return;
    const own = registry.all.filter(
      ({ owner, continuity }) => owner.id === principal.id && continuity.handover.length > 0,
    );
    const stored = await services.archive.list({ principal: principal.id, limit: MAX_CANDIDATES });
    const forgotten = stored.items.filter(({ id, state }) => !registry.find(id) && hasHandover(state));
    await Promise.all(forgotten.map(({ id }) => this.recall(id).catch(() => undefined)));
    // A session that runs on another hub is that hub's to continue.
    const recalled = forgotten.flatMap(({ id }) => registry.find(id) ?? []);
    for (const session of [...own, ...recalled])
      if (session.atRest && connections.rulesFor(session)) this.#host.handOver(session);
  }

  async #revived(recalled: RecalledSession): Promise<Session> {
    const seed = await this.#seed(recalled);
    const worktree = recalled.row.workspace.type === 'worktree' ? await this.#parts.worktrees.find(seed.id) : undefined;
    return this.#host.create({ ...seed, worktree });
  }

  async #revival(recalled: RecalledSession): Promise<Revival> {
    const { revive } = await import('./restored-session.ts');
    return revive(recalled, this.#parts.services.baseEnv);
  }

  async #seed(recalled: RecalledSession): Promise<SessionSeed> {
    const { services, settings: own, rules: operator } = this.#parts;
    const { settings, ...seed } = await this.#revival(recalled);
    // All others named theirs, or used that of a connection that is gone.
    const cwd = isThisUser(seed.owner) ? operator.policy.directories.own : undefined;
    const access = await accessOf(seed.owner, this.#parts.worktrees);
    const rules = new Rules({ settings: { ...own, ...presentRules(own, settings) }, cwd, access }, services);
    return { ...seed, options: withinCeilings(seed.options, rules.settings), rules };
  }
}

const MAX_CANDIDATES = 100;

function hasHandover({ handover }: Readonly<Record<string, unknown>>): boolean {
  return Array.isArray(handover) && handover.length > 0;
}

/** Its original rules and the current ones: the operator may have added limits since. */
export function presentRules(own: Settings, stored: Partial<Settings>): RuleSettings {
  // Unset values are not stored.
  return strictest(own, { ...own, allowedDirs: undefined, maxTurns: undefined, maxBudgetUsd: undefined, ...stored });
}

function withinCeilings(options: SessionOptions, { maxTurns, maxBudgetUsd }: Settings): SessionOptions {
  return {
    ...options,
    ...(maxTurns !== undefined && { maxTurns: Math.min(maxTurns, options.maxTurns ?? maxTurns) }),
    ...(maxBudgetUsd !== undefined && { maxBudgetUsd: Math.min(maxBudgetUsd, options.maxBudgetUsd ?? maxBudgetUsd) }),
  };
}
