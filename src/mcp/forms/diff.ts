import { oneLine } from '../../engine/conversation/tool-summary.ts';
import { foldBlankLines, isBlankLine } from '../../text/invisible.ts';
import { lineDiff } from './line-diff.ts';
import { visibleLine } from './visible-text.ts';

const MAX_LINES = 40;
const MAX_LINE_CHARS = 160;

/** What an edit changes, line by line, between the lines that both sides share. `short`: long ones are truncated. */
export function diffOf(before: string, after: string, { short }: { short: boolean }): string {
  const maxLines = short ? MAX_LINES : Infinity;
  const marked = short ? cutLine : wholeLine;
  const { removed, added, ...shared } = lineDiff(before, after);
  return [
    ...shared.before.map((line) => marked(' ', line)),
    ...some('-', removed, maxLines - Math.min(added.length, MAX_LINES / 2), marked),
    ...some('+', added, maxLines - Math.min(removed.length, MAX_LINES / 2), marked),
    ...shared.after.map((line) => marked(' ', line)),
  ].join('\n');
}

type Marked = (mark: string, line: string) => string;

/** Runs of blank lines are counted: a form's window is small, and what follows them would be out of sight. */
function some(mark: string, lines: readonly string[], most: number, marked: Marked): string[] {
  const shown = foldBlankLines(
    lines.slice(0, most).map((line) => ({ isBlank: isBlankLine(line), text: marked(mark, line) })),
    ({ isBlank }) => (isBlank ? 'blank' : undefined),
    ({ length }) => ({ text: `⟨${mark} ${length} blank lines⟩` }),
  ).map(({ text }) => text);
  return lines.length > most ? [...shown, `⟨${mark} ${lines.length - most} lines not shown⟩`] : shown;
}

function wholeLine(mark: string, line: string): string {
  return `${mark} ${visibleLine(line)}`;
}

function cutLine(mark: string, line: string): string {
  // Indentation is kept: `oneLine` would fold it.
  const [indent = ''] = /^[ \t]{0,40}/.exec(line) ?? [];
  return `${mark} ${indent.replaceAll('\t', '  ')}${oneLine(line.slice(indent.length), MAX_LINE_CHARS)}`.trimEnd();
}
