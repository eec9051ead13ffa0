import type { Stats } from 'node:fs';
import { copyFile, stat, utimes } from 'node:fs/promises';
import { DomainError } from '../../errors/errors.ts';

/**
 * A copy of git's index with the original's timestamp. Git considers a file unchanged if its size and time match the
 * index, unless the index is no newer than the file: a newer copy would hide an edit in the same second.
 */
export async function copyIndex(from: string, to: string, mode = 0): Promise<void> {
  const stats = await stat(from);
  // A pipe in its place would block forever.
  if (!stats.isFile()) throw new DomainError('INVALID_ARGUMENT', `${from} is not a file.`);
  await copyFile(from, to, mode);
  await dateLike(to, stats);
}

/** Never later than the original. */
export async function dateLike(copy: string, { atime, mtimeMs }: Stats): Promise<void> {
  await utimes(copy, atime, new Date(Math.floor(mtimeMs)));
}
