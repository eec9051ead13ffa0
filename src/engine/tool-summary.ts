/** The field of a tool's input that tells most about the call, by tool. */
const TELLING_FIELD: Record<string, string> = {
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

/** One line on what a tool call would do: `npm test`, `src/main.ts`, a question. */
export function summarizeTool(toolName: string, input: Record<string, unknown>, maxChars = 160): string {
  return oneLine(tellingText(toolName, input), maxChars);
}

function tellingText(toolName: string, input: Record<string, unknown>): string {
  const field = TELLING_FIELD[toolName];
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

/** Control characters and those that turn the direction of writing: they could make a command look like another. */
const UNSEEN = /[\p{Cc}\p{Bidi_Control}\u200b\u2028\u2029\ufeff]/gu;

/** White space folded, unseen characters made visible, cut with an ellipsis. */
export function oneLine(text: string, maxChars: number): string {
  const visible = text
    .slice(0, maxChars * 4)
    .replace(/\s+/g, ' ')
    .replace(UNSEEN, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .trim();
  return visible.length > maxChars ? `${cutAt(visible, maxChars - 1)}…` : visible;
}

/** Never cuts a surrogate pair in two. */
export function cutAt(text: string, chars: number): string {
  const last = text.charCodeAt(chars - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? chars - 1 : chars);
}
