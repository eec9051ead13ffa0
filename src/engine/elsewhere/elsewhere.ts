/** Sessions that other hubs on the same store run: how they are found and read here, and how commands reach them. */

import type { Settings } from '../../config/load-settings.ts';
import type { Command, CommandKind, CommandOf } from '../../schema/commands.ts';
import type { SessionRecord } from '../../schema/records.ts';
import type { DiffPage } from '../../workspace/report/compare.ts';
import type { DiscardOutcome } from '../../workspace/worktree/discard.ts';
import type { Asked } from '../requests/own-actions.ts';
import { type Principal, LOCAL } from '../rules/access.ts';
import type { RewindOutcome } from '../session/session-rewinds.ts';
import type { Stale } from '../../schema/results.ts';
import type { AppliedWork } from '../session/work-words.ts';
import type { RecalledSession } from '../ports.ts';
import { DomainError } from '../../errors/errors.ts';
import type { ConnectedClient } from '../requests/approvals.ts';
import { canMove } from '../session/mobility.ts';
import type { Places } from '../session/registry.ts';
import type { Rules } from '../rules/rules.ts';
import type { EngineParts } from '../session/session-host.ts';
import type { SessionRecall } from './session-recall.ts';
import type { Session } from '../session/session.ts';

/** What comes back from a command, as data. */
export interface Outcomes {
  start: Started;
  reply: Driven;
  respond: Driven;
  form: Driven;
  examine: { readonly stale?: Stale };
  interrupt: boolean;
  rename: boolean;
  archive: boolean;
  withdraw: boolean;
  cancel: boolean;
  rewind: RewindOutcome | Asked;
  diff: DiffPage;
  apply: AppliedWork | Asked;
  discard: DiscardOutcome | Asked;
}

/** The session that a command was about or created, and what the caller should know. */
export interface Driven {
  readonly sessionId: string;
  readonly warnings: readonly string[];
}

/** A start of several attempts names all of them; the first is also its session. */
export interface Started extends Driven {
  readonly attempts?: readonly Driven[];
}

/** Each warning is told once. */
export function driven({ id, warnings }: { readonly id: string; readonly warnings: string[] }): Driven {
  return { sessionId: id, warnings: warnings.splice(0) };
}

/** Who gave a command, and under which rules: they apply wherever it is carried out. */
export interface CommandedBy {
  readonly principal: Principal;
  readonly settings: Settings;
}

/** What is stored about a session that runs elsewhere. */
export interface SeenElsewhere extends Omit<RecalledSession, 'messages' | 'grants' | 'ranElsewhere'> {
  /** The hub that runs it. */
  readonly hub: string;
  /** Position of its last change in the feed. */
  readonly position: number;
  /** Its hub is unavailable and it can move, but not to this hub. */
  readonly isForOthers: boolean;
}

/** What was seen of it earlier. */
export interface Known {
  readonly lastEventId: number;
  readonly position: number;
  readonly hub: string;
  /** This hub may take it over when the other one is gone. */
  readonly movable: boolean;
}

export type CanRun = (record: SessionRecord) => Promise<boolean>;

export interface OtherHubs {
  /** Whose session it is and, if another hub runs it and it cannot be taken over, which: told from one row. */
  locate(id: string, canRun: CanRun): Promise<{ readonly owner: string; readonly hub?: string } | undefined>;
  /**
   * A session that runs elsewhere and cannot be taken over; `canRun` tells whether this hub could continue it. The
   * events are those after `lastEventId`; nothing has changed if its position is still `position`.
   */
  see(id: string, canRun: CanRun, known?: Known): Promise<SeenElsewhere | 'unchanged' | undefined>;
  /** Which of these have changed since, or can be taken over now. */
  changed(known: ReadonlyMap<string, Known>): Promise<string[]>;
  /** Calls back when something was stored. */
  onStored(listener: () => void): () => void;
  /** Has a command carried out, once, by the hub that runs the session, last seen on `hub`. */
  carryOut<Kind extends Exclude<CommandKind, 'start'>>(
    hub: string,
    command: CommandOf<Kind>,
    by: CommandedBy,
  ): Promise<Outcomes[Kind]>;
  /** Starts a movable session on the hub with the most free slots. Undefined: start it here. */
  start(command: Extract<Command, { kind: 'start' }>, by: CommandedBy): Promise<Driven | undefined>;
}

/** What an engine does as a member of a group that shares a store. */
export class FleetMember {
  readonly #parts: EngineParts;
  readonly #recall: SessionRecall;

  constructor(parts: EngineParts, recall: SessionRecall) {
    this.#parts = parts;
    this.#recall = recall;
  }

  // ── sessions of the others ─────────────────────────────────────────────────────────────────────────────────────

  /** A movable session runs on the hub with the most free slots; values that only its client has keep it here. */
  async place(command: CommandOf<'start'>, rules: Rules, by: ConnectedClient | undefined): Promise<Driven | undefined> {
    const { settings, services } = this.#parts;
    const { options } = command;
    const portable = { options, rules, worktree: options.workspace };
    if (rules.ownVariables.length > 0 || !canMove(portable, settings.sharedWorkspace)) return undefined;
    return services.others?.start(command, commandedBy(by, rules));
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

  /** Runs a stored session here from now on, if it does not run here yet. Returns false if there is none with this id. */
  async takeUp(id: string): Promise<boolean> {
    return (await this.#recall.recall(id)) !== undefined;
  }

  /** The ids of those that another hub takes over when this one goes silent. */
  get lent(): string[] {
    return this.#lent.map(({ id }) => id);
  }

  get #lent(): Session[] {
    return this.#parts.registry.all.filter(({ mobility }) => mobility.lent);
  }

  /** Another hub may have them by now, or soon: none of their processes continues here. Requests stay open. */
  async loseContact(): Promise<void> {
    await Promise.all(this.#lent.map((session) => session.loseContact()));
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
