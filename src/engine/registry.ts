import { DomainError } from '../errors/errors.ts';
import type { Session } from './session.ts';

/** The sessions this server knows, and how many of them may have a process. */
export class Registry {
  readonly #sessions = new Map<string, Session>();
  readonly #departing = new Map<string, Promise<void>>();
  readonly #maxProcesses: number;
  /** Launches under way: their sessions have no process yet, but a place. */
  #launching = 0;

  constructor(maxProcesses: number) {
    this.#maxProcesses = maxProcesses;
  }

  get all(): Session[] {
    return [...this.#sessions.values()];
  }

  get size(): number {
    return this.#sessions.size;
  }

  find(id: string): Session | undefined {
    return this.#sessions.get(id);
  }

  add(session: Session): void {
    this.#sessions.set(session.id, session);
  }

  /** Takes a session out and ends its process. */
  async forget(session: Session): Promise<void> {
    this.#sessions.delete(session.id);
    const gone = session.dispose();
    this.#departing.set(session.id, gone);
    try {
      await gone;
    } finally {
      if (this.#departing.get(session.id) === gone) this.#departing.delete(session.id);
    }
  }

  /** Whoever takes up the transcript of a session that was just forgotten has to wait for the end of its process. */
  async departed(id: string): Promise<void> {
    await this.#departing.get(id);
  }

  hasProcess(pid: number): boolean {
    return this.all.some((session) => session.pid === pid);
  }

  /** Runs a launch on a place of its own, for which the longest idle process may have to be parked. */
  async withPlace<T>(launch: () => Promise<T>): Promise<T> {
    await this.#makeRoom();
    this.#launching++;
    try {
      return await launch();
    } finally {
      this.#launching--;
    }
  }

  async #makeRoom(): Promise<void> {
    while (this.#occupied() >= this.#maxProcesses) {
      const longestIdle = this.all.filter((session) => session.parkable).sort((a, b) => b.restedMs - a.restedMs)[0];
      if (!longestIdle) {
        throw new DomainError(
          'TOO_MANY_SESSIONS',
          `All ${String(this.#maxProcesses)} sessions are at work. Wait for one, or stop one (the operator sets CLAUDE_CODE_MCP_MAX_SESSIONS).`,
        );
      }
      await longestIdle.park();
    }
  }

  #occupied(): number {
    return this.#launching + this.all.filter((session) => session.hasProcess && !session.launching).length;
  }
}
