import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import path from 'node:path';
import { EDIT_TOOLS } from '../../schema/enums.ts';
import { realPath } from '../rules/directories.ts';

/** Files of any size are read in chunks, but no one waits for a huge one. */
const MAX_READ_BYTES = 64 * 1024 * 1024;

/**
 * What a call would act on right now, as a text to compare: its working directory and, for a file tool, the file with
 * its contents. A path alone is not enough: a directory replaced by a link, or by another directory, makes the same
 * call act elsewhere.
 */
export async function callTarget(toolName: string, input: Record<string, unknown>, cwd: string): Promise<string> {
  const named = EDIT_TOOLS.has(toolName) ? (input['file_path'] ?? input['notebook_path']) : undefined;
  const directory = `in ${await identity(cwd)}`;
  if (typeof named !== 'string') return directory;
  const file = path.resolve(cwd, named);
  return `${directory}, ${await identity(path.dirname(file))}, ${await identity(file)}: ${await contents(file)}`;
}

/**
 * Where a path really leads, and which file that is. Without the device: hubs that share a file system number it
 * differently, and another device cannot appear at the same real path without a mount.
 */
async function identity(named: string): Promise<string> {
  const real = realPath(named);
  return `${JSON.stringify(real)} ${await inode(real)}`;
}

/** Of what does not exist yet: the directory that it would be created in. */
async function inode(file: string): Promise<string> {
  try {
    return String((await stat(file, { bigint: true })).ino);
  } catch (error) {
    const parent = path.dirname(file);
    return parent === file ? codeOf(error) : `${codeOf(error)} in ${await inode(parent)}`;
  }
}

async function contents(file: string): Promise<string> {
  try {
    // A pipe would keep the reader waiting.
    const handle = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const found = await handle.stat();
      if (!found.isFile()) return 'not a file';
      if (found.size > MAX_READ_BYTES) return `${String(found.size)} bytes, changed ${String(found.mtimeMs)}`;
      const hash = createHash('sha256');
      for await (const piece of handle.createReadStream({ autoClose: false })) hash.update(piece as Buffer);
      return hash.digest('hex');
    } finally {
      await handle.close();
    }
  } catch (error) {
    return codeOf(error);
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'unreadable';
}
