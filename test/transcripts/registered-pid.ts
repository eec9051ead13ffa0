/** The process that Claude Code's registry names for a session. */

import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

export async function registeredPid(configDir: string, sessionId: string): Promise<number> {
  const directory = path.join(configDir, 'sessions');
  for (const name of await readdir(directory)) {
    if (name.endsWith('.json') && (await readFile(path.join(directory, name), 'utf8')).includes(sessionId)) {
      return Number.parseInt(name, 10);
    }
  }
  throw new Error(`no process is registered for ${sessionId}`);
}
