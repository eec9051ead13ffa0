import { parseProcStat } from './proc-stat.ts';
import { darwinStartTimes } from './darwin-processes.ts';
import { thisSystem, type System } from './system.ts';
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
