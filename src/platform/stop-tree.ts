import { setTimeout as pause } from 'node:timers/promises';
import { findMarked, filterAlive, signalIfSame, startTimeOf, type ProcessId } from './processes.ts';
import { thisSystem, type System } from './system.ts';
import { windowsProcesses, windowsTree } from './windows-processes.ts';

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

const POLL_MS = 100;

/**
 * Windows has neither a readable environment nor a termination request for console programs: the tree below the root is
 * listed first, because exiting parents break the link to their children, then killed until nothing of it is left.
 */
async function stopWindowsTree(target: StopTarget, deadlineMs: number, system: System): Promise<StopResult> {
  const begin = performance.now();
  const known = new Map<string, ProcessId>();
  let live: ProcessId[] = [];
  let root: ProcessId | undefined;
  for (;;) {
    const all = await windowsProcesses(system).catch(() => undefined);
    if (all) {
      root ??= findRoot(all, target);
      if (!root) break;
      for (const process of windowsTree(all, root)) known.set(keyOf(process), process);
      // Children of a part of the tree that has exited since.
      for (const ancestor of [...known.values()]) {
        for (const process of windowsTree(all, ancestor)) known.set(keyOf(process), process);
      }
      live = all.filter((process) => known.has(keyOf(process)) && process.pid !== system.pid);
      if (live.length === 0) break;
      // Right after the listing, so the pids are still theirs. The tree first, in one step, before it can grow.
      const rootLives = live.some(({ pid }) => pid === root?.pid);
      const kills = rootLives
        ? [['/T', '/F', '/PID', String(root.pid)]]
        : live.map(({ pid }) => ['/F', '/PID', String(pid)]);
      await Promise.all(kills.map((args) => system.run('taskkill', args).catch(() => '')));
    }
    if (performance.now() - begin >= deadlineMs) break;
    await pause(POLL_MS);
  }
  return { stopped: 0, forced: known.size - live.length, left: live.length };
}

function findRoot(all: readonly ProcessId[], target: StopTarget): ProcessId | undefined {
  const { rootPid: pid, rootStartTime } = target;
  if (pid === undefined) return undefined;
  const startTime = rootStartTime ?? all.find((process) => process.pid === pid)?.startTime;
  return startTime === undefined ? undefined : { pid, startTime };
}

function keyOf({ pid, startTime }: ProcessId): string {
  return `${pid}@${startTime}`;
}
