import { createHash, randomUUID } from 'node:crypto';
import { access, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { deflateSync } from 'node:zlib';
import type { FileState } from './status.ts';

/**
 * Two of git's file formats, read and written here, since an answer would otherwise wait for a process each. See
 * gitformat-index(5) and the loose object format.
 */

export type StagedFile = readonly [path: string, state: FileState];

/** Times, numbers, mode and size of a file, at the beginning of its entry. */
export const STAT_BYTES = 40;
const MODE_AT = 24;
const EXTENDED = 0x4000;

interface IndexEntry {
  readonly begin: number;
  readonly flagsAt: number;
  readonly nameAt: number;
  readonly end: number;
}

/** Where the entries of an index are; undefined for an unknown version. */
export function indexEntries(bytes: Buffer, oidBytes: number): IndexEntry[] | undefined {
  const version = bytes.readUInt32BE(4);
  if (bytes.toString('latin1', 0, 4) !== 'DIRC' || (version !== 2 && version !== 3)) return undefined;
  const entries: IndexEntry[] = [];
  let begin = 12;
  for (let count = bytes.readUInt32BE(8); count > 0; count--) {
    const flagsAt = begin + STAT_BYTES + oidBytes;
    const nameAt = flagsAt + ((bytes.readUInt16BE(flagsAt) & EXTENDED) === 0 ? 2 : 4);
    const end = bytes.indexOf(0, nameAt);
    entries.push({ begin, flagsAt, nameAt, end });
    // One to eight zeros: an entry is a multiple of eight bytes long.
    begin += (((end - begin) >> 3) + 1) << 3;
  }
  return entries;
}

/** The contents of an index that git has just written; undefined for an unknown version. */
export async function readIndex(file: string, oidBytes: number): Promise<StagedFile[] | undefined> {
  const bytes = await readFile(file);
  return indexEntries(bytes, oidBytes)?.map(({ begin, flagsAt, nameAt, end }) => {
    const mode = bytes.readUInt32BE(begin + MODE_AT).toString(8);
    const oid = bytes.toString('hex', begin + STAT_BYTES, flagsAt);
    return [bytes.toString('utf8', nameAt, end), { mode, oid }];
  });
}

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
