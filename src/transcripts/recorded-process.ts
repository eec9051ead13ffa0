/** Whether a process that Claude Code recorded is still running, or its pid was reused. */

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { parseProcStat } from '../platform/proc-stat.ts';

export interface RecordedProcess {
  readonly pid: number;
  /** Linux: clock ticks since boot. macOS: what `ps -o lstart=` prints in C and UTC. Windows writes another field. */
  readonly startTime: string | undefined;
}

const PS_TIMEOUT_MS = 5_000;
const PS_DATE = /^\w{3} \w{3} +\d+ [\d:]{8} \d{4}$/;

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/** When in doubt, yes: two processes writing one transcript do more harm than a session wrongly reported as busy. */
export async function isSameProcess(recorded: RecordedProcess, platform = process.platform): Promise<boolean> {
  switch (platform) {
    case 'linux':
      return isSameOnLinux(recorded);
    case 'darwin':
      return isAlive(recorded.pid) && isSameByPs(recorded);
    default:
      return isAlive(recorded.pid);
  }
}

/** Of this process, in the format that `isSameProcess` compares. */
export async function ownStartTime(platform = process.platform): Promise<string | undefined> {
  if (platform === 'linux') return parseProcStat(await readFile('/proc/self/stat', 'latin1').catch(() => '')).startTime;
  return platform === 'darwin' ? startByPs(process.pid) : undefined;
}

async function isSameOnLinux({ pid, startTime }: RecordedProcess): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => undefined);
  // Gone, or hidden from us (mounted with hidepid).
  if (stat === undefined) return isAlive(pid);
  const now = parseProcStat(stat);
  if (now.isDead) return false;
  return startTime === undefined || !/^\d+$/.test(startTime) || now.startTime === startTime;
}

async function isSameByPs({ pid, startTime }: RecordedProcess): Promise<boolean> {
  if (startTime === undefined || !PS_DATE.test(startTime)) return true;
  const now = await startByPs(pid);
  return now === undefined || now === startTime;
}

async function startByPs(pid: number): Promise<string | undefined> {
  const options = { env: { LC_ALL: 'C', TZ: 'UTC' }, timeout: PS_TIMEOUT_MS };
  const ps = await promisify(execFile)('/bin/ps', ['-o', 'lstart=', '-p', String(pid)], options).catch(() => undefined);
  return ps?.stdout.trim();
}
