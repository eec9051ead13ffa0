import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { lockSession, type SessionLock } from '../../src/transcripts/session-lock.ts';

const ID = '11111111-2222-4333-8444-555555555555';

async function lockDirectory(): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), 'locks-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function deadPid(): Promise<number> {
  const child = spawn(process.execPath, ['-e', '0']);
  await once(child, 'exit');
  return child.pid!;
}

const isLock = (outcome: SessionLock | { pid: number }): outcome is SessionLock => 'release' in outcome;

test('at most one of many concurrent callers gets the lock, and another once it is released', async () => {
  const directory = await lockDirectory();
  for (let round = 0; round < 20; round++) {
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => lockSession(directory, ID)));
    const locks = outcomes.filter(isLock);
    expect(locks.length).toBeLessThanOrEqual(1);
    for (const lock of locks) await lock.release();
  }
  const last = await lockSession(directory, ID);
  expect(isLock(last)).toBe(true);
  expect(await lockSession(directory, ID)).toEqual({ pid: process.pid });
  expect(isLock(await lockSession(directory, ID.replace('1', '2')))).toBe(true);
});

test('locks left behind by a killed server do not block, and are removed by the next', async () => {
  const directory = await lockDirectory();
  await writeFile(path.join(directory, `${ID}.1.lock`), JSON.stringify({ pid: await deadPid() }));
  // Its pid is in use, but by another process.
  await writeFile(path.join(directory, `${ID}.2.lock`), JSON.stringify({ pid: process.pid, startTime: '1' }));
  await writeFile(path.join(directory, `${ID}.3.lock`), 'torn');
  const outcomes = await Promise.all([1, 2, 3].map(() => lockSession(directory, ID)));
  const locks = outcomes.filter(isLock);
  expect(locks.length).toBeLessThanOrEqual(1);
  for (const lock of locks) await lock.release();
  const next = await lockSession(directory, ID);
  expect(isLock(next)).toBe(true);
  if (isLock(next)) await next.release();
  expect(await readdir(directory)).toEqual([]);
});
