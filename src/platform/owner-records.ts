import { randomUUID } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { lstat, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { openOwnFile } from './own-file.ts';
import { isPlainId, thisSystem, type System } from './system.ts';
import { startTimeOf, type ProcessId, isAlive, filterAlive } from './processes.ts';
import { endGroups } from './run-groups.ts';
import { stopTree, type StopOptions, type StopTarget } from './stop-tree.ts';

/** Which server an owner id belongs to, for finding its processes after it has died. */
export interface OwnerRecord extends ProcessId {
  readonly ownerId: string;
  readonly place: Place;
  /** When it was written, in milliseconds. */
  readonly at: number;
  /** Windows only, where nothing else identifies them: the root processes of the sessions. */
  readonly roots: readonly ProcessId[];
  /** Linux: the directory that contains the sessions' cgroups, if there are any. */
  readonly groups?: string | undefined;
}

/** Where the pids in a record are meaningful: a home directory may be shared by machines and containers. */
interface Place {
  readonly host: string;
  /** Linux: changes with every boot. */
  readonly boot: string;
  /** Linux: the pid namespace. */
  readonly namespace: string;
}

/** A record is a few hundred bytes, plus some per session on Windows. */
const MAX_RECORD_BYTES = 1024 * 1024;

export function thisPlace(): Place {
  const ask = (read: () => string): string => {
    try {
      return read().trim();
    } catch {
      return '';
    }
  };
  return {
    host: hostname(),
    boot: ask(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')),
    namespace: ask(() => readlinkSync('/proc/self/ns/pid')),
  };
}

export function recordPath(stateDir: string, ownerId: string): string {
  return join(stateDir, 'owners', `${ownerId}.json`);
}

/** Records this process as the owner. Returns the problem, if any; a server works without it. */
export async function recordOwner(
  stateDir: string,
  ownerId: string,
  left: Pick<OwnerRecord, 'roots' | 'groups'> = { roots: [] },
  system: System = thisSystem,
): Promise<string | undefined> {
  try {
    if (!isPlainId(ownerId)) throw new TypeError(`Not usable as a process marker: ${JSON.stringify(ownerId)}`);
    const startTime = await startTimeOf(system.pid, system);
    if (startTime === undefined) throw new Error('the start time of this process is unknown');
    const record: OwnerRecord = { ownerId, pid: system.pid, startTime, place: thisPlace(), at: Date.now(), ...left };
    const path = recordPath(stateDir, ownerId);
    // Atomically, so that no one ever reads half a record.
    const draft = `${path}.${randomUUID()}.tmp`;
    await makeDirectory(join(stateDir, 'owners'));
    const file = await openOwnFile(draft, 'create');
    await file.writeFile(`${JSON.stringify(record)}\n`).finally(() => file.close());
    await rename(draft, path).catch(async (error: unknown) => {
      await rm(draft, { force: true });
      throw error;
    });
    return undefined;
  } catch (error) {
    return problemOf(error);
  }
}

export async function removeOwner(stateDir: string, ownerId: string): Promise<string | undefined> {
  return rm(recordPath(stateDir, ownerId), { force: true }).then(() => undefined, problemOf);
}

/** The recorded owner ids; none if the directory does not exist yet. */
export async function recordedOwners(stateDir: string): Promise<string[]> {
  const names = await readdir(join(stateDir, 'owners')).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  });
  return names
    .filter((name) => name.endsWith('.json'))
    .map((name) => name.slice(0, -'.json'.length))
    .filter(isPlainId);
}

/** 'corrupt' for a file that is not a record of this owner: a link, a pipe, anything. Rejects if it cannot be read. */
export async function readOwner(stateDir: string, ownerId: string): Promise<OwnerRecord | 'corrupt'> {
  const path = recordPath(stateDir, ownerId);
  const found = await lstat(path);
  if (found.isDirectory()) throw new Error(`${path} is a directory`);
  if (!found.isFile() || found.size > MAX_RECORD_BYTES) return 'corrupt';
  const file = await openOwnFile(path, 'read');
  const text = await file.readFile('utf8').finally(() => file.close());
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && value.ownerId === ownerId ? value : 'corrupt';
  } catch {
    return 'corrupt';
  }
}

function problemOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/** Node's `recursive` never returns on a file system that answers ENOENT below an existing directory, as /proc does. */
async function makeDirectory(path: string): Promise<void> {
  const make = (): Promise<void> =>
    mkdir(path, { mode: 0o700 }).catch((error: unknown) => {
      if (codeOf(error) !== 'EEXIST') throw error;
    });
  await make().catch(async (error: unknown) => {
    if (codeOf(error) !== 'ENOENT' || dirname(path) === path) throw error;
    await makeDirectory(dirname(path));
    await make();
  });
}

function isRecord(value: unknown): value is OwnerRecord {
  if (!isProcessId(value)) return false;
  const { ownerId, place, at, roots, groups } = value as Partial<OwnerRecord>;
  const parts = [place?.host, place?.boot, place?.namespace, ownerId];
  if (!parts.every((part) => typeof part === 'string') || typeof at !== 'number') return false;
  if (groups !== undefined && typeof groups !== 'string') return false;
  return Array.isArray(roots) && roots.every(isProcessId);
}

function isProcessId(value: unknown): value is ProcessId {
  if (typeof value !== 'object' || value === null) return false;
  const { pid, startTime } = value as Partial<ProcessId>;
  return Number.isSafeInteger(pid) && typeof startTime === 'string';
}

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
