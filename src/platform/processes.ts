import { parseProcStat } from './ancestors.ts';
import { darwinStartTimes, darwinMarked } from './darwin-processes.ts';
import { thisSystem, OWNER_MARKER, RUN_MARKER, type System } from './system.ts';
import { windowsStartTimes } from './windows-processes.ts';

/** A pid alone may be reused; together with its start time it identifies one process. */
export interface ProcessId {
  readonly pid: number;
  /** Opaque: clock ticks since boot on Linux, a UTC date on macOS, .NET ticks on Windows. */
  readonly startTime: string;
}

export interface ProcessIdentity extends ProcessId {
  readonly owner: string;
  readonly run: string;
}

/** macOS keeps the wall clock of the start, and clocks get set back. */
const DARWIN_CLOCK_SLACK_MS = 5 * 60_000;

/** Undefined for a process that is gone, including a zombie. Rejects if the system cannot be queried. */
export async function startTimeOf(pid: number, system: System = thisSystem): Promise<string | undefined> {
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
  switch (system.platform) {
    case 'linux':
      return linuxStartTime(pid, system);
    case 'win32':
      return (await windowsStartTimes([pid], system)).get(pid);
    default:
      return (await darwinStartTimes([pid], system)).get(pid);
  }
}

export async function isAlive(identity: ProcessId, system: System = thisSystem): Promise<boolean> {
  return (await startTimeOf(identity.pid, system)) === identity.startTime;
}

/** The ones that are alive, with a single command on platforms that need one. */
export async function filterAlive<T extends ProcessId>(all: readonly T[], system: System = thisSystem): Promise<T[]> {
  if (all.length === 0) return [];
  if (system.platform === 'linux') return all.filter(({ pid, startTime }) => linuxStartTime(pid, system) === startTime);
  const pids = all.map(({ pid }) => pid);
  const times = await (system.platform === 'win32' ? windowsStartTimes(pids, system) : darwinStartTimes(pids, system));
  return all.filter(({ pid, startTime }) => times.get(pid) === startTime);
}

/** Signals the process only if the pid still belongs to it. */
export async function signalIfSame(
  identity: ProcessId,
  signal: NodeJS.Signals,
  system: System = thisSystem,
): Promise<boolean> {
  if (identity.pid === system.pid || identity.pid <= 1) return false;
  if (system.platform === 'linux') {
    return linuxStartTime(identity.pid, system) === identity.startTime && system.kill(identity.pid, signal);
  }
  return (await isAlive(identity, system)) && system.kill(identity.pid, signal);
}

/** A process cannot carry a marker that did not exist yet. Unknown times prove nothing. */
export function startedSince(startTime: string, since: string | undefined, platform: NodeJS.Platform): boolean {
  if (since === undefined) return true;
  if (platform === 'linux' || platform === 'win32') {
    return /^\d+$/.test(startTime) && /^\d+$/.test(since) && BigInt(startTime) >= BigInt(since);
  }
  return Date.parse(`${startTime} UTC`) >= Date.parse(`${since} UTC`) - DARWIN_CLOCK_SLACK_MS;
}

export function linuxStartTime(pid: number, system: System): string | undefined {
  const stat = system.stat(pid);
  if (stat === undefined) return undefined;
  const { isDead, startTime } = parseProcStat(stat);
  return isDead ? undefined : startTime;
}

/** Few enough open files, enough to keep libuv's threads busy. */
const READERS = 16;
const OWNER_BYTES = Buffer.from(`${OWNER_MARKER}=`);

/** Every process that carries a marker, of any owner. */
async function linuxMarked(system: System): Promise<ProcessIdentity[]> {
  const queue = (await system.pids()).filter((pid) => pid !== system.pid);
  const found: ProcessIdentity[] = [];
  async function reader(): Promise<void> {
    for (let pid = queue.pop(); pid !== undefined; pid = queue.pop()) {
      const identity = await identify(pid, system);
      if (identity) found.push(identity);
    }
  }
  await Promise.all(Array.from({ length: READERS }, reader));
  return found.sort((a, b) => a.pid - b.pid);
}

async function identify(pid: number, system: System): Promise<ProcessIdentity | undefined> {
  if (!readMarkers(await system.environ(pid))) return undefined;
  const startTime = linuxStartTime(pid, system);
  if (startTime === undefined) return undefined;
  // Read again: the pid may have been reused between the first read and the start time.
  const markers = readMarkers(await system.environ(pid));
  return markers && linuxStartTime(pid, system) === startTime ? { pid, startTime, ...markers } : undefined;
}

function readMarkers(block: Buffer | undefined): { owner: string; run: string } | undefined {
  if (!block?.includes(OWNER_BYTES)) return undefined;
  const variables = block.toString('latin1').split('\0');
  const owner = valueOf(variables, OWNER_MARKER);
  return owner === undefined ? undefined : { owner, run: valueOf(variables, RUN_MARKER) ?? '' };
}

function valueOf(variables: readonly string[], name: string): string | undefined {
  return variables.find((variable) => variable.startsWith(`${name}=`))?.slice(name.length + 1);
}

export interface MarkedFilter {
  readonly owner?: string | undefined;
  readonly run?: string | undefined;
  /** Start time of the server that made the marker: anything older cannot be its own. */
  readonly since?: string | undefined;
}

/**
 * The live processes that carry the marker, whatever their parent, group or session; never the calling one. On Windows
 * an environment cannot be read: always empty, see `windows-processes.ts`. Rejects if the system cannot be queried.
 */
export async function findMarked(filter: MarkedFilter, system: System = thisSystem): Promise<ProcessIdentity[]> {
  if (system.platform === 'win32') return [];
  const wanted = ({ owner, run }: { owner: string; run: string }): boolean =>
    (filter.owner === undefined || filter.owner === owner) && (filter.run === undefined || filter.run === run);
  const marked =
    system.platform === 'linux' ? (await linuxMarked(system)).filter(wanted) : await darwinMarked(wanted, system);
  return marked.filter(({ startTime }) => startedSince(startTime, filter.since, system.platform));
}
