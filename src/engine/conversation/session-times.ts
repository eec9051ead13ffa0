import { msBetween, type Clock, type Instant } from '../clock.ts';

/** Times of day. */
export interface RestoredTimes {
  readonly createdAt: number;
  readonly lastActiveAt: number;
  readonly archivedAt?: number | undefined;
}

/** When things happened to a session: the time of day for display, monotonic spans for decisions. */
export class SessionTimes {
  #createdAt: number;
  readonly #clock: Clock;
  #lastActiveAt: number;
  #archivedAt: number | undefined;
  #activeSince: Instant;
  #workingSince: Instant;
  /** The last sign of life from Claude Code since the call started. */
  #lastHeard: Instant | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#createdAt = clock.wallTime();
    this.#lastActiveAt = this.#createdAt;
    this.#activeSince = clock.instant();
    this.#workingSince = this.#activeSince;
  }

  /** For a session from another process. Its idle time is counted from now. */
  restore({ createdAt, lastActiveAt, archivedAt }: RestoredTimes): void {
    this.#createdAt = createdAt;
    this.#lastActiveAt = lastActiveAt;
    this.#archivedAt = archivedAt;
  }

  /** Time of day. */
  get createdAt(): number {
    return this.#createdAt;
  }

  /** Time of day. */
  get lastActiveAt(): number {
    return this.#lastActiveAt;
  }

  /** Time of day, if it was put away and nothing was asked of it since. */
  get archivedAt(): number | undefined {
    return this.#archivedAt;
  }

  /** Since something last happened; used for parking and dropping. */
  get restedMs(): number {
    return this.#msSince(this.#activeSince);
  }

  /** Since the call began. */
  get workedMs(): number {
    return this.#msSince(this.#workingSince);
  }

  get quietMs(): number {
    return Math.round(this.#msSince(this.#lastHeard ?? this.#workingSince));
  }

  /** Nothing heard from Claude Code since the call started. */
  get isSilent(): boolean {
    return this.#lastHeard === undefined;
  }

  /** Idle time is counted from here. */
  active(): void {
    this.#lastActiveAt = this.#clock.wallTime();
    this.#activeSince = this.#clock.instant();
  }

  /** Returns whether that changed anything. */
  archive(archived: boolean): boolean {
    if ((this.#archivedAt !== undefined) === archived) return false;
    this.#archivedAt = archived ? this.#clock.wallTime() : undefined;
    return true;
  }

  callBegins(): void {
    this.active();
    this.#archivedAt = undefined;
    this.#workingSince = this.#activeSince;
    this.#lastHeard = undefined;
  }

  /** A working session is active for as long as it is heard from; output at rest does not extend the idle time. */
  heard({ atRest }: { readonly atRest: boolean }): void {
    this.#lastHeard = this.#clock.instant();
    if (!atRest) this.#lastActiveAt = this.#clock.wallTime();
  }

  #msSince(instant: Instant): number {
    return msBetween(instant, this.#clock.instant());
  }
}
