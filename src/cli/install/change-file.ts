import { copyFile, mkdir, readdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { lineDiff } from '../../mcp/forms/line-diff.ts';
import type { Paint } from '../terminal/paint.ts';

/** Undefined when there is no such file. */
export async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Writes whole or not at all, and keeps what was there beside it. Returns where that is. */
export async function writeWithBackup(file: string, text: string, now: Date): Promise<string | undefined> {
  const target = await targetOf(file);
  await mkdir(path.dirname(target), { recursive: true });
  const mode = await stat(target).then(
    (found) => found.mode & 0o777,
    () => undefined,
  );
  const backup = mode === undefined ? undefined : `${target}${BACKUP}${stampOf(now)}`;
  if (backup !== undefined) await copyFile(target, backup);
  const fresh = `${target}.new-${stampOf(now)}`;
  try {
    // Such files hold keys: nobody else gets to read a new one.
    await writeFile(fresh, text, { mode: mode ?? 0o600, flag: 'wx' });
    await rename(fresh, target);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
  return backup;
}

/** Takes a file away that would have nothing in it. Returns where it is kept. */
export async function removeWithBackup(file: string, now: Date): Promise<string> {
  const target = await targetOf(file);
  const backup = `${target}${BACKUP}${stampOf(now)}`;
  await copyFile(target, backup);
  await rm(file);
  return backup;
}

/** The file as it was kept last before something was true of it; undefined when no such copy is there. */
export async function lastBackup(file: string, isBefore: (text: string) => boolean): Promise<string | undefined> {
  const target = await targetOf(file);
  const names = await readdir(path.dirname(target)).catch(() => []);
  const stamped = names.filter((name) => name.startsWith(`${path.basename(target)}${BACKUP}`));
  for (const name of stamped.sort().reverse()) {
    const text = await readIfThere(path.join(path.dirname(target), name));
    if (text !== undefined && isBefore(text)) return text;
  }
  return undefined;
}

const BACKUP = '.backup-';

/** Sorts by time. */
function stampOf(now: Date): string {
  return now.toISOString().replace(/[:.]/g, '-');
}

/** People keep such files as links into a repository of their own; the link has to stay one. */
function targetOf(file: string): Promise<string> {
  return realpath(file).catch(() => file);
}

/** The lines that change, with a few around them. */
export function changedLines(before: string, after: string, paint: Paint): string[] {
  const diff = lineDiff(before, after);
  return [
    ...diff.before.map((line) => `    ${line}`),
    ...diff.removed.map((line) => paint.red(`  - ${line}`)),
    ...diff.added.map((line) => paint.green(`  + ${line}`)),
    ...diff.after.map((line) => `    ${line}`),
  ];
}
