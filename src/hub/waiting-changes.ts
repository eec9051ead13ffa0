import { sizeOf } from '../engine/conversation/event-log.ts';
import type { Change, StoredEvent } from '../schema/store.ts';

/** Searched for changes that are no longer needed from here on, and again whenever the remainder has doubled. */
const FIRST_LOOK = { count: 2_000, bytes: 16_000_000 };

/**
 * Changes that the store has not accepted yet, in order. However long the store is unavailable, no more events are
 * queued than the session itself still has; requests, decisions and results are all queued.
 */
export class WaitingChanges {
  #changes: Change[] = [];
  #bytes = 0;
  #lookAt = FIRST_LOOK;
  /** The newest event that a session no longer keeps. */
  readonly #droppedThrough: (sessionId: string) => number;

  constructor(droppedThrough: (sessionId: string) => number) {
    this.#droppedThrough = droppedThrough;
  }

  get length(): number {
    return this.#changes.length;
  }

  push(...changes: readonly Change[]): void {
    this.#changes.push(...changes);
  }

  pushEvent(event: StoredEvent): void {
    this.#changes.push({ type: 'event.append', event });
    this.#bytes += sizeOf(event.data);
    if (this.#changes.length > this.#lookAt.count || this.#bytes > this.#lookAt.bytes) this.#dropForgotten();
  }

  /** The oldest, at most this many. */
  take(limit: number): Change[] {
    const taken = this.#changes.splice(0, limit);
    if (this.#changes.length === 0) {
      this.#bytes = 0;
      this.#lookAt = FIRST_LOOK;
    }
    return taken;
  }

  #dropForgotten(): void {
    const incomplete = new Set<string>();
    const left: Change[] = [];
    let bytes = 0;
    for (const change of this.#changes) {
      if (change.type !== 'event.append') {
        left.push(change);
        continue;
      }
      const { sessionId, id, keep, data } = change.event;
      if (!keep && id <= this.#droppedThrough(sessionId)) {
        incomplete.add(sessionId);
        continue;
      }
      left.push(incomplete.delete(sessionId) ? { ...change, afterDropped: true } : change);
      bytes += sizeOf(data);
    }
    this.#changes = left;
    this.#bytes = bytes;
    this.#lookAt = {
      count: Math.max(FIRST_LOOK.count, 2 * left.length),
      bytes: Math.max(FIRST_LOOK.bytes, 2 * bytes),
    };
  }
}
