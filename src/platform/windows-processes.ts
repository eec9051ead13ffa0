import type { ProcessId } from './processes.ts';
import type { System } from './system.ts';

export interface WindowsProcess extends ProcessId {
  readonly parent: number;
}

/** `wmic` is gone from current Windows. The idle process has no creation date. */
export function listCommand(where = ''): { file: string; args: string[] } {
  const script =
    `Get-CimInstance Win32_Process ${where}-Property ProcessId,ParentProcessId,CreationDate | Where-Object CreationDate | ` +
    `ForEach-Object { '{0} {1} {2}' -f $_.ProcessId, $_.ParentProcessId, $_.CreationDate.ToUniversalTime().Ticks }`;
  return { file: 'powershell.exe', args: ['-NoProfile', '-NonInteractive', '-Command', script] };
}

export async function windowsProcesses(system: System): Promise<WindowsProcess[]> {
  const { file, args } = listCommand();
  return parse(await system.run(file, args));
}

export async function windowsStartTimes(pids: readonly number[], system: System): Promise<Map<number, string>> {
  const { file, args } = listCommand(`-Filter '${pids.map((pid) => `ProcessId=${pid}`).join(' OR ')}' `);
  return new Map(parse(await system.run(file, args)).map(({ pid, startTime }) => [pid, startTime]));
}

/**
 * The root, if it lives, and its descendants. A parent pid on Windows is never updated when the parent exits, so it may
 * name a later process: a child is younger than its parent, and older than whichever process has its parent's pid now.
 */
export function windowsTree(all: readonly WindowsProcess[], root: ProcessId): WindowsProcess[] {
  const tree: WindowsProcess[] = all.filter(
    (process) => process.pid === root.pid && process.startTime === root.startTime,
  );
  const queue: ProcessId[] = [root];
  for (let parent = queue.shift(); parent; parent = queue.shift()) {
    const { pid, startTime } = parent;
    const holder = all.find((process) => process.pid === pid && process.startTime !== startTime);
    for (const child of all) {
      if (child.parent !== pid || child.pid === pid || tree.includes(child)) continue;
      if (BigInt(child.startTime) < BigInt(startTime)) continue;
      if (holder && BigInt(child.startTime) >= BigInt(holder.startTime)) continue;
      tree.push(child);
      queue.push(child);
    }
  }
  return tree;
}

function parse(output: string): WindowsProcess[] {
  return output.split(/\r?\n/).flatMap((line) => {
    const [, pid, parent, startTime] = /^(\d+) (\d+) (\d+)$/.exec(line.trim()) ?? [];
    return pid && parent && startTime ? [{ pid: Number(pid), parent: Number(parent), startTime }] : [];
  });
}
