/** The Claude Code process of a session, as Claude Code itself registers it. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../harness/eventually.ts';
import type { Harness } from '../harness/open-harness.ts';

export async function claudePid(h: Harness, sessionId: string): Promise<number | undefined> {
  const alive = new Set((await h.processes()).map(({ pid }) => pid));
  return registeredPids(h, sessionId).find((pid) => alive.has(pid));
}

/** Like a crash: sends SIGKILL, and waits until the process is gone. */
export async function killClaude(h: Harness, sessionId: string): Promise<void> {
  const pid = await eventually(() => claudePid(h, sessionId), { what: 'the session has a process' });
  process.kill(pid, 'SIGKILL');
  await eventually(async () => (await claudePid(h, sessionId)) === undefined, { what: 'the process is gone' });
}

function registeredPids({ configDir }: Harness, sessionId: string): number[] {
  const directory = join(configDir, 'sessions');
  return listed(directory)
    .filter((name) => /^\d+\.json$/.test(name) && readFile(join(directory, name)).includes(sessionId))
    .map((name) => Number.parseInt(name, 10));
}

function listed(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function readFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // Claude Code removes it when it ends.
    return '';
  }
}
