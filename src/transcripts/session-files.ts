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
  if (!isSessionId(sessionId)) return undefined;
  const projects = path.join(configDir, 'projects');
  const names = await readdir(projects).catch(() => []);
  const candidates = await Promise.all(
    names.map((name) => transcriptAt(path.join(projects, name, `${sessionId}.jsonl`))),
  );
  return newest(candidates.filter((candidate) => candidate !== undefined))?.file;
}

interface Transcript {
  readonly file: string;
  readonly lastModified: number;
}

async function transcriptAt(file: string): Promise<Transcript | undefined> {
  const stats = await stat(file).catch(() => undefined);
  return stats?.isFile() && stats.size > 0 ? { file, lastModified: stats.mtimeMs } : undefined;
}

/** A session that moved to another directory may have left a file behind in the first. */
function newest(transcripts: readonly Transcript[]): Transcript | undefined {
  return transcripts.toSorted((a, b) => b.lastModified - a.lastModified)[0];
}
