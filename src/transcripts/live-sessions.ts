/** Which Claude Code process has a session open: each one keeps `<config directory>/sessions/<pid>.json` while it lives. */

import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isAlive, isSameProcess } from './session-lock.ts';

/** Claude Code writes the file in place, so a reader may see half of it. */
const TORN_READS = 5;
const TORN_PAUSE_MS = 10;

interface Registration {
  readonly pid: number;
  readonly sessionId: string;
  readonly startTime: string | undefined;
}

/** A process started less than a second ago may not be registered yet; it has written nothing by then. */
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
