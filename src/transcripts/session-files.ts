/** Where Claude Code keeps the transcript of a session: `<config directory>/projects/<project>/<session id>.jsonl`. */

import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';

/** Lower case only: where file names ignore case, a second spelling would open the same transcript twice. */
const SESSION_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Nothing else may become part of a path. */
export function isSessionId(value: string): boolean {
  return SESSION_ID.test(value);
}

export async function findSessionFile(configDir: string, sessionId: string): Promise<string | undefined> {
  const candidates = (await transcriptsOf(configDir, sessionId)).filter(({ size }) => size > 0);
  // A session that moved to another directory may have left a file behind in the first.
  return candidates.toSorted((a, b) => b.lastModified - a.lastModified)[0]?.file;
}

/** Every file of the session, in whichever project, empty ones too. */
export async function transcriptsOf(configDir: string, sessionId: string): Promise<Transcript[]> {
  if (!isSessionId(sessionId)) return [];
  const projects = path.join(configDir, 'projects');
  const names = await readdir(projects).catch(() => []);
  const candidates = await Promise.all(
    names.map((name) => transcriptAt(path.join(projects, name, `${sessionId}.jsonl`))),
  );
  return candidates.filter((candidate) => candidate !== undefined);
}

export interface Transcript {
  readonly file: string;
  readonly lastModified: number;
  /** In bytes. */
  readonly size: number;
}

async function transcriptAt(file: string): Promise<Transcript | undefined> {
  const stats = await stat(file).catch(() => undefined);
  return stats?.isFile() ? { file, lastModified: stats.mtimeMs, size: stats.size } : undefined;
}
