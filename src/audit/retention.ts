import { readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';

/** Removes rotated audit log files whose last record is older than this. The current file stays. */
export async function removeOldAudit(auditLog: string, before: number): Promise<string[]> {
  if (auditLog === 'off') return [];
  const directory = path.dirname(auditLog);
  const prefix = `${path.basename(auditLog)}.`;
  const removed: string[] = [];
  for (const name of await readdir(directory).catch(() => [])) {
    if (!name.startsWith(prefix) || !/^\d+$/.test(name.slice(prefix.length))) continue;
    const file = path.join(directory, name);
    const { mtimeMs } = await stat(file);
    if (mtimeMs >= before) continue;
    await rm(file);
    removed.push(file);
  }
  return removed;
}
