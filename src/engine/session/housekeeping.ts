import type { Clock } from '../clock.ts';
import type { Registry } from './registry.ts';
import type { Session } from './session.ts';

export interface HousekeepingRules {
  parkAfterMs: number;
  sessionTtlMs: number;
  runningSessionMaxMs: number;
  cleanupIntervalMs: number;
}

/** Parks, drops and stops sessions whose time has come. Ticks only while there are sessions. */
export class Housekeeping {
  readonly #registry: Registry;
  readonly #rules: HousekeepingRules;
  readonly #clock: Clock;
  readonly #detach: (session: Session) => void;
  #cancelTimer: (() => void) | undefined;

  /** `detach` releases the process of a session that only waits for answers. */
  constructor(
    registry: Registry,
    rules: HousekeepingRules,
    clock: Clock,
    detach: (session: Session) => void = () => undefined,
  ) {
    this.#detach = detach;
    this.#registry = registry;
    this.#rules = rules;
    this.#clock = clock;
  }

  /** To be called when a session has been added. */
  wake(): void {
    this.#cancelTimer ??= this.#clock.after(this.#rules.cleanupIntervalMs, () => {
      this.#cancelTimer = undefined;
      this.sweep();
      if (this.#registry.size > 0) this.wake();
    });
  }

  stop(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  sweep(): void {
    for (const session of this.#registry.all) this.#tend(session);
  }

  #tend(session: Session): void {
    // A start has a time limit of its own.
    if (session.process.starting) return;
    if (session.keepsRequests && session.requests.length > 0) {
      const { quietMs } = session.conversation.times;
      if (session.detachable && !session.isHardToReplace && quietMs >= this.#rules.parkAfterMs) this.#detach(session);
      return;
    }
    if (!session.atRest) {
      if (session.conversation.times.workedMs < this.#rules.runningSessionMaxMs) return;
      void session.stop(`it worked for longer than ${String(this.#rules.runningSessionMaxMs)} ms`, 'cleanup');
      return;
    }
    const { restedMs } = session.conversation.times;
    if (restedMs >= this.#rules.sessionTtlMs && session.conversation.backgroundTasks === 0 && !session.inUse) {
      void this.#registry.forget(session);
    } else if (restedMs >= this.#rules.parkAfterMs && session.parkable && !session.isHardToReplace) {
      void session.park();
    }
  }
}
