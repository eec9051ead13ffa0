import { setTimeout as pause } from 'node:timers/promises';
import type { ProcessId } from './process-identity.ts';
import type { StopResult, StopTarget } from './stop-tree.ts';
import type { System } from './system.ts';
import { windowsProcesses, windowsTree } from './windows-processes.ts';

const POLL_MS = 100;

/**
 * Windows has neither a readable environment nor a termination request for console programs: the tree below the root is
 * listed first, because exiting parents break the link to their children, then killed until nothing of it is left.
 */
export async function stopWindowsTree(target: StopTarget, deadlineMs: number, system: System): Promise<StopResult> {
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
