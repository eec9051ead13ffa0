import { copyFile, stat, utimes } from 'node:fs/promises';

/**
 * A copy of git's index with the time of the original. Git takes a file for unchanged when its size and time are those
 * in the index, unless the index is no younger than the file: a younger copy would hide an edit of the same second.
 */
export async function copyIndex(from: string, to: string, mode = 0): Promise<void> {
  const { atime, mtimeMs } = await stat(from);
  await copyFile(from, to, mode);
  // Never later than the original.
  await utimes(to, atime, new Date(Math.floor(mtimeMs)));
}
