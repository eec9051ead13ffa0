import { DomainError } from '../../errors/errors.ts';
import type { Session } from './session.ts';

/** The right to one process. Its launch names the session, so that it is not counted twice. */
export interface Place {
  session: Session | undefined;
}

export interface Places {
  /** Including those that an idle session would give up. */
  readonly free: number;
  readonly max: number;
}

interface Leaving {
  readonly session: Session;
  vacate(): Promise<void>;
}

/** The sessions this server knows, and how many of them may have a process. */
export class Registry {
  readonly #sessions = new Map<string, Session>();
  readonly #departing = new Map<string, { readonly session: Session; readonly gone: Promise<void> }>();
  readonly #maxProcesses: number;
  readonly #onForgotten: (session: Session) => void;
  /** Launches in progress. */
  readonly #places = new Set<Place>();
  /** Sessions whose processes make room for launches that wait for them to end. */
  readonly #handingOver = new Set<Session>();

  constructor(maxProcesses: number, onForgotten: (session: Session) => void = () => undefined) {
    this.#maxProcesses = maxProcesses;
    this.#onForgotten = onForgotten;
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

  /** Removes a session and ends its process. */
  async forget(session: Session): Promise<void> {
    this.#sessions.delete(session.id);
    const gone = session.release();
    const departure = { session, gone };
    this.#departing.set(session.id, departure);
    this.#onForgotten(session);
    try {
      await gone;
    } finally {
      if (this.#departing.get(session.id) === departure) this.#departing.delete(session.id);
    }
  }

  /** Anyone resuming the transcript of a session that was just dropped must wait for its process to end. */
  async departed(id: string): Promise<void> {
    await this.#departing.get(id)?.gone;
  }

  hasProcess(pid: number): boolean {
    return this.all.some((session) => session.process.pid === pid);
  }

  /**
   * Runs a launch in its own slot. The slot is taken before anything is awaited, so that concurrent calls never take
   * the same one; if none is free, it is handed over by a process that is closing or can be parked.
   */
  withPlace<T>(launch: (place: Place) => Promise<T>): Promise<T> {
    const place: Place = { session: undefined };
    return this.withPlaces([place], () => launch(place));
  }

  /** The same for launches that belong together: all of them get a slot, or none does. */
  async withPlaces<T>(places: readonly Place[], launch: () => Promise<T>): Promise<T> {
    const { free, max } = this.places;
    if (places.length > 1 && places.length > free)
      throw new DomainError(
        'TOO_MANY_SESSIONS',
        `${String(places.length)} sessions are to start together, and there is room for ${String(free)}. Start fewer, or wait until others have finished (the operator sets CLAUDE_CODE_MCP_MAX_SESSIONS, now ${String(max)}).`,
      );
    const leaving: Leaving[] = [];
    try {
      for (const place of places) leaving.push(...this.#take(place));
      await Promise.all(leaving.map((one) => one.vacate()));
      return await launch();
    } finally {
      for (const place of places) this.#places.delete(place);
      for (const { session } of leaving) this.#handingOver.delete(session);
    }
  }

  get places(): Places {
    const max = this.#maxProcesses;
    const handedOver = this.#withProcess().filter((one) => one.parkable && !this.#handingOver.has(one)).length;
    return { free: Math.max(0, max - this.#occupied() + handedOver), max };
  }

  /** Returns who has to leave first, if anyone has. */
  #take(place: Place): Leaving[] {
    if (this.#occupied() < this.#maxProcesses) {
      this.#places.add(place);
      return [];
    }
    const leaving = this.#findLeaving();
    if (!leaving) {
      throw new DomainError(
        'TOO_MANY_SESSIONS',
        `All ${String(this.#maxProcesses)} sessions are busy. Wait for one to finish, or stop one (the operator sets CLAUDE_CODE_MCP_MAX_SESSIONS).`,
      );
    }
    this.#handingOver.add(leaving.session);
    this.#places.add(place);
    return [leaving];
  }

  /** Whose slot is or can be given up: one that is closing anyway, else the longest idle. */
  #findLeaving(): Leaving | undefined {
    const candidates = this.#withProcess().filter((session) => !this.#handingOver.has(session));
    const closing = candidates.find((session) => session.process.closing);
    if (closing) return { session: closing, vacate: () => closing.process.closed() };
    const idle = candidates
      .filter((session) => session.parkable)
      .sort(
        (a, b) =>
          Number(a.isHardToReplace) - Number(b.isHardToReplace) ||
          b.conversation.times.restedMs - a.conversation.times.restedMs,
      )[0];
    return idle && { session: idle, vacate: () => idle.park() };
  }

  /** A process whose slot is handed over counts towards the launch that waits for it to end. */
  #occupied(): number {
    const launching = new Set([...this.#places].map(({ session }) => session));
    const others = this.#withProcess().filter((session) => !launching.has(session) && !this.#handingOver.has(session));
    return this.#places.size + others.length;
  }

  #withProcess(): Session[] {
    const departing = [...this.#departing.values()].map(({ session }) => session);
    return [...new Set([...this.all, ...departing])].filter((session) => session.holdsPlace);
  }
}
