/** A process and its descendants, found by parent pids, which every platform reports. */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

export interface TreeProcess {
  readonly pid: number;
  readonly parent: number;
  /** Identifies a process, together with its pid. */
  readonly started: string;
  readonly command: string;
}

export async function treeBelow(root: number): Promise<TreeProcess[]> {
  const all = await listProcesses();
  const tree = all.filter(({ pid }) => pid === root);
  for (const { pid } of tree) tree.push(...all.filter(({ parent, pid: child }) => parent === pid && child !== pid));
  return tree;
}

export async function stillAlive(processes: readonly TreeProcess[]): Promise<TreeProcess[]> {
  const all = await listProcesses();
  return processes.filter(({ pid, started }) => all.some((other) => other.pid === pid && other.started === started));
}

function listProcesses(): Promise<TreeProcess[]> {
  return process.platform === 'win32' ? fromPowerShell() : fromPs();
}

async function fromPs(): Promise<TreeProcess[]> {
  const args = ['-A', '-ww', '-o', 'pid=,ppid=,stat=,lstart=,command='];
  const lines = await output('ps', args, { ...process.env, LC_ALL: 'C', TZ: 'UTC' });
  return parse(lines, /^\s*(\d+)\s+(\d+)\s+[^Z\s]\S*\s+(\S+\s+\S+\s+\d+\s+[\d:]+\s+\d+)\s(.*)$/);
}

async function fromPowerShell(): Promise<TreeProcess[]> {
  const script =
    'Get-CimInstance Win32_Process | Where-Object CreationDate | ForEach-Object ' +
    `{ '{0} {1} {2} {3}' -f $_.ProcessId, $_.ParentProcessId, $_.CreationDate.Ticks, ($_.CommandLine -replace '\\s', ' ') }`;
  const lines = await output('powershell.exe', ['-NoProfile', '-NonInteractive', '-Command', script], process.env);
  return parse(lines, /^(\d+) (\d+) (\d+) (.*)$/);
}

async function output(file: string, args: string[], env: NodeJS.ProcessEnv): Promise<string[]> {
  const { stdout } = await promisify(execFile)(file, args, { env, maxBuffer: 64 * 1024 * 1024, windowsHide: true });
  return stdout.split(/\r?\n/);
}

function parse(lines: readonly string[], form: RegExp): TreeProcess[] {
  return lines.flatMap((line) => {
    const [, pid, parent, started, command] = form.exec(line) ?? [];
    return pid && parent && started ? [{ pid: Number(pid), parent: Number(parent), started, command: command! }] : [];
  });
}
