/**
 * Separates servers that open the same session: whoever has a process on an existing transcript holds its lock. Claude
 * Code's own registry comes too late for two that start at the same moment. A lock is a file that names its holder; one
 * whose holder is dead is void.
 *
 * A stale lock is never removed by those who find it, since someone else may own it by then: the next lock is created
 * under the next number, which only one process can do.
 */

import { randomUUID } from 'node:crypto';
import { link, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { isSameProcess, ownStartTime, type RecordedProcess } from './recorded-process.ts';

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

/** Whose lock holds. */
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
