import { escapeInvisible } from '../../text/invisible.ts';

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
