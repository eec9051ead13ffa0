/** Finds every process that a test started, whatever its parent, group or session, by an inherited variable. */

import { execFile } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

export interface MarkedProcess {
  readonly pid: number;
  readonly command: string;
}

export const TEST_MARKER = 'CCM_TEST';

const POLL_INTERVAL_MS = 25;

/** Zombies do not count: they have no environment left. On Windows nothing is found. */
export async function markedProcesses(marker: string): Promise<MarkedProcess[]> {
  const variable = `${TEST_MARKER}=${marker}`;
  if (process.platform === 'linux') return fromProc(variable);
  return process.platform === 'win32' ? [] : fromPs(variable);
}

/** The processes still alive after this time. */
export async function survivors(marker: string, withinMs: number): Promise<MarkedProcess[]> {
  const deadline = performance.now() + withinMs;
  for (let emptyScans = 0; ;) {
    const found = await markedProcesses(marker);
    emptyScans = found.length === 0 ? emptyScans + 1 : 0;
    // Twice, because a process briefly has no environment during exec.
    if (emptyScans === 2) return [];
    if (found.length > 0 && performance.now() >= deadline) return found;
    await sleep(POLL_INTERVAL_MS);
  }
}

/** Repeats until none is left: a process may have started another before it was killed. */
export async function killAll(marker: string): Promise<void> {
  for (let left = await markedProcesses(marker); left.length > 0; left = await survivors(marker, 500)) {
    for (const { pid } of left) kill(pid);
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has already exited.
  }
}

/** Must be cheap: tests call it often, and it reads every process on the machine. */
function fromProc(variable: string): MarkedProcess[] {
  const wanted = Buffer.from(`${variable}\0`);
  forgetKernelThreads();
  const found: MarkedProcess[] = [];
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid) || kernelThreads.has(pid)) continue;
    const environment = readEnvironment(pid);
    if (environment.includes(wanted))
      found.push({ pid: Number(pid), command: readProc(pid, 'cmdline').replaceAll('\0', ' ').trim() });
    else if (environment.length === 0 && CHILD_OF_KTHREADD.test(readProc(pid, 'stat'))) kernelThreads.add(pid);
  }
  return found;
}

/** More than half of `/proc`, and never a match. */
const kernelThreads = new Set<string>();
const CHILD_OF_KTHREADD = /\) \S 2 /;
/** Much shorter than it takes for pids to be reused. */
const KNOWN_FOR_MS = 10_000;
let knownUntil = 0;

function forgetKernelThreads(): void {
  const now = performance.now();
  if (now < knownUntil) return;
  kernelThreads.clear();
  knownUntil = now + KNOWN_FOR_MS;
}

/** Reused by every read. Larger than any environment in these tests. */
const buffer = Buffer.alloc(256 * 1024);

function readEnvironment(pid: string): Buffer {
  try {
    const file = openSync(`/proc/${pid}/environ`, 'r');
    try {
      return buffer.subarray(0, readSync(file, buffer));
    } finally {
      closeSync(file);
    }
  } catch {
    // Already gone, or another user's.
    return buffer.subarray(0, 0);
  }
}

function readProc(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    // Already gone, or another user's.
    return '';
  }
}

/** `ps -E` appends the environment to the arguments. macOS hides that of its own programs, such as /bin/sleep. */
async function fromPs(variable: string): Promise<MarkedProcess[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-E', '-ww', '-o', 'pid=,command='], {
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout
    .split('\n')
    .filter((line) => line.includes(variable))
    .map((line) => line.trim())
    .map((line) => ({ pid: Number.parseInt(line, 10), command: line.replace(/^\d+\s+/, '').slice(0, 300) }));
}
