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
  const named = editedFile(toolName, input);
  const directory = await directoryTarget(cwd);
  if (named === undefined) return directory;
  const file = path.resolve(cwd, named);
  return `${directory}, ${await identity(path.dirname(file))}, ${await identity(file)}: ${await contents(file)}`;
}

/** The beginning of every target in this directory. */
export async function directoryTarget(cwd: string): Promise<string> {
  return `in ${await identity(cwd)}`;
}

/** The file that a file tool would change, as it was named. */
export function editedFile(toolName: string, input: Record<string, unknown>): string | undefined {
  const named = EDIT_TOOLS.has(toolName) ? (input['file_path'] ?? input['notebook_path']) : undefined;
  return typeof named === 'string' ? named : undefined;
}

const MAX_HEAD_BYTES = 1_000;
const HEAD = /^(?:ref: refs\/heads\/([^\s\p{Cc}]{1,250})|([0-9a-f]{40,64}))\s*$/u;

/** What is checked out there: a branch, or a commit; undefined outside a repository. Runs nothing. */
export async function checkedOut(cwd: string): Promise<string | undefined> {
  for (let directory = realPath(cwd); ; directory = path.dirname(directory)) {
    const place = path.join(directory, '.git');
    const found = await stat(place).catch(() => undefined);
    if (found) {
      // A worktree has a file that names its own directory.
      const [, gitDirectory = place] = /^gitdir: (.+)$/m.exec((await smallText(place)) ?? '') ?? [];
      const head = await smallText(path.join(path.resolve(directory, gitDirectory), 'HEAD'));
      const [, branch, commit] = HEAD.exec(head ?? '') ?? [];
      return branch ?? commit;
    }
    if (path.dirname(directory) === directory) return undefined;
  }
}

/** Undefined for anything but a small file. */
async function smallText(file: string): Promise<string | undefined> {
  try {
    const handle = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const found = await handle.stat();
      return found.isFile() && found.size <= MAX_HEAD_BYTES ? await handle.readFile('utf8') : undefined;
    } finally {
      await handle.close();
    }
  } catch {
    return undefined;
  }
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
