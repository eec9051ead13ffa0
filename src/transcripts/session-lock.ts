/**
 * Separates servers that open the same session: whoever has a process on an existing transcript holds its lock. Claude
 * Code's own registry comes too late for two that start at the same moment. A lock is a file that names its holder; one
 * whose holder is dead is void.
 *
 * A stale lock is never removed by those who find it, since someone else may own it by then: the next lock is created
 * under the next number, which only one process can do.
 */

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { link, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { setTimeout as pause } from 'node:timers/promises';
import { parseProcStat } from '../platform/ancestors.ts';

export interface SessionLock {
  release(): Promise<void>;
}

interface Numbered {
  readonly file: string;
  readonly number: number;
}

/** How many times others may win the race before this gives up. */
const ATTEMPTS = 5;

export async function lockSession(directory: string, sessionId: string): Promise<SessionLock | { pid: number }> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  for (let attempt = 1; ; attempt++) {
    // One look tells both: a lock that appears after it has the number that this one would take.
    const locks = await locksOf(directory, sessionId);
    const holder = await holderAmong(locks);
    if (holder) return { pid: holder.pid };
    const number = (locks.at(-1)?.number ?? 0) + 1;
    const file = path.join(directory, `${sessionId}.${number}.lock`);
    if (await create(file)) {
      const release = (): Promise<void> => remove(directory, sessionId, number);
      // A slower process may have created an old number again.
      const newer = (await locksOf(directory, sessionId)).filter((lock) => lock.number > number);
      const later = await holderAmong(newer);
      if (!later) return { release };
      await rm(file, { force: true });
      return { pid: later.pid };
    }
    if (attempt === ATTEMPTS)
      return { pid: (await holderAmong(await locksOf(directory, sessionId)))?.pid ?? process.pid };
  }
}

/** The same for the worktrees of sessions, whose records have no lock of their own. */
export function worktreeLock(worktreesDir: string): (name: string) => Promise<SessionLock | { pid: number }> {
  return (name) => lockSession(path.join(worktreesDir, '.locks'), name);
}

/** The process whose lock counts. */
async function holderAmong(locks: readonly Numbered[]): Promise<RecordedProcess | undefined> {
  for (const { file } of locks) {
    const recorded = await readRecord(file);
    if (recorded && (await isSameProcess(recorded))) return recorded;
  }
  return undefined;
}

/** Lowest number first. */
async function locksOf(directory: string, sessionId: string): Promise<Numbered[]> {
  return (await readdir(directory))
    .filter((name) => name.startsWith(`${sessionId}.`) && name.endsWith('.lock'))
    .map((name) => ({ file: path.join(directory, name), number: Number(name.slice(sessionId.length + 1, -5)) }))
    .filter(({ number }) => Number.isSafeInteger(number))
    .sort((a, b) => a.number - b.number);
}

/** Whether it is ours. Created elsewhere first, so that no one ever sees one without its holder. */
async function create(file: string): Promise<boolean> {
  const draft = `${file}.${randomUUID()}`;
  const record: RecordedProcess = { pid: process.pid, startTime: await ownStartTime() };
  await writeFile(draft, JSON.stringify(record), { flag: 'wx', mode: 0o600 });
  try {
    await link(draft, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Ours last: until then no one else can take one. */
async function remove(directory: string, sessionId: string, number: number): Promise<void> {
  const done = (await locksOf(directory, sessionId)).filter((lock) => lock.number <= number);
  for (const { file } of done) await rm(file, { force: true });
}

async function readRecord(file: string): Promise<RecordedProcess | undefined> {
  try {
    const { pid, startTime } = JSON.parse(await readFile(file, 'utf8')) as Partial<RecordedProcess>;
    return typeof pid === 'number' ? { pid, startTime } : undefined;
  } catch {
    return undefined;
  }
}

/** A process that a lock or Claude Code recorded; its pid may belong to another one by now. */
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
async function ownStartTime(): Promise<string | undefined> {
  if (process.platform === 'linux')
    return parseProcStat(await readFile('/proc/self/stat', 'latin1').catch(() => '')).startTime;
  return process.platform === 'darwin' ? startByPs(process.pid) : undefined;
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

/** Claude Code writes the file in place, so a reader may see half of it. */
const TORN_READS = 5;
const TORN_PAUSE_MS = 10;

interface Registration {
  readonly pid: number;
  readonly sessionId: string;
  readonly startTime: string | undefined;
}

/**
 * The Claude Code process that has a session open: each one keeps `<config directory>/sessions/<pid>.json` while it lives. A
 * process started less than a second ago may not be registered yet; it has written nothing by then.
 */
export async function findHolder(
  configDir: string,
  sessionId: string,
  isOurs: (pid: number) => boolean,
): Promise<{ pid: number } | undefined> {
  const directory = path.join(configDir, 'sessions');
  const pids = (await registeredPids(directory)).filter((pid) => !isOurs(pid) && isAlive(pid));
  const registrations = await Promise.all(pids.map((pid) => readRegistration(directory, pid)));
  for (const registration of registrations) {
    if (registration?.sessionId !== sessionId) continue;
    if (await isSameProcess(registration)) return { pid: registration.pid };
  }
  return undefined;
}

async function registeredPids(directory: string): Promise<number[]> {
  const names = await readdir(directory).catch(() => []);
  return names.filter((name) => /^[1-9]\d*\.json$/.test(name)).map((name) => Number.parseInt(name, 10));
}

async function readRegistration(directory: string, pid: number): Promise<Registration | undefined> {
  const file = path.join(directory, `${pid}.json`);
  for (let reads = 1; ; reads++) {
    const content = await readFile(file, 'utf8').catch(() => undefined);
    if (content === undefined) return undefined;
    try {
      return toRegistration(pid, JSON.parse(content));
    } catch {
      if (reads === TORN_READS) return undefined;
      await pause(TORN_PAUSE_MS);
    }
  }
}

function toRegistration(pid: number, entry: unknown): Registration | undefined {
  if (typeof entry !== 'object' || entry === null) return undefined;
  const { sessionId, procStart } = entry as Record<string, unknown>;
  if (typeof sessionId !== 'string') return undefined;
  return { pid, sessionId, startTime: typeof procStart === 'string' ? procStart : undefined };
}
