import { createHash } from 'node:crypto';
import { escapeInvisible } from '../../text/invisible.ts';

/*
 * Where a text is shortened for a reader, a mark says so. The mark carries a checksum, which sets it apart from
 * text that merely looks like one (a page about this server, say), even after a restart.
 */
const MARK = /⟪([0-9]+) characters not shown · ([0-9a-f]{8})([0-9a-f]{8})⟫/g;

/** `seed` distinguishes places where the same number of characters is missing. */
export function shorteningMark(hidden: number, seed: string): string {
  const nonce = hash(seed);
  return `⟪${String(hidden)} characters not shown · ${nonce}${checkSum(String(hidden), nonce)}⟫`;
}

/** The genuine marks in a text; look-alikes are left out. */
export function marksIn(text: string): string[] {
  return [...text.matchAll(MARK)]
    .filter(([, hidden = '', nonce = '', sum]) => sum === checkSum(hidden, nonce))
    .map(([mark]) => mark);
}

function checkSum(hidden: string, nonce: string): string {
  return hash(`claude-code-mcp shortened ${hidden} ${nonce}`);
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}

/** Head and tail of a long text: the end of a command or of a test run says as much as its beginning. */
export function shortenText(text: string, maxChars: number, seed: string): string {
  if (text.length <= maxChars) return text;
  const head = cutAt(text, Math.ceil(maxChars / 2));
  const tail = tailOf(text, Math.floor(maxChars / 2));
  return `${head}${shorteningMark(text.length - head.length - tail.length, seed)}${tail}`;
}

/** Never begins with half a surrogate pair. */
export function tailOf(text: string, chars: number): string {
  if (chars <= 0) return '';
  const tail = text.slice(-chars);
  const first = tail.charCodeAt(0);
  return tail.length < text.length && first >= 0xdc00 && first <= 0xdfff ? tail.slice(1) : tail;
}

/** The value with every long text in it shortened; the same object if nothing was. */
export function shortenTexts<Value>(value: Value, maxChars: number, seed: string): { value: Value; cut: boolean } {
  const short = shortened(value, maxChars, seed);
  return { value: short as Value, cut: short !== value };
}

function shortened(value: unknown, maxChars: number, path: string): unknown {
  if (typeof value === 'string') return shortenText(value, maxChars, path);
  if (typeof value !== 'object' || value === null) return value;
  let cut = false;
  const short = (item: unknown, name: string | number): unknown => {
    const result = shortened(item, maxChars, `${path}/${String(name)}`);
    cut ||= result !== item;
    return result;
  };
  const copy = Array.isArray(value)
    ? value.map(short)
    : Object.fromEntries(Object.entries(value).map(([name, item]) => [name, short(item, name)]));
  return cut ? copy : value;
}

/** Every text in a value, excluding keys. */
export function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}

/** The maximum length per text so that all of them together have `total`. */
export function evenShare(lengths: readonly number[], total: number): number {
  const rising = [...lengths].sort((a, b) => a - b);
  let left = total;
  for (const [index, length] of rising.entries()) {
    const share = Math.floor(left / (rising.length - index));
    if (length > share) return share;
    left -= length;
  }
  return Infinity;
}

/** The most informative field of a tool's input, by tool. */
const SUMMARY_FIELD: Record<string, string> = {
  Bash: 'command',
  PowerShell: 'command',
  Monitor: 'command',
  Read: 'file_path',
  Write: 'file_path',
  Edit: 'file_path',
  NotebookEdit: 'notebook_path',
  Grep: 'pattern',
  Glob: 'pattern',
  WebFetch: 'url',
  WebSearch: 'query',
  Agent: 'description',
  Task: 'description',
  Skill: 'skill',
  TaskCreate: 'subject',
  ToolSearch: 'query',
};

export function summaryField(toolName: string): string | undefined {
  return Object.hasOwn(SUMMARY_FIELD, toolName) ? SUMMARY_FIELD[toolName] : undefined;
}

/** One line on what a tool call would do: `npm test`, `src/main.ts`, a question. */
export function summarizeTool(toolName: string, input: Record<string, unknown>, maxChars = 160): string {
  return oneLine(summaryText(toolName, input), maxChars);
}

const MAX_DESCRIPTION = 240;

/** Like the above, for a call that went wrong: long enough to tell it from others, with the end of a long command. */
export function describeTool(toolName: string, input: Record<string, unknown>): string {
  const text = summaryText(toolName, input);
  const ends =
    text.length > 4 * MAX_DESCRIPTION ? `${cutAt(text, 2 * MAX_DESCRIPTION)} ${text.slice(-MAX_DESCRIPTION)}` : text;
  const line = oneLine(ends, ends.length * 8);
  if (line.length <= MAX_DESCRIPTION) return line;
  const tail = line.slice(-90);
  return `${cutAt(line, MAX_DESCRIPTION - 93)} … ${/^[\uDC00-\uDFFF]/.test(tail) ? tail.slice(1) : tail}`;
}

function summaryText(toolName: string, input: Record<string, unknown>): string {
  const field = summaryField(toolName);
  const told = field === undefined ? undefined : input[field];
  if (typeof told === 'string') return told;
  if (toolName === 'AskUserQuestion') return questionTexts(input).join(' | ');
  if (toolName === 'ExitPlanMode') return 'review the plan';
  const first = Object.values(input).find((value) => typeof value === 'string' && value !== '');
  if (typeof first === 'string') return first;
  return Object.keys(input).length === 0 ? '' : JSON.stringify(input);
}

export function questionTexts(input: Record<string, unknown>): string[] {
  const questions = input['questions'];
  if (!Array.isArray(questions)) return [];
  return questions.flatMap((question: unknown) => {
    const text =
      typeof question === 'object' && question !== null ? (question as { question?: unknown }).question : undefined;
    return typeof text === 'string' ? [text] : [];
  });
}

/** All white space except a single blank, which stays. */
const FOLDED = /\s{2,}|[^\S ]/g;

/** White space folded, invisible characters escaped, truncated with an ellipsis. */
export function oneLine(text: string, maxChars: number): string {
  const head = text.slice(0, maxChars * 4);
  const visible = escapeInvisible(head.replace(FOLDED, ' ')).trim();
  if (visible.length > maxChars) return `${cutAt(visible, maxChars - 1)}…`;
  // Folded blanks must not hide that something follows them.
  return head.length < text.length ? `${visible}…` : visible;
}

/** Never cuts a surrogate pair in two. */
export function cutAt(text: string, chars: number): string {
  const last = text.charCodeAt(chars - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? chars - 1 : chars);
}
