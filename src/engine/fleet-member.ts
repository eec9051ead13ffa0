import { DomainError } from '../errors/errors.ts';
import type { StoredSession } from '../schema/store.ts';
import type { ConnectedClient } from './approvals.ts';
import type { DrivenSession, Order, OrderedBy, OrderOutcomes } from './elsewhere.ts';
import { canMove } from './mobility.ts';
import { LOCAL } from './principal.ts';
import type { Places } from './registry.ts';
import type { Rules } from './rules.ts';
import { unknownSession } from './session-errors.ts';
import type { EngineParts } from './session-host.ts';
import type { SessionRecall } from './session-recall.ts';
import type { Session } from './session.ts';
import type { StartRequest } from './start-request.ts';

/** What an engine does as a member of a group that shares a store. */
export class FleetMember {
  readonly #parts: EngineParts;
  readonly #recall: SessionRecall;

  constructor(parts: EngineParts, recall: SessionRecall) {
    this.#parts = parts;
    this.#recall = recall;
  }

  // ── sessions of the others ─────────────────────────────────────────────────────────────────────────────────────

  /** Those that run elsewhere and were asked for here. */
  get elsewhere(): Session[] {
    return this.#recall.elsewhere;
  }

  /** A movable session runs on the hub with the most free slots; values that only its client has keep it here. */
  async place(
    request: Omit<StartRequest, 'by' | 'id'>,
    rules: Rules,
    by: ConnectedClient | undefined,
  ): Promise<DrivenSession | undefined> {
    const { settings, services } = this.#parts;
    const { options } = request;
    const portable = { options, rules, worktree: options.workspace };
    if (rules.ownVariables.length > 0 || !canMove(portable, settings.sharedWorkspace)) return undefined;
    return services.others?.start(request, orderedBy(by, rules));
  }

  /** Has something done to a session that runs elsewhere. */
  carryOut<Kind extends Exclude<Order['kind'], 'start'>>(
    { id, elsewhere = '' }: Session,
    order: Extract<Order, { kind: Kind }>,
    by: ConnectedClient,
  ): Promise<OrderOutcomes[Kind]> {
    const { services, rules } = this.#parts;
    if (!services.others) throw new DomainError('INTERNAL', 'There are no other hubs.');
    return services.others.carryOut<Kind>({ id, hub: elsewhere }, order, orderedBy(by, by.rules ?? rules));
  }

  /** The session that an order was about or created. */
  async driven({ sessionId, warnings }: DrivenSession): Promise<Session> {
    const session = await this.#recall.recall(sessionId);
    if (!session) throw unknownSession(sessionId);
    session.warnings.push(...warnings);
    return session;
  }

  // ── its own ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** How many processes could be started here. */
  get places(): Places {
    return this.#parts.registry.places;
  }

  /** Those that another hub takes over when this one goes silent. */
  get lent(): Session[] {
    return this.#parts.registry.all.filter(({ lent }) => lent);
  }

  /** Another hub may have them by now, or soon: none of their processes continues here. Requests stay open. */
  async loseContact(): Promise<void> {
    await Promise.all(this.lent.map((session) => session.loseContact()));
  }

  /** Another hub has it. Its process ends; nothing is written for it, and only subscribers of the stream are told. */
  async disown(session: Session): Promise<void> {
    const ended = session.disown();
    await this.#parts.registry.forget(session);
    await ended;
  }

  /** Throws if this hub could not, or by its rules may not, continue the session. */
  checkCanRun(row: StoredSession): Promise<void> {
    return this.#recall.checkCanRun(row);
  }
}

function orderedBy(by: ConnectedClient | undefined, { settings }: Rules): OrderedBy {
  return { principal: by?.principal ?? LOCAL, settings };
}
