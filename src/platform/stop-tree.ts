import { setTimeout as pause } from 'node:timers/promises';
import { findMarked } from './find-processes.ts';
import { filterAlive, signalIfSame, startTimeOf, type ProcessId } from './process-identity.ts';
import { stopWindowsTree } from './stop-windows-tree.ts';
import { thisSystem, type System } from './system.ts';

export interface StopTarget {
  readonly owner: string;
  /** Without it: every run of the owner. */
  readonly run?: string | undefined;
  /**
   * Signalled first, because the CLI ends its own commands cleanly when asked. On Windows the only available handle.
   */
  readonly rootPid?: number | undefined;
  /** Identifies the root even if its environment cannot be read. */
  readonly rootStartTime?: string | undefined;
  /** Start time of the server that made the marker; this process if not given. */
  readonly since?: string | undefined;
}

export interface StopOptions {
  /** How long the root may take to end its own tree before the others are signalled too. */
  readonly graceMs: number;
  /** From the beginning: when to stop asking and kill. */
  readonly forceAfterMs: number;
  readonly signal?: NodeJS.Signals | undefined;
  /** From the beginning: when to give up. Five seconds after `forceAfterMs` if not given. */
  readonly deadlineMs?: number | undefined;
}

export interface StopResult {
  /** Ended when asked, or on their own. */
  readonly stopped: number;
  /** Ended only when killed. */
  readonly forced: number;
  /** Still there at the deadline: not ours to signal, or stuck in the kernel. */
  readonly left: number;
}

interface Tracked extends ProcessId {
  sent: 'nothing' | 'request' | 'kill';
}

const FIRST_POLL_MS = 10;
const LAST_POLL_MS = 100;
const AFTER_FORCE_MS = 5_000;

/** Ends every process of a run and waits until they are gone. Never rejects, leaves no timer behind. */
export async function stopTree(
  target: StopTarget,
  options: StopOptions,
  system: System = thisSystem,
): Promise<StopResult> {
  const deadlineMs = options.deadlineMs ?? options.forceAfterMs + AFTER_FORCE_MS;
  if (system.platform === 'win32') return stopWindowsTree(target, deadlineMs, system);
  const begin = performance.now();
  const elapsed = (): number => performance.now() - begin;
  const since = target.since ?? (await startTimeOf(system.pid, system).catch(() => undefined));
  const isRoot = ({ pid }: ProcessId): boolean => pid === target.rootPid;

  // Once proven, a process stays ours even if it wipes its environment: pid and start time name it.
  const known = new Map<string, Tracked>();
  const add = ({ pid, startTime }: ProcessId): void => {
    const key = `${pid}@${startTime}`;
    if (!known.has(key)) known.set(key, { pid, startTime, sent: 'nothing' });
  };
  const find = async (): Promise<boolean> => {
    const { owner, run } = target;
    const found = await findMarked({ owner, run, since }, system).catch(() => undefined);
    found?.forEach(add);
    return found !== undefined;
  };
  if (target.rootPid !== undefined && target.rootStartTime !== undefined) {
    add({ pid: target.rootPid, startTime: target.rootStartTime });
  }

  let live: Tracked[] = [];
  let emptyScans = 0;
  for (let poll = FIRST_POLL_MS, round = 0; ; poll = Math.min(poll * 2, LAST_POLL_MS), round++) {
    const force = elapsed() >= options.forceAfterMs;
    const rootExisted = live.some(isRoot);
    live = await living(known, system);
    // Waiting only needs the known ones; a full scan takes tens of milliseconds.
    if (round === 0 || live.length === 0 || force || (rootExisted && !live.some(isRoot))) {
      let found = await find();
      live = await living(known, system);
      if (force && system.platform !== 'linux' && live.length > 0) {
        // A killed parent no longer leads to what it started since: stop them all, scan again, then kill.
        for (const process of live) await signalIfSame(process, 'SIGSTOP', system).catch(() => false);
        found = await find();
        live = await living(known, system);
      }
      // Twice, because a process in the middle of `exec` shows no environment.
      emptyScans = found && live.length === 0 ? emptyScans + 1 : 0;
    }
    if (emptyScans === 2 || elapsed() >= deadlineMs) break;

    const rootOnly = !force && elapsed() < options.graceMs && live.some(isRoot);
    for (const process of live) {
      if (process.sent === 'kill' || (!force && process.sent === 'request')) continue;
      if (rootOnly && !isRoot(process)) continue;
      process.sent = force ? 'kill' : 'request';
      await signalIfSame(process, force ? 'SIGKILL' : (options.signal ?? 'SIGTERM'), system).catch(() => false);
    }
    await pause(poll);
  }

  const left = new Set(live);
  const gone = [...known.values()].filter((process) => !left.has(process));
  const forced = gone.filter(({ sent }) => sent === 'kill').length;
  return { stopped: gone.length - forced, forced, left: left.size };
}

/** If the system cannot be queried, all of them stay on the list. */
function living(known: ReadonlyMap<string, Tracked>, system: System): Promise<Tracked[]> {
  const all = [...known.values()];
  return filterAlive(all, system).catch(() => all);
}
