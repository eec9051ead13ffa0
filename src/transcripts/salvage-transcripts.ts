/** What remains of a process that was killed while starting to write its transcript. */

import { readFile, rm } from 'node:fs/promises';
import { transcriptsOf } from './session-files.ts';

/** Only a few lines precede the first message; a longer file is more than a beginning, and is never removed. */
const MAX_BEGINNING_BYTES = 256 * 1024;

/**
 * Whether one of the session's files contains a message. Claude Code (2.1.325) does not resume a file without one, and
 * does not start another session with its id while the file exists: such files are removed.
 */
export async function salvageTranscripts(configDir: string, sessionId: string): Promise<boolean> {
  const begun: string[] = [];
  for (const { file, size } of await transcriptsOf(configDir, sessionId)) {
    if (size > MAX_BEGINNING_BYTES || (await readFile(file, 'utf8')).split('\n').some(isMessage)) return true;
    begun.push(file);
  }
  for (const file of begun) await rm(file, { force: true });
  return false;
}

function isMessage(line: string): boolean {
  try {
    const entry: unknown = JSON.parse(line);
    if (typeof entry !== 'object' || entry === null || !('type' in entry)) return false;
    return entry.type === 'user' || entry.type === 'assistant';
  } catch {
    // Cut off in the middle of a line.
    return false;
  }
}
