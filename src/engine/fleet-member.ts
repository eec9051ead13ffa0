import type { StoredSession } from '../schema/store.ts';
import type { Places, Registry } from './registry.ts';
import type { SessionRecall } from './session-recall.ts';
import type { Session } from './session.ts';

/** What an engine does as one of several that share a store. */
export class FleetMember {
  readonly #registry: Registry;
  readonly #recall: SessionRecall;

  constructor(registry: Registry, recall: SessionRecall) {
    this.#registry = registry;
    this.#recall = recall;
  }

  /** How many processes could be started here. */
  get places(): Places {
    return this.#registry.places;
  }

  /** Those that another hub takes over when this one falls silent. */
  get movable(): Session[] {
    return this.#registry.all.filter(({ movable }) => movable);
  }

  /** Another hub may have them by now, or soon: no process of theirs goes on here. What was asked stays open. */
  async loseTouch(): Promise<void> {
    await Promise.all(this.movable.map((session) => session.loseTouch()));
  }

  /** Another hub has it. Its process ends; nothing is written of it, and nobody but the readers of the stream is told. */
  async disown(session: Session): Promise<void> {
    const ended = session.disown();
    await this.#registry.forget(session);
    await ended;
  }

  /** Throws if this hub could not, or by its rules may not, continue the session. */
  checkCanRun(row: StoredSession): Promise<void> {
    return this.#recall.checkCanRun(row);
  }
}
