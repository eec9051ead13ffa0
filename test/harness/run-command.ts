/** Runs the command to its end in its own home, without a client. */

import { execFile } from 'node:child_process';
import { builtServer } from './built-server.ts';
import { createHome, type IsolatedHome } from './isolated-home.ts';
import type { ServerStart } from './open-harness.ts';

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandStart extends ServerStart {
  /** Written to stdin right after the start. */
  readonly input?: string;
}

/** More than a slow machine needs; a command that keeps serving is killed, and its code is `null`. */
const MAX_RUN_MS = 15_000;

export async function runCommand(start: CommandStart): Promise<Ended> {
  const place = await createHome();
  try {
    return await runCommandIn(place, start);
  } finally {
    await place.remove();
  }
}

export function runCommandIn(
  { project, env: isolated }: Pick<IsolatedHome, 'project' | 'env'>,
  { args = [], env = {}, input = '' }: CommandStart,
): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [builtServer(), ...args],
      { cwd: project, env: { ...isolated(), ...env }, timeout: MAX_RUN_MS },
      (_error, stdout, stderr) => resolve({ code: child.exitCode, stdout, stderr }),
    );
    // It may exit before reading.
    child.stdin?.on('error', () => undefined).write(input);
  });
}
