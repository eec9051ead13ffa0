import type { Clock } from './clock.ts';

/** When things happened to a session. */
export class SessionTimes {
  readonly createdAt: number;
  readonly #clock: Clock;
  #lastActiveAt: number;
  #workingSince: number;
  #lastHeardAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.createdAt = clock.now();
    this.#lastActiveAt = this.createdAt;
    this.#workingSince = this.createdAt;
    this.#lastHeardAt = this.createdAt;
  }

  get lastActiveAt(): number {
    return this.#lastActiveAt;
  }

  get workingSince(): number {
    return this.#workingSince;
  }

  get lastHeardAt(): number {
    return this.#lastHeardAt;
  }

  get quietMs(): number {
    return this.#clock.now() - this.#lastHeardAt;
  }

  /** No word from Claude Code since the call began. */
  get heardNothing(): boolean {
    return this.#lastHeardAt === this.#workingSince;
  }

  /** Time for parking and forgetting counts from here. */
  active(): void {
    this.#lastActiveAt = this.#clock.now();
  }

  callBegins(): void {
    this.active();
    this.#workingSince = this.#lastActiveAt;
    this.#lastHeardAt = this.#lastActiveAt;
  }

  heard(): void {
    this.#lastHeardAt = this.#clock.now();
  }
}
