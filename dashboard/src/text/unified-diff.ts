import { markChanges, type DiffLine } from './line-diff.ts';

export interface FileDiff {
  readonly path: string;
  readonly oldPath?: string;
  /** What git says about the file before its first hunk: modes, renames, that it is binary. */
  readonly notes: readonly string[];
  readonly hunks: readonly Hunk[];
}

export interface Hunk {
  readonly header: string;
  readonly lines: readonly DiffLine[];
}

/** Splits git's output into files and hunks. Anything it does not understand becomes a note, never lost. */
export function parseUnifiedDiff(text: string): FileDiff[] {
  const files: { path: string; oldPath?: string; notes: string[]; hunks: { header: string; lines: DiffLine[] }[] }[] =
    [];
  let left = { old: 0, new: 0 };
  let at = { old: 0, new: 0 };
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  for (const line of lines) {
    const file = files.at(-1);
    const hunk = file?.hunks.at(-1);
    if (hunk && (left.old > 0 || left.new > 0 || line.startsWith('\\'))) {
      const sign = line[0];
      const content = line.slice(1);
      if (sign === '\\') {
        hunk.lines.push({ kind: 'same', text: line });
      } else if (sign === '+') {
        hunk.lines.push({ kind: 'added', text: content, newLine: at.new++ });
        left.new--;
      } else if (sign === '-') {
        hunk.lines.push({ kind: 'removed', text: content, oldLine: at.old++ });
        left.old--;
      } else {
        hunk.lines.push({ kind: 'same', text: content, oldLine: at.old++, newLine: at.new++ });
        left.old--;
        left.new--;
      }
      continue;
    }
    const header = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
    if (header && file) {
      at = { old: Number(header[1]), new: Number(header[3]) };
      left = { old: Number(header[2] ?? 1), new: Number(header[4] ?? 1) };
      file.hunks.push({ header: line, lines: [] });
    } else if (line.startsWith('diff --git ')) {
      files.push({ path: pathOf(line), notes: [], hunks: [] });
    } else if (line.startsWith('+++ ') && file) {
      file.path = stripPrefix(line.slice(4)) ?? file.path;
    } else if (line.startsWith('--- ') && file) {
      const oldPath = stripPrefix(line.slice(4));
      if (oldPath !== undefined) file.oldPath = oldPath;
    } else if (line.startsWith('rename from ') && file) {
      file.oldPath = unquote(line.slice('rename from '.length));
    } else if (file) {
      if (!line.startsWith('index ')) file.notes.push(line);
    } else if (line.trim() !== '') {
      files.push({ path: '', notes: [line], hunks: [] });
    }
  }
  return files.map((file) => ({
    ...file,
    hunks: file.hunks.map((hunk) => ({ ...hunk, lines: markChanges(hunk.lines) })),
  }));
}

function pathOf(line: string): string {
  const rest = line.slice('diff --git '.length);
  const quoted = /"b\/((?:[^"\\]|\\.)*)"$/.exec(rest)?.[1];
  if (quoted !== undefined) return unquote(`"${quoted}"`);
  // Both halves name the same file unless it was renamed, and then another line says so.
  const half = rest.slice((rest.length + 1) / 2);
  return half.startsWith('b/') ? half.slice(2) : (rest.split(' b/').at(-1) ?? rest);
}

function stripPrefix(name: string): string | undefined {
  const plain = unquote(name.replace(/\t$/, ''));
  return plain === '/dev/null' ? undefined : plain.replace(/^[ab]\//, '');
}

/** Git quotes names with unusual characters as C does, byte by byte. */
function unquote(name: string): string {
  if (!name.startsWith('"') || !name.endsWith('"')) return name;
  const bytes: number[] = [];
  const body = name.slice(1, -1);
  const encoder = new TextEncoder();
  for (const [, octal, escaped, plain] of body.matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/gs)) {
    if (octal !== undefined) bytes.push(Number.parseInt(octal, 8));
    else bytes.push(...encoder.encode(plain ?? ESCAPES[escaped ?? ''] ?? escaped ?? ''));
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

const ESCAPES: Record<string, string> = { n: '\n', t: '\t', r: '\r', a: '\x07', b: '\b', f: '\f', v: '\v' };
