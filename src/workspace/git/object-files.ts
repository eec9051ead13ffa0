import { createHash, randomUUID } from 'node:crypto';
import { access, mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { deflateSync } from 'node:zlib';
import type { FileState } from './status.ts';

/** Git's loose objects, written here: through an index of git's own, an answer would wait for four processes. */

export type StagedFile = readonly [path: string, state: FileState];

interface Directory {
  readonly files: Map<string, FileState>;
  readonly directories: Map<string, Directory>;
}

/** Writes the trees that contain these files. Returns the root tree. */
export async function writeTrees(
  objects: string,
  files: readonly StagedFile[],
  algorithm: 'sha1' | 'sha256',
): Promise<string> {
  const top: Directory = { files: new Map(), directories: new Map() };
  for (const [file, state] of files) {
    const parts = file.split('/');
    const name = parts.pop() ?? '';
    let directory = top;
    for (const part of parts) {
      const below = directory.directories.get(part) ?? { files: new Map(), directories: new Map() };
      directory.directories.set(part, below);
      directory = below;
    }
    directory.files.set(name, state);
  }
  return writeTree(objects, top, algorithm);
}

async function writeTree(objects: string, { files, directories }: Directory, algorithm: string): Promise<string> {
  const entries = [...files].map(([name, { mode, oid }]) => ({ name, sortedAs: Buffer.from(name), mode, oid }));
  for (const [name, below] of directories) {
    const oid = await writeTree(objects, below, algorithm);
    entries.push({ name, sortedAs: Buffer.from(`${name}/`), mode: '40000', oid });
  }
  entries.sort((a, b) => Buffer.compare(a.sortedAs, b.sortedAs));
  const content = entries.map(({ name, mode, oid }) =>
    Buffer.concat([Buffer.from(`${mode.replace(/^0/, '')} ${name}\0`), Buffer.from(oid, 'hex')]),
  );
  const body = Buffer.concat(content);
  return writeObject(objects, Buffer.concat([Buffer.from(`tree ${body.length}\0`), body]), algorithm);
}

async function writeObject(objects: string, object: Buffer, algorithm: string): Promise<string> {
  const oid = createHash(algorithm).update(object).digest('hex');
  const directory = path.join(objects, oid.slice(0, 2));
  const file = path.join(directory, oid.slice(2));
  const isThere = await access(file).then(
    () => true,
    () => false,
  );
  if (isThere) return oid;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const temporary = path.join(directory, `tmp_${randomUUID()}`);
  await writeFile(temporary, deflateSync(object, { level: 1 }), { mode: 0o600 });
  await rename(temporary, file);
  return oid;
}
