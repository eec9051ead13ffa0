import { readFile, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { EditPlace } from '../../schema/results.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import { escapeInvisible } from '../../text/invisible.ts';
import { cutAt } from '../conversation/tool-summary.ts';

const MAX_FILE_BYTES = 1_000_000;
const LINES_AROUND = 2;
const LINE_CHARS = 200;
/** A caller waiting for the request must not have to wait for a file system. */
const PATIENCE_MS = 500;

/** Where an edit would go, for a file in the directories of the session; nothing else is read for the caller. */
export async function findEditPlace(
  input: Readonly<Record<string, unknown>>,
  { cwd = process.cwd(), additionalDirectories = [] }: Pick<SessionOptions, 'cwd' | 'additionalDirectories'>,
): Promise<EditPlace | undefined> {
  const { file_path: file, old_string: old } = input;
  if (typeof file !== 'string' || typeof old !== 'string' || old === '') return undefined;
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), PATIENCE_MS);
    timer.unref();
  });
  const found = readInside(file, [cwd, ...additionalDirectories]).then(
    (text) => placeIn(text, old),
    () => undefined,
  );
  try {
    return await Promise.race([found, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

async function readInside(file: string, directories: readonly string[]): Promise<string> {
  const [real, ...roots] = await Promise.all([file, ...directories].map((name) => realpath(name)));
  const isInside = roots.some((root) => {
    const relative = path.relative(root, real ?? '');
    return relative !== '' && relative !== '..' && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative);
  });
  if (real === undefined || !isInside) return '';
  const info = await stat(real);
  return info.isFile() && info.size <= MAX_FILE_BYTES ? readFile(real, 'utf8') : '';
}

export function placeIn(text: string, old: string): EditPlace | undefined {
  const at = text.indexOf(old);
  if (at < 0) return undefined;
  // The last line break ends a line and begins none.
  const lines = text.replace(/\r?\n$/, '').split(/\r?\n/);
  const first = text.slice(0, at).split('\n').length;
  const last = first + old.replace(/\n$/, '').split('\n').length - 1;
  const shown = (from: number, to: number): string[] =>
    lines.slice(Math.max(0, from), to).map((line) => escapeInvisible(cutAt(line.replaceAll('\t', '  '), LINE_CHARS)));
  return { line: first, before: shown(first - 1 - LINES_AROUND, first - 1), after: shown(last, last + LINES_AROUND) };
}
