import { sizeOf } from '../../engine/conversation/event-log.ts';
import type { FeedEntry } from '../../schema/store.ts';
import type { FeedPage, Store } from '../../store/contract.ts';
import { follow } from '../../store/wake-ups.ts';

const MAX_ENTRIES = 2_000;
const MAX_BYTES = 8 * 1024 * 1024;
/** A page takes a few milliseconds to parse and to serialise, in which nobody else is served. */
const PAGE_BYTES = 256 * 1024;
const RETRY_MS = 1_000;

interface Held {
  readonly entry: FeedEntry;
  readonly bytes: number;
}

/**
 * The end of the store's feed, read once for all followers. Readers that keep up read from memory, those that fall
 * behind read from the store at their own pace: no one waits for anyone, and nothing is queued.
 */
export class FeedTail {
  readonly #store: Pick<Store, 'feed' | 'subscribe'>;
  readonly #report: (error: unknown) => void;
  readonly #waiting = new Set<() => void>();
  #held: Held[] = [];
  #bytes = 0;
  /** Everything after this position is held. */
  #from = 0;
  #last = 0;
  #readers = 0;
  #stop: AbortController | undefined;
  #starting: Promise<void> | undefined;

  constructor(store: Pick<Store, 'feed' | 'subscribe'>, report: (error: unknown) => void) {
    this.#store = store;
    this.#report = report;
  }

  /** Follows the feed while there is a reader. Returns the newest position and a function to leave. */
  async enter(): Promise<{ newest: number; leave: () => void }> {
    this.#readers++;
    const leave = (): void => {
      if (--this.#readers > 0) return;
      this.#stop?.abort();
      this.#stop = undefined;
      this.#starting = undefined;
    };
    try {
      await (this.#starting ??= this.#start());
      return { newest: await this.newest(), leave };
    } catch (error) {
      leave();
      throw error;
    }
  }

  async newest(): Promise<number> {
    return (await this.#store.feed({ after: Number.MAX_SAFE_INTEGER, limit: 1 })).last;
  }

  /** What comes after a position; empty if there is nothing yet. */
  async read(after: number, limit: number): Promise<FeedPage> {
    if (this.isBehind(after)) return this.#store.feed({ after, limit, maxBytes: PAGE_BYTES });
    const entries: FeedEntry[] = [];
    let bytes = 0;
    const first = this.#indexAfter(after);
    for (const { entry, bytes: size } of this.#held.slice(first, first + limit)) {
      bytes += size;
      if (bytes > PAGE_BYTES && entries.length > 0) break;
      entries.push(entry);
    }
    return { entries, last: entries.at(-1)?.seq ?? Math.max(after, this.#last) };
  }

  /** Whether what comes after this position has to be read from the store. */
  isBehind(after: number): boolean {
    return after < this.#from;
  }

  /** Index of the first entry after this position; they are in order. */
  #indexAfter(position: number): number {
    let low = 0;
    let high = this.#held.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#held[middle]?.entry.seq ?? 0) <= position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Resolves when there may be something after this position, or on the signal. */
  async changed(after: number, signal: AbortSignal): Promise<void> {
    if (this.#last > after || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener('abort', wake);
    });
  }

  async #start(): Promise<void> {
    const stop = new AbortController();
    this.#stop = stop;
    this.#held = [];
    this.#bytes = 0;
    this.#from = this.#last = await this.newest();
    void this.#follow(stop.signal);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        for await (const { entries, last } of follow(this.#store, this.#last, signal)) this.#take(entries, last);
      } catch (error) {
        this.#report(error);
        await pause(RETRY_MS, signal);
      }
    }
  }

  #take(entries: readonly FeedEntry[], last: number): void {
    for (const entry of entries) {
      const bytes = sizeOf(entry.row);
      this.#held.push({ entry, bytes });
      this.#bytes += bytes;
    }
    while (this.#held.length > MAX_ENTRIES || (this.#bytes > MAX_BYTES && this.#held.length > 0)) {
      const oldest = this.#held.shift();
      this.#bytes -= oldest?.bytes ?? 0;
      this.#from = oldest?.entry.seq ?? this.#from;
    }
    this.#last = last;
    for (const wake of [...this.#waiting]) wake();
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    timer.unref();
    signal.addEventListener('abort', done);
  });
}
