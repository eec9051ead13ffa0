import { chmod, copyFile, mkdir, readdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { lineDiff } from '../../text/line-diff.ts';
import type { Paint } from '../terminal/terminal.ts';

/** Undefined when there is no such file. */
export async function readIfExists(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

export interface WriteOptions {
  readonly now: Date;
  /** Private, including its backup: there is a token in them. */
  readonly isPrivate?: boolean;
}

/** Writes atomically and keeps a backup beside the file. Returns the path of the backup. */
export async function writeWithBackup(
  file: string,
  text: string,
  { now, isPrivate = false }: WriteOptions,
): Promise<string | undefined> {
  const target = await targetOf(file);
  await mkdir(path.dirname(target), { recursive: true });
  const mode = await stat(target).then(
    (found) => found.mode & 0o777,
    () => undefined,
  );
  const backup = mode === undefined ? undefined : `${target}${BACKUP}${stampOf(now)}`;
  if (backup !== undefined) {
    await copyFile(target, backup);
    if (isPrivate) await makePrivate(backup);
  }
  const fresh = `${target}.new-${stampOf(now)}`;
  try {
    // These files hold keys: a new one must not be readable by others.
    await writeFile(fresh, text, { mode: (mode ?? 0o600) & (isPrivate ? OWNER : 0o777), flag: 'wx' });
    await rename(fresh, target);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
  return backup;
}

/** Returns whether others could read it. */
export async function makePrivate(file: string): Promise<boolean> {
  const { mode } = await stat(file);
  if (process.platform === 'win32' || (mode & OTHERS) === 0) return false;
  await chmod(file, mode & OWNER);
  return true;
}

/** Removes a file that would end up empty. Returns the path of its backup. */
export async function removeWithBackup(file: string, now: Date): Promise<string> {
  const target = await targetOf(file);
  const backup = `${target}${BACKUP}${stampOf(now)}`;
  await copyFile(target, backup);
  await rm(file);
  return backup;
}

/** The newest backup that passes the check; undefined if there is none. */
export async function lastBackup(file: string, accepts: (text: string) => boolean): Promise<string | undefined> {
  const target = await targetOf(file);
  const names = await readdir(path.dirname(target)).catch(() => []);
  const stamped = names.filter((name) => name.startsWith(`${path.basename(target)}${BACKUP}`));
  for (const name of stamped.sort().reverse()) {
    const text = await readIfExists(path.join(path.dirname(target), name));
    if (text !== undefined && accepts(text)) return text;
  }
  return undefined;
}

const BACKUP = '.backup-';
const OWNER = 0o700;
const OTHERS = 0o077;

/** Sorts by time. */
function stampOf(now: Date): string {
  return now.toISOString().replace(/[:.]/g, '-');
}

/** People symlink such files into their dotfiles; the link has to stay a link. */
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
