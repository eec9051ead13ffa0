import {
  codeOf,
  problemOf,
  readOwner,
  recordedOwners,
  recordPath,
  removeOwner,
  thisPlace,
  type OwnerRecord,
  type Place,
} from './owner-records.ts';
import { isAlive, filterAlive } from './processes.ts';
import { endGroups } from './run-groups.ts';
import { stopTree, type StopOptions, type StopTarget } from './stop-tree.ts';
import { thisSystem, type System } from './system.ts';

export interface SweepResult {
  /** Processes that a dead server had left behind. */
  readonly stopped: number;
  readonly forced: number;
  /** Owners whose record is settled and removed. */
  readonly swept: readonly string[];
  readonly problems: readonly { readonly path: string; readonly problem: string }[];
}

export interface SweepOptions {
  readonly stateDir: string;
  readonly stop?: StopOptions | undefined;
  readonly place?: Place | undefined;
}

/** Records of machines and containers that never come back would pile up. */
const FORGET_AFTER_MS = 30 * 24 * 3_600_000;
const STOP: StopOptions = { graceMs: 0, forceAfterMs: 2_500 };

/**
 * Ends what dead servers left behind and even their watchdog missed. Owners whose server lives are not touched. Never
 * rejects.
 */
export async function sweep(options: SweepOptions, system: System = thisSystem): Promise<SweepResult> {
  const { stateDir, stop = STOP, place = thisPlace() } = options;
  const problems: { path: string; problem: string }[] = [];
  const swept: string[] = [];
  let stopped = 0;
  let forced = 0;

  async function sweepOwner(ownerId: string): Promise<void> {
    const record = await readOwner(stateDir, ownerId);
    if (record === 'corrupt') {
      // Whether its server lives is unknown, so nothing is stopped; the file would be reported forever.
      problems.push({ path: recordPath(stateDir, ownerId), problem: 'not an owner record; removed' });
    } else {
      const fate = await fateOf(record, place, system);
      if (fate === 'alive' || (fate === 'elsewhere' && Date.now() - record.at < FORGET_AFTER_MS)) return;
      // Nothing survives a reboot.
      for (const target of fate === 'dead' ? await targetsOf(record, system) : []) {
        const result = await stopTree(target, stop, system);
        stopped += result.stopped;
        forced += result.forced;
        if (result.left > 0) throw new Error(`${result.left} processes of this owner could not be ended`);
      }
      if (fate === 'dead' && system.platform === 'linux') await endGroups(record.groups, ownerId);
    }
    const problem = await removeOwner(stateDir, ownerId);
    if (problem !== undefined) throw new Error(problem);
    if (record !== 'corrupt') swept.push(ownerId);
  }

  const owners = await recordedOwners(stateDir).catch((error: unknown) => {
    problems.push({ path: stateDir, problem: problemOf(error) });
    return [];
  });
  for (const ownerId of owners) {
    await sweepOwner(ownerId).catch((error: unknown) => {
      // Another server swept at the same time and was first.
      if (codeOf(error) === 'ENOENT') return;
      problems.push({ path: recordPath(stateDir, ownerId), problem: problemOf(error) });
    });
  }
  return { stopped, forced, swept, problems };
}

/**
 * What can be determined from here. Pids of another machine or container are meaningless, and its server may well be
 * alive.
 */
async function fateOf(
  record: OwnerRecord,
  here: Place,
  system: System,
): Promise<'alive' | 'dead' | 'rebooted' | 'elsewhere'> {
  const { host, boot, namespace } = record.place;
  // The host name is unreliable: it changes with the network, and containers have their own.
  if (boot !== here.boot) return host === here.host ? 'rebooted' : 'elsewhere';
  if (namespace !== here.namespace) return 'elsewhere';
  return (await isAlive(record, system)) ? 'alive' : 'dead';
}

async function targetsOf(record: OwnerRecord, system: System): Promise<StopTarget[]> {
  const owner = record.ownerId;
  if (system.platform !== 'win32') return [{ owner, since: record.startTime }];
  // Only live roots: below a dead one, what an unrelated process with its pid has started cannot be distinguished.
  const roots = await filterAlive(record.roots, system);
  return roots.map(({ pid, startTime }) => ({ owner, rootPid: pid, rootStartTime: startTime }));
}
