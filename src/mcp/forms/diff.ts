import { oneLine } from '../../engine/tool-summary.ts';
import { visibleText } from './visible-text.ts';

const MAX_LINES = 40;
const MAX_LINE_CHARS = 160;
const CONTEXT = 2;

/** What an edit changes, line by line, between the lines that both sides share. `short`: long ones are cut. */
export function diffOf(before: string, after: string, { short }: { short: boolean }): string {
  const maxLines = short ? MAX_LINES : Infinity;
  const marked = short ? cutLine : wholeLine;
  const old = linesOf(before);
  const now = linesOf(after);
  const head = sharedAtStart(old, now);
  const tail = sharedAtStart(old.slice(head).reverse(), now.slice(head).reverse());
  const removed = old.slice(head, old.length - tail);
  const added = now.slice(head, now.length - tail);
  return [
    ...old.slice(Math.max(0, head - CONTEXT), head).map((line) => marked(' ', line)),
    ...some('-', removed, maxLines - Math.min(added.length, MAX_LINES / 2), marked),
    ...some('+', added, maxLines - Math.min(removed.length, MAX_LINES / 2), marked),
    ...old.slice(old.length - tail, old.length - tail + CONTEXT).map((line) => marked(' ', line)),
  ].join('\n');
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/);
}

function sharedAtStart(a: string[], b: string[]): number {
  const most = Math.min(a.length, b.length);
  let count = 0;
  while (count < most && a[count] === b[count]) count++;
  return count;
}

type Marked = (mark: string, line: string) => string;

function some(mark: string, lines: string[], most: number, marked: Marked): string[] {
  const shown = lines.slice(0, most).map((line) => marked(mark, line));
  return lines.length > most ? [...shown, `⟨${mark} ${lines.length - most} lines not shown⟩`] : shown;
}

function wholeLine(mark: string, line: string): string {
  return `${mark} ${visibleText(line)}`;
}

function cutLine(mark: string, line: string): string {
  // Indentation is kept: `oneLine` would fold it.
  const [indent = ''] = /^[ \t]{0,40}/.exec(line) ?? [];
  return `${mark} ${indent.replaceAll('\t', '  ')}${oneLine(line.slice(indent.length), MAX_LINE_CHARS)}`.trimEnd();
}
