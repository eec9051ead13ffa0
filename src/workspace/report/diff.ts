import { changedFiles, DIFF_OPTIONS, type Comparison, type FileChange } from './compare.ts';
import { sealed, type Seal } from '../git/sealed.ts';

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

async function readPatch(seal: Seal, { before, after, unread }: Comparison): Promise<Buffer> {
  const { stdout } = await sealed(seal, { objects: 'scratch', files: false }, (git) =>
    git.bytes(['diff-tree', ...DIFF_OPTIONS, '-p', '--src-prefix=a/', '--dst-prefix=b/', before, after]),
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
