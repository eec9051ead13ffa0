import { createHash } from 'node:crypto';
import os from 'node:os';
import { removeOldAudit } from '../audit/audit-file.ts';
import type { Settings } from '../config/load-settings.ts';
import type { HostedEngine } from '../engine/engine-host.ts';
import type { Places } from '../engine/session/registry.ts';
import { messageOf } from '../errors/errors.ts';
import type { KeptProcesses } from '../keeper/kept-processes.ts';
import type { HubRef } from '../schema/store.ts';
import type { Store } from '../store/contract.ts';
import { openStore } from '../store/open-store.ts';
import { Lease, LEASE_TIMES, uptime, type HubInfo, type LeaseListener } from '../fleet/lease.ts';
import { Journal } from './journal.ts';
import { TakeOver } from '../fleet/take-over.ts';

const FORGET_EVERY_MS = 3_600_000;
const FORGET_AT_ONCE = 200;
const DAY_MS = 86_400_000;
/** How long shutdown waits for what is not stored yet. */
const LAST_WRITE_MS = 3_000;

export interface HubStorage {
  readonly store: Store;
  /** This incarnation of this hub. */
  readonly by: HubRef;
  readonly journal: Journal;
  readonly lease: Lease;
  /** Whether the store can be written; the lease tries every two seconds, even if nothing happens. */
  readonly isWritable: boolean;
  /** Continues where the last incarnation of this hub stopped. From now on everything that happens is stored. */
  restore(hosted: Pick<HostedEngine, 'engine' | 'extendLease'>, kept?: KeptProcesses): Promise<void>;
  /** After the engine is closed. */
  close(processes: 'end' | 'keep'): Promise<void>;
}

export interface StorageOptions {
  readonly settings: Pick<
    Settings,
    'stateDir' | 'store' | 'sharedWorkspace' | 'retainDays' | 'retainAuditDays' | 'auditLog'
  >;
  readonly version: string;
  readonly now: () => number;
  readonly log: (level: 'debug' | 'warn' | 'error', line: string) => void;
  /** A new incarnation of this hub has started: this one must end. */
  readonly onFenced: () => void;
}

/** Opens the hub's store, with its right to write and the journal that writes. */
export async function openStorage({ settings, version, now, log, onFenced }: StorageOptions): Promise<HubStorage> {
  const store = await openStore({
    url: settings.store,
    stateDir: settings.stateDir,
    warn: (line) => log('warn', line),
  });
  let placesOf = (): Places => ({ free: 0, max: 0 });
  const { sharedWorkspace } = settings;
  const info = (): HubInfo => ({
    ...{ host: os.hostname(), pid: process.pid, version, places: placesOf() },
    ...(sharedWorkspace !== undefined && { sharedWorkspace }),
  });
  const since = uptime();
  const acquired = store.acquireLease(hubId(settings), LEASE_TIMES.ttlMs, { ...info() });
  const { hub, fence } = await acquired.catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
  const by: HubRef = { hub, fence };
  const isShared = sharedWorkspace !== undefined;
  const lease = new Lease({ store, by, info: () => ({ ...info() }), isShared, log, onFenced }, since);
  const journal = new Journal({ store, by, now, log, onFenced });
  const timers: NodeJS.Timeout[] = [];

  const forget = async (): Promise<void> => {
    const before = Math.trunc(now() - settings.retainDays * DAY_MS);
    while ((await store.forget({ before, limit: FORGET_AT_ONCE })).more);
    await removeOldAudit(settings.auditLog, now() - settings.retainAuditDays * DAY_MS);
  };
  const forgetQuietly = (): void => {
    forget().catch((error: unknown) => log('debug', `retention: ${messageOf(error)}`));
  };

  return {
    store,
    by,
    journal,
    lease,
    get isWritable() {
      return lease.isRenewed && journal.isReachable;
    },
    async restore({ engine, extendLease }, kept) {
      journal.follow(engine);
      placesOf = () => engine.fleet.places;
      extendLease(LEASE_TIMES.heldMs);
      const listener: LeaseListener = {
        onRenewed: extendLease,
        onLost() {
          engine.fleet.loseContact().catch((error: unknown) => log('error', messageOf(error)));
        },
        onRegained: () => journal.checkOwned(engine.fleet.lent),
      };
      // From now on: with many sessions, what follows takes longer than a lease is held.
      lease.listen(listener);
      if (kept) await adoptAll(engine, kept, log);
      for (const id of await journal.unfinished()) {
        await engine.fleet.takeUp(id).catch((error: unknown) => log('error', `session ${id}: ${messageOf(error)}`));
      }
      const takeOver = new TakeOver({ store, by, engine, log });
      lease.listen({
        ...listener,
        onRenewed(heldForMs) {
          extendLease(heldForMs);
          if (isShared) void takeOver.look();
        },
      });
      timers.push(setInterval(forgetQuietly, FORGET_EVERY_MS).unref());
      forgetQuietly();
    },
    async close(processes) {
      for (const timer of timers) clearInterval(timer);
      await journal.close(LAST_WRITE_MS);
      await lease.close();
      // With it, other hubs would take over what still runs here.
      if (processes === 'end') await store.releaseLease(by).catch(() => undefined);
      await store.close();
    },
  };
}

/** Continues the sessions whose processes are still there; a process of a session that is not stored is ended. */
async function adoptAll(
  engine: HostedEngine['engine'],
  kept: KeptProcesses,
  log: StorageOptions['log'],
): Promise<void> {
  const ended = await kept.endedAlone();
  if (ended)
    log(
      'warn',
      `no hub came back for ${String(Math.round(ended.afterMs / 60_000))} minutes, so the processes of ${String(ended.sessions.length)} session(s) were ended`,
    );
  await Promise.all(
    kept.offers.map(async (offer) => {
      const { session } = offer.label;
      const mayGoOn = await engine.fleet.takeUp(session).catch((error: unknown) => {
        log('error', `session ${session}: ${messageOf(error)}`);
        return true;
      });
      if (!mayGoOn) await kept.end(offer);
    }),
  );
}

/**
 * Stable across restarts. A private store has one hub; on a shared one, each state directory of each machine is one.
 */
function hubId({ store, stateDir }: Pick<Settings, 'store' | 'stateDir'>): string {
  if (store === undefined) return 'local';
  const place = createHash('sha256').update(stateDir).digest('hex').slice(0, 8);
  return `${os.hostname().replaceAll(/[^A-Za-z0-9.-]/g, '-')}-${place}`;
}
