import { DomainError } from '../../errors/errors.ts';
import type { CommandKind, CommandOf } from '../../schema/commands.ts';
import type { SessionRecord } from '../../schema/records.ts';
import type { ConnectedClient } from '../requests/approvals.ts';
import type { CommandedBy, Driven, Outcomes } from './elsewhere.ts';
import { canMove } from './mobility.ts';
import { LOCAL } from '../rules/access.ts';
import type { Places } from './registry.ts';
import type { RemoteSession } from './remote-session.ts';
import type { Rules } from '../rules/rules.ts';
import type { EngineParts } from './session-host.ts';
import type { SessionRecall } from './session-recall.ts';
import type { Session } from './session.ts';

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
  get elsewhere(): RemoteSession[] {
    return this.#recall.elsewhere;
  }

  /** A movable session runs on the hub with the most free slots; values that only its client has keep it here. */
  async place(command: CommandOf<'start'>, rules: Rules, by: ConnectedClient | undefined): Promise<Driven | undefined> {
    const { settings, services } = this.#parts;
    const { options } = command;
    const portable = { options, rules, worktree: options.workspace };
    if (rules.ownVariables.length > 0 || !canMove(portable, settings.sharedWorkspace)) return undefined;
    return services.others?.start(command, commandedBy(by, rules));
  }

  /** One that another hub runs, as it was at the last look. */
  peekElsewhere(id: string): RemoteSession | undefined {
    return this.#recall.peekElsewhere(id);
  }

  /** One that another hub runs, as it is stored now. */
  findElsewhere(id: string): Promise<RemoteSession | undefined> {
    return this.#recall.findElsewhere(id);
  }

  /** Has something done to a session that runs elsewhere. */
  carryOut<Kind extends Exclude<CommandKind, 'start'>>(
    { hub }: { readonly hub: string },
    command: CommandOf<Kind>,
    by: ConnectedClient,
  ): Promise<Outcomes[Kind]> {
    const { services, rules } = this.#parts;
    if (!services.others) throw new DomainError('INTERNAL', 'There are no other hubs.');
    return services.others.carryOut<Kind>(hub, command, commandedBy(by, by.rules ?? rules));
  }

  // ── its own ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** How many processes could be started here. */
  get places(): Places {
    return this.#parts.registry.places;
  }

  /** Those that another hub takes over when this one goes silent. */
  get lent(): Session[] {
    return this.#parts.registry.all.filter(({ mobility }) => mobility.lent);
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
  checkCanRun(record: SessionRecord): Promise<void> {
    return this.#recall.checkCanRun(record);
  }
}

function commandedBy(by: ConnectedClient | undefined, { settings }: Rules): CommandedBy {
  return { principal: by?.principal ?? LOCAL, settings };
}
