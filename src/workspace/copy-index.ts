import { copyFile, stat, utimes } from 'node:fs/promises';
import { DomainError } from '../errors/errors.ts';

/**
 * A copy of git's index with the time of the original. Git takes a file for unchanged when its size and time are those
 * in the index, unless the index is no younger than the file: a younger copy would hide an edit of the same second.
 */
export async function copyIndex(from: string, to: string, mode = 0): Promise<void> {
  const stats = await stat(from);
  // A pipe in its place would be waited for for ever.
  if (!stats.isFile()) throw new DomainError('INVALID_ARGUMENT', `${from} is not a file.`);
  const { atime, mtimeMs } = stats;
  await copyFile(from, to, mode);
  // Never later than the original.
  await utimes(to, atime, new Date(Math.floor(mtimeMs)));
}
