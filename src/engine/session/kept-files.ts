import { randomUUID } from 'node:crypto';
import { chmod, copyFile, lstat, mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { DomainError, messageOf } from '../../errors/errors.ts';
import { stateOf } from './file-trail.ts';

export function rewindCopiesDir(stateDir: string): string {
  return path.join(stateDir, 'rewind');
}

const MANIFEST = 'files.json';

const manifest = z.object({
  pid: z.number(),
  files: z.array(z.object({ path: z.string(), copy: z.string().optional() })),
});

interface Kept {
  readonly path: string;
  /** Missing if there is no file and should be none. */
  readonly copy?: string | undefined;
  readonly mode: number;
}

/**
 * Runs something that changes more files than it should, and restores these. Claude Code rewinds all files or none:
 * they are copied aside first, so that nothing is lost if the machine stops in between.
 */
export async function keepFiles<T>(directory: string, files: readonly string[], action: () => Promise<T>): Promise<T> {
  if (files.length === 0) return action();
  const aside = path.join(directory, randomUUID());
  const kept = await copyAside(aside, files);
  try {
    return await action();
  } finally {
    await putBack(aside, kept);
  }
}

async function copyAside(aside: string, files: readonly string[]): Promise<Kept[]> {
  await mkdir(aside, { recursive: true, mode: 0o700 });
  const kept: Kept[] = [];
  for (const [index, file] of files.entries()) {
    const found = await lstat(file).catch(() => undefined);
    // Claude Code leaves anything else alone.
    if (found && !found.isFile()) continue;
    const copy = found && path.join(aside, `${index}-${path.basename(file)}`);
    if (copy !== undefined) await copyDurably(file, copy);
    kept.push({ path: file, copy, mode: found?.mode ?? 0 });
  }
  const told: z.infer<typeof manifest> = { pid: process.pid, files: kept };
  await writeFile(path.join(aside, MANIFEST), JSON.stringify(told), { mode: 0o600, flush: true });
  return kept;
}

async function putBack(aside: string, kept: readonly Kept[]): Promise<void> {
  try {
    for (const { path: file, copy, mode } of kept) {
      if (copy === undefined) await rm(file, { force: true });
      else if (!(await same(file, copy))) await replace(file, copy, mode);
    }
    await rm(aside, { recursive: true, force: true });
  } catch (error) {
    throw new DomainError(
      'INTERNAL',
      `A file that should have been left alone could not be restored (${messageOf(error)}); copies are in ${aside}.`,
    );
  }
}

/** The file is never half-written. */
async function replace(file: string, copy: string, mode: number): Promise<void> {
  const beside = path.join(path.dirname(file), `.${path.basename(file)}.${randomUUID()}`);
  try {
    await copyDurably(copy, beside);
    await chmod(beside, mode & 0o7777);
    await rename(beside, file);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}

async function copyDurably(from: string, to: string): Promise<void> {
  await copyFile(from, to);
  const handle = await open(to, 'r+').catch(() => undefined);
  try {
    await handle?.sync();
  } finally {
    await handle?.close();
  }
}

async function same(file: string, copy: string): Promise<boolean> {
  return (await stateOf(file)).bytes === (await stateOf(copy)).bytes;
}

/** What interrupted rewinds left behind: one line each. Copies that are no longer needed are removed. */
export async function findKeptFiles(directory: string, isAlive: (pid: number) => boolean): Promise<string[]> {
  const lines: string[] = [];
  for (const name of await readdir(directory).catch(() => [])) {
    const aside = path.join(directory, name);
    const read = manifest.safeParse(await readFile(path.join(aside, MANIFEST), 'utf8').then(JSON.parse, () => ({})));
    // Without a list, the rewind had not started yet.
    if (read.success && isAlive(read.data.pid)) continue;
    const changed: string[] = [];
    for (const { path: file, copy } of read.success ? read.data.files : [])
      if (copy !== undefined && !(await same(file, copy))) changed.push(`${file} (copy: ${copy})`);
    if (changed.length === 0) await rm(aside, { recursive: true, force: true });
    else
      lines.push(
        `A rewind was interrupted and may have changed files it should have left alone: ${changed.join(', ')}`,
      );
  }
  return lines;
}
