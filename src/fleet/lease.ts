import os from 'node:os';
import { z } from 'zod';
import type { FleetLease } from '../engine/ports.ts';
import { messageOf } from '../errors/errors.ts';
import type { HubRef, StoredLease } from '../schema/store.ts';
import { StoreConflict, type StoreLeases } from '../store/contract.ts';

export interface LeaseTimes {
  /** After this, others take over, by the store's clock. */
  readonly ttlMs: number;
  readonly renewMs: number;
  /** How long it counts as held after the last renewal. Whatever runs has ended before anyone else may start it. */
  readonly heldMs: number;
}

export const LEASE_TIMES: LeaseTimes = { ttlMs: 15_000, renewMs: 2_000, heldMs: 6_000 };

/** How soon a failed renewal is retried: a store that was unavailable for seconds must not cost the lease. */
const RETRY_MS = 500;

export interface LeaseOptions {
  readonly store: Pick<StoreLeases, 'renewLease'>;
  readonly by: HubRef;
  /** What other hubs need to know about this one. */
  readonly info: () => Record<string, unknown>;
  /** Whether any session could be taken over. */
  readonly isShared: boolean;
  readonly log: (level: 'debug' | 'warn', line: string) => void;
  /** A new incarnation of this hub has started. */
  readonly onFenced: () => void;
  readonly times?: LeaseTimes | undefined;
  /** Milliseconds that also pass while the machine sleeps or the process is stopped. */
  readonly elapsed?: () => number;
}

export interface LeaseListener {
  /** It is held for this long from now on. */
  onRenewed(heldForMs: number): void;
  /** Others may take over movable sessions. */
  onLost(): void;
  /** Renewed after it was lost: find out what others have taken in the meantime before starting anything. */
  onRegained(): Promise<void>;
}

/** Node's own monotonic clock stands still while a machine sleeps; other hubs do not wait for that. */
export const uptime = (): number => os.uptime() * 1000;

/**
 * This hub's right to the sessions that others could take over. It is renewed independently of all other work, and
 * counts from the start of the last successful renewal: after that the store may have given it to others.
 */
export class Lease implements FleetLease {
  readonly #options: LeaseOptions;
  readonly #times: LeaseTimes;
  readonly #elapsed: () => number;
  #renewedAt: number;
  #listener: LeaseListener | undefined;
  #isLost = false;
  #renewing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lossTimer: NodeJS.Timeout | undefined;
  #closed = false;
  #lastRenewal: 'accepted' | 'failed' = 'accepted';

  /** Just after it was acquired; `since` is when that began, by `elapsed`. */
  constructor(options: LeaseOptions, since: number) {
    this.#options = options;
    this.#times = options.times ?? LEASE_TIMES;
    this.#elapsed = options.elapsed ?? uptime;
    this.#renewedAt = since;
    this.#watchForLoss();
    this.#schedule(this.#times.renewMs);
  }

  get held(): boolean {
    return !this.#options.isShared || (!this.#isLost && this.#heldForMs > 0);
  }

  /** Whether the store accepts writes, as of the last renewal; it is not waited for longer than a lease is held. */
  get isRenewed(): boolean {
    return this.#closed || (this.#lastRenewal === 'accepted' && this.#heldForMs > 0);
  }

  listen(listener: LeaseListener): void {
    this.#listener = listener;
    if (this.#isLost) listener.onLost();
    // There is more to tell the others from now on.
    if (this.#renewing) return;
    clearTimeout(this.#timer);
    this.#schedule(0);
  }

  /** No more renewals from now on; resolves when none is in progress. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#lossTimer);
    await this.#renewing;
  }

  get #heldForMs(): number {
    return this.#renewedAt + this.#times.heldMs - this.#elapsed();
  }

  #schedule(ms: number): void {
    if (this.#closed) return;
    this.#timer = setTimeout(() => {
      const begun = this.#elapsed();
      this.#renewing = this.#renew(begun).then((isRenewed) => {
        this.#renewing = undefined;
        const pause = isRenewed ? this.#times.renewMs : Math.min(RETRY_MS, this.#times.renewMs);
        this.#schedule(Math.max(0, begun + pause - this.#elapsed()));
      });
    }, ms).unref();
  }

  /** Whether it was. */
  async #renew(begun: number): Promise<boolean> {
    const { store, by, info, log, onFenced } = this.#options;
    // A process that was stopped for a while may wake up here.
    if (!this.held) this.#lost();
    try {
      await store.renewLease(by, this.#times.ttlMs, info());
      if (this.#isLost) await this.#listener?.onRegained();
    } catch (error) {
      log('debug', `lease: ${messageOf(error)}`);
      this.#lastRenewal = 'failed';
      if (error instanceof StoreConflict && !this.#closed) {
        this.#closed = true;
        onFenced();
      }
      return false;
    }
    this.#lastRenewal = 'accepted';
    if (this.#closed) return true;
    this.#renewedAt = begun;
    if (this.#isLost) log('warn', 'reconnected to the store');
    this.#isLost = false;
    this.#watchForLoss();
    if (this.held) this.#listener?.onRenewed(this.#heldForMs);
    return true;
  }

  #watchForLoss(): void {
    clearTimeout(this.#lossTimer);
    if (!this.#options.isShared || this.#closed) return;
    this.#lossTimer = setTimeout(
      () => {
        if (this.#heldForMs > 0) this.#watchForLoss();
        else this.#lost();
      },
      Math.max(1, this.#heldForMs),
    ).unref();
  }

  #lost(): void {
    if (this.#isLost || this.#closed) return;
    this.#isLost = true;
    this.#options.log('warn', 'the shared store was not reached in time; movable sessions are stopped');
    this.#listener?.onLost();
  }
}

const places = z.object({ free: z.number(), max: z.number() });

/** What a hub's lease tells the others. One of another version may tell less. */
const hubInfo = z.object({
  /** Its host name. */
  host: z.string(),
  pid: z.number(),
  version: z.string(),
  places,
  /** Sessions in it can be taken over by this hub. */
  sharedWorkspace: z.string().optional(),
});

export type HubInfo = z.infer<typeof hubInfo>;

export type HubSummary = Pick<HubInfo, 'host' | 'places' | 'sharedWorkspace'>;

export function summaryOf(hub: string, info: StoredLease['info'] | undefined): HubSummary {
  const told = hubInfo
    .partial()
    .catch({})
    .parse(info ?? {});
  return { ...told, host: told.host ?? hub, places: told.places ?? { free: 0, max: 0 } };
}
