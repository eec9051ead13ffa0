import { spawn, type ChildProcess } from 'node:child_process';
import { Socket } from 'node:net';
import { isPlainId, thisSystem, toolEnv, type System } from './system.ts';
import { linuxStartTime } from './processes.ts';
import { groupName } from './run-groups.ts';
import { watchdogCommand } from './watchdog-script.ts';

export interface Watchdog {
  /** Undefined if it could not be started. */
  readonly pid: number | undefined;
  /**
   * Ends these runs in this many seconds, whatever has happened to the server by then, unless it is called again
   * before.
   */
  watch(seconds: number, runIds: readonly string[]): void;
  /** A clean end: the watchdog exits without searching for anything. Never rejects. */
  stop(): Promise<void>;
}

export interface WatchdogOptions {
  readonly ownerId: string;
  /** The directory that contains the sessions' cgroups, if there are any. */
  readonly groups?: string | undefined;
  readonly system?: System | undefined;
  /** Called when the watchdog is gone; the server carries on, and the next one sweeps. */
  readonly onProblem?: ((problem: string) => void) | undefined;
}

const STARTS = 3;
const STOP_TIMEOUT_MS = 2_000;
const UNIX_EPOCH_IN_NET_TICKS = 621_355_968_000_000_000n;

/**
 * One for all sessions of a server. It waits on a pipe that the kernel closes when the server dies, however that
 * happens.
 */
export function startWatchdog({ ownerId, groups, system = thisSystem, onProblem }: WatchdogOptions): Watchdog {
  if (!isPlainId(ownerId)) throw new TypeError(`Not usable as a process marker: ${JSON.stringify(ownerId)}`);
  const since = serverStart(system);
  const prefix = groups === undefined ? '' : `${groups}/${groupName(ownerId, '')}`;
  let stopping: Promise<void> | undefined;
  let starts = 0;
  let child: ChildProcess | undefined;
  let watched = false;

  function start(): void {
    starts++;
    try {
      const started = spawnWatchdog(system, lost);
      child = started;
      started.stdin?.write(`${ownerId}\n${since}\n${prefix}\n`);
    } catch (error) {
      child = undefined;
      lost(error instanceof Error ? error.message : String(error));
    }
  }

  function lost(why: string): void {
    if (stopping) return;
    if (starts < STARTS) start();
    else onProblem?.(`The process that cleans up after a crash of this server is not running: ${why}`);
  }

  start();
  return {
    get pid() {
      return child?.pid;
    },
    watch(seconds, runIds) {
      // Elsewhere a run cannot be told from others without a search that takes too long.
      if (system.platform === 'win32' || stopping || (!watched && runIds.length === 0)) return;
      watched = runIds.length > 0;
      child?.stdin?.write(`watch ${String(Math.max(1, Math.ceil(seconds)))} ${runIds.join(' ')}\n`);
    },
    stop: () => (stopping ??= child ? stopChild(child) : Promise.resolve()),
  };
}

function spawnWatchdog(system: System, lost: (why: string) => void): ChildProcess {
  const { file, args } = watchdogCommand(system.platform);
  const child = spawn(file, args, {
    // Without the marker, or it would find itself; in its own session, out of reach of the terminal's signals.
    env: toolEnv(system.platform),
    detached: true,
    cwd: system.platform === 'win32' ? undefined : '/',
    stdio: ['pipe', 'ignore', 'ignore'],
    windowsHide: true,
  });
  // A start that failed has no pid and emits no exit; otherwise only the exit counts.
  child.on('error', (error) => {
    if (child.pid === undefined) lost(error.message);
  });
  child.on('exit', (code, signal) => {
    lost(`it ended with ${signal ?? `code ${code}`}`);
  });
  child.stdin?.on('error', () => undefined);
  keepAlive(child, false);
  return child;
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  keepAlive(child, true);
  await new Promise<void>((resolve) => {
    // It ignores every signal that can be ignored.
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    child.once('exit', () => {
      clearTimeout(timer);
      resolve();
    });
    child.stdin?.end('done\n');
  });
}

/** It must never keep the server running, except while the server waits for it to exit. */
function keepAlive(child: ChildProcess, keep: boolean): void {
  const handles = [child, ...(child.stdin instanceof Socket ? [child.stdin] : [])];
  for (const handle of handles) {
    if (keep) handle.ref();
    else handle.unref();
  }
}

/** In the form the platform's script compares. On Windows querying takes half a second, so it is computed. */
function serverStart(system: System): string {
  if (system.platform === 'linux') return linuxStartTime(system.pid, system) ?? '0';
  const started = Math.floor(Date.now() - process.uptime() * 1000) - 2_000;
  return String(BigInt(started) * 10_000n + UNIX_EPOCH_IN_NET_TICKS);
}
