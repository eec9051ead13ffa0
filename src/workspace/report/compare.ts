import path from 'node:path';
import type { FileStatus } from '../../schema/enums.ts';
import { zeroSeparated, type Git } from '../git/git.ts';
import { writeTrees, type StagedFile, type Snapshot } from './snapshot.ts';
import { objectFormat } from '../git/pinned-settings.ts';
import { sealed, type Seal } from '../git/sealed.ts';
import type { FileState } from '../git/status.ts';

export interface FileChange {
  readonly path: string;
  readonly oldPath?: string;
  readonly status: FileStatus;
  readonly insertions: number;
  readonly deletions: number;
  /** Binary: no lines to count or show. */
  readonly isBinary: boolean;
}

/** Two trees that contain only what differs: comparing them costs what changed, not the size of the repository. */
export interface Comparison {
  readonly before: string;
  readonly after: string;
  /** How many files the trees contain. */
  readonly count: number;
  /** Changed, but known only by size and time. */
  readonly unread: readonly FileChange[];
}

export interface Pair {
  readonly path: string;
  readonly before: FileState | null;
  readonly after: FileState | null;
}

export async function compareSnapshots(seal: Seal, before: Snapshot, after: Snapshot): Promise<Comparison> {
  const pairs = (await pairsOf(seal, before, after)).filter(
    (pair) => pair.before?.oid !== pair.after?.oid || pair.before?.mode !== pair.after?.mode,
  );
  const isUnread = ({ before, after }: Pair): boolean =>
    [before, after].some((state) => state?.oid.startsWith('stat:'));
  const read = pairs.filter((pair) => !isUnread(pair));
  const objects = path.join(seal.scratch, 'objects');
  const write = (side: 'before' | 'after'): Promise<string> => {
    const files = read.flatMap((pair): StagedFile[] => (pair[side] ? [[pair.path, pair[side]]] : []));
    return writeTrees(objects, files, objectFormat(seal.pinned));
  };
  const [left, right] = [await write('before'), await write('after')];
  const unread = pairs.filter(isUnread).map((pair): FileChange => ({
    path: pair.path.replace(/\/$/, ''),
    status: pair.before === null ? 'added' : pair.after === null ? 'deleted' : 'modified',
    insertions: 0,
    deletions: 0,
    isBinary: true,
  }));
  return { before: left, after: right, count: read.length, unread };
}

async function pairsOf(seal: Seal, before: Snapshot, after: Snapshot): Promise<Pair[]> {
  const committed =
    before.tree === after.tree
      ? []
      : await sealed(seal, { objects: 'scratch', files: false }, (git) => diffRaw(git, before.tree, after.tree));
  const heads = new Map(committed.map((pair) => [pair.path, pair]));
  const left = new Map(before.changed.map((changed) => [changed.path, changed]));
  const right = new Map(after.changed.map((changed) => [changed.path, changed]));
  return [...new Set([...heads.keys(), ...left.keys(), ...right.keys()])].map((file) => {
    const [l, h, r] = [left.get(file), heads.get(file), right.get(file)];
    return {
      path: file,
      // A file that matches HEAD is not in the list; the other side, or the commits between, tell its content.
      before: l ? l.now : h ? h.before : (r?.head ?? null),
      after: r ? r.now : h ? h.after : (l?.head ?? null),
    };
  });
}

export async function diffRaw(git: Git, before: string, after: string): Promise<Pair[]> {
  const fields = zeroSeparated(
    await git(['diff-tree', '-r', '-z', '--raw', '--no-renames', '--no-abbrev', before, after]),
  );
  const pairs: Pair[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const [beforeMode = '', afterMode = '', beforeOid = '', afterOid = ''] = (fields[index] ?? '').slice(1).split(' ');
    const state = (mode: string, oid: string): FileState | null => (mode === '000000' ? null : { mode, oid });
    pairs.push({
      path: fields[index + 1] ?? '',
      before: state(beforeMode, beforeOid),
      after: state(afterMode, afterOid),
    });
  }
  return pairs;
}

const STATUS: Readonly<Record<string, FileStatus>> = {
  A: 'added',
  D: 'deleted',
  M: 'modified',
  R: 'renamed',
  T: 'type-changed',
};

/** How git compares for us. Attributes in the session's files are ignored: `* -diff` would hide changes. */
const DIFF_OPTIONS = ['-r', '-M', '--no-ext-diff', '--no-textconv', '--no-color', '--submodule=short'];

export async function changedFiles(seal: Seal, comparison: Comparison): Promise<FileChange[]> {
  return (await changesIn(seal, comparison, [])).files;
}

/** Also the patch, from the same process: for a few files, however large they are. */
export function filesAndPatch(seal: Seal, comparison: Comparison): Promise<{ files: FileChange[]; patch: string }> {
  return changesIn(seal, comparison, PATCH_OPTIONS);
}

const PATCH_OPTIONS = ['-p', '--src-prefix=a/', '--dst-prefix=b/'];

async function changesIn(
  seal: Seal,
  { before, after, unread }: Comparison,
  options: readonly string[],
): Promise<{ files: FileChange[]; patch: string }> {
  if (before === after) return { files: [...unread], patch: '' };
  const text = await sealed(seal, { objects: 'scratch', files: false }, (git) =>
    git(['diff-tree', ...DIFF_OPTIONS, '-z', '--raw', '--numstat', ...options, before, after]),
  );
  // An empty field separates the patch.
  const end = options.length === 0 ? -1 : text.indexOf('\0\0');
  const changes = parseChanges(end < 0 ? text : text.slice(0, end + 1));
  const files = [...changes, ...unread].sort((a, b) => (a.path < b.path ? -1 : 1));
  return { files, patch: end < 0 ? '' : text.slice(end + 2) };
}

/** The output of `diff-tree -z --raw --numstat`: first what happened to each file, then how many lines. */
function parseChanges(text: string): FileChange[] {
  const fields = zeroSeparated(text);
  const statuses = new Map<string, FileStatus>();
  const changes: FileChange[] = [];
  for (let index = 0; index < fields.length;) {
    const field = fields[index++] ?? '';
    if (field.startsWith(':')) {
      const letter = field.split(' ').at(-1)?.charAt(0) ?? '';
      if (letter === 'R') index++;
      statuses.set(fields[index++] ?? '', STATUS[letter] ?? 'modified');
      continue;
    }
    const [insertions = '', deletions = '', name = ''] = field.split('\t');
    const oldPath = name === '' ? fields[index++] : undefined;
    const file = name === '' ? (fields[index++] ?? '') : field.split('\t').slice(2).join('\t');
    changes.push({
      path: file,
      ...(oldPath !== undefined && { oldPath }),
      status: statuses.get(file) ?? 'modified',
      insertions: Number(insertions) || 0,
      deletions: Number(deletions) || 0,
      isBinary: insertions === '-',
    });
  }
  return changes;
}

export interface DiffPage {
  readonly filesChanged: number;
  readonly insertions: number;
  readonly deletions: number;
  /** On the first page. */
  readonly files?: readonly FileChange[];
  /** Unified, whole lines where a line fits. */
  readonly diff: string;
  readonly totalBytes: number;
  /** Where the next page starts; undefined after the last. */
  readonly nextOffset?: number;
}

export interface PageOptions {
  readonly maxBytes: number;
  readonly offset: number;
}

/** Keeps the comparison from page to page: a new one would count different bytes. */
export async function diffPage(
  seal: Seal,
  comparison: Comparison,
  { maxBytes, offset }: PageOptions,
): Promise<DiffPage> {
  const files = await changedFiles(seal, comparison);
  const patch = await readPatch(seal, comparison);
  const page = cutPage(patch, { maxBytes, offset });
  return {
    filesChanged: files.length,
    insertions: sum(files.map((file) => file.insertions)),
    deletions: sum(files.map((file) => file.deletions)),
    ...(offset === 0 && { files }),
    ...page,
  };
}

export async function readPatch(seal: Seal, { before, after, unread }: Comparison): Promise<Buffer> {
  const { stdout } = await sealed(seal, { objects: 'scratch', files: false }, (git) =>
    git.bytes(['diff-tree', ...DIFF_OPTIONS, ...PATCH_OPTIONS, before, after]),
  );
  const named = unread.map(
    ({ path, status }) => `Not shown, too large or not a file of this repository: ${path} (${status})\n`,
  );
  return Buffer.concat([stdout, Buffer.from(named.join(''))]);
}

export function cutPage(
  patch: Buffer,
  { maxBytes, offset }: PageOptions,
): Pick<DiffPage, 'diff' | 'totalBytes' | 'nextOffset'> {
  const begin = Math.min(offset, patch.length);
  let end = Math.min(begin + Math.max(1, maxBytes), patch.length);
  if (end < patch.length) {
    const lineEnd = patch.lastIndexOf('\n', end - 1) + 1;
    if (lineEnd > begin) end = lineEnd;
    else {
      // A line longer than the page is cut, but not within a character.
      while (end > begin + 1 && isContinuation(patch[end])) end--;
      if (isContinuation(patch[end])) while (end < patch.length && isContinuation(patch[end])) end++;
    }
  }
  const diff = patch.subarray(begin, end).toString('utf8');
  return { diff, totalBytes: patch.length, ...(end < patch.length && { nextOffset: end }) };
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
