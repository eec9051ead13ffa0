import type { PermissionAsk } from '../../driver/permission-ask.ts';
import { oneLine, summaryField } from '../../engine/conversation/tool-summary.ts';
import { SHOWN_CHARS } from '../../engine/requests/shown-request.ts';
import { foldBlankLines, isBlankLine } from '../../text/invisible.ts';
import { lineDiff } from '../../text/line-diff.ts';
import { barred, field, visibleText, visibleLine } from './form.ts';

const SUMMARY_CHARS = 8_000;
const OTHER_CHARS = 300;
const MAX_FIELDS = 20;

/** The fields of file-changing tools, which are shown as a diff. */
const CHANGES: Record<string, { before?: string; after: string }> = {
  Edit: { before: 'old_string', after: 'new_string' },
  Write: { after: 'content' },
  NotebookEdit: { after: 'new_source' },
};

type Call = Pick<PermissionAsk, 'toolName' | 'input'>;

export interface ToolDetails {
  readonly text: string;
  /** Full length, if the text is only its beginning and end. */
  readonly cutFrom?: number;
}

/**
 * Everything a tool would be called with: the most informative field first, a file change as a diff. Truncated if too
 * long.
 */
export function toolDetails(call: Call): ToolDetails {
  const whole = describe(call, { short: false });
  if (whole.length <= SHOWN_CHARS) return { text: whole };
  return { text: describe(call, { short: true }), cutFrom: whole.length };
}

function describe({ toolName, input }: Call, { short }: { short: boolean }): string {
  const change = changeOf(toolName, input, short);
  const telling = summaryField(toolName);
  const rest = Object.keys(input).filter((name) => name !== telling && !change?.fields.includes(name));
  const names = telling !== undefined && telling in input ? [telling, ...rest] : rest;
  const lines = describeFields(input, names, (name) =>
    short ? (name === telling ? SUMMARY_CHARS : OTHER_CHARS) : Infinity,
  );
  if (change) lines.push(`change:\n${barred(change.diff)}`);
  return lines.join('\n');
}

/** The named fields of an input. Where a limit applies to their length, one applies to their number too. */
export function describeFields(
  input: Record<string, unknown>,
  names: readonly string[],
  maxChars: (name: string) => number = () => OTHER_CHARS,
): string[] {
  const isShort = names.some((name) => maxChars(name) !== Infinity);
  const shown = isShort ? names.slice(0, MAX_FIELDS) : names;
  const lines = shown.map((name) => describeField(name, input[name], maxChars(name)));
  return shown.length < names.length ? [...lines, `⟨${names.length - shown.length} fields not shown⟩`] : lines;
}

function describeField(name: string, value: unknown, maxChars: number): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return field(oneLine(name, Math.min(maxChars, SHOWN_CHARS)), visibleText(text, maxChars));
}

function changeOf(
  toolName: string,
  input: Record<string, unknown>,
  short: boolean,
): { diff: string; fields: string[] } | undefined {
  const change = Object.hasOwn(CHANGES, toolName) ? CHANGES[toolName] : undefined;
  if (!change) return undefined;
  const before = change.before === undefined ? '' : input[change.before];
  const after = input[change.after];
  if (typeof before !== 'string' || typeof after !== 'string') return undefined;
  return {
    diff: diffOf(before, after, { short }),
    fields: change.before === undefined ? [change.after] : [change.before, change.after],
  };
}

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
