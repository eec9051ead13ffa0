import { DomainError } from '../errors/errors.ts';
import type { Session } from './session.ts';

/** The right to one process. Its launch says for which session, so that this one is not counted twice. */
export interface Place {
  session: Session | undefined;
}

export interface Places {
  /** Also those that a session at rest would hand over. */
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
  /** Of launches under way. */
  readonly #places = new Set<Place>();
  /** Sessions whose processes make room for launches that wait for their end. */
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

  /** Takes a session out and ends its process. */
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

  /** Whoever takes up the transcript of a session that was just forgotten has to wait for the end of its process. */
  async departed(id: string): Promise<void> {
    await this.#departing.get(id)?.gone;
  }

  hasProcess(pid: number): boolean {
    return this.all.some((session) => session.pid === pid);
  }

  /**
   * Runs a launch on a place of its own. The place is taken before anything is awaited, so that calls that come together
   * never take the same one; if none is free it is handed over by a process that is closing or may be parked.
   */
  async withPlace<T>(launch: (place: Place) => Promise<T>): Promise<T> {
    const place: Place = { session: undefined };
    const leaving = this.#take(place);
    try {
      await leaving?.vacate();
      return await launch(place);
    } finally {
      this.#places.delete(place);
      if (leaving) this.#handingOver.delete(leaving.session);
    }
  }

  get places(): Places {
    const max = this.#maxProcesses;
    const handedOver = this.#withProcess().filter((one) => one.parkable && !this.#handingOver.has(one)).length;
    return { free: Math.max(0, max - this.#occupied() + handedOver), max };
  }

  #take(place: Place): Leaving | undefined {
    if (this.#occupied() < this.#maxProcesses) {
      this.#places.add(place);
      return undefined;
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
    return leaving;
  }

  /** Whose place is or can be given up: one that closes anyway, else the longest idle. */
  #findLeaving(): Leaving | undefined {
    const candidates = this.#withProcess().filter((session) => !this.#handingOver.has(session));
    const closing = candidates.find((session) => session.closing);
    if (closing) return { session: closing, vacate: () => closing.closed() };
    const idle = candidates.filter((session) => session.parkable).sort((a, b) => b.restedMs - a.restedMs)[0];
    return idle && { session: idle, vacate: () => idle.park() };
  }

  /** A process whose place is handed over counts for the launch that waits for its end. */
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
