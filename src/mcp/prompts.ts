import type { GetPromptResult, ListPromptsResult } from '@modelcontextprotocol/server';
import type { Settings } from '../config/load-settings.ts';
import { DomainError } from '../errors/errors.ts';

type Toolset = Settings['toolset'];
type Given = Readonly<Record<string, string>>;

interface PromptDefinition {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly arguments: readonly { readonly name: string; readonly description: string; readonly required: boolean }[];
  text(given: Given, steps: Steps): string;
}

/** What things are called in a toolset. */
interface Steps {
  start(more: string): string;
  readonly answer: string;
  readonly wait: string;
  readonly reply: string;
  readonly rest: string;
  readonly asks: string;
  readonly compare: string;
  /** How several are started and waited for. */
  readonly parallel: string;
}

const STEPS: Readonly<Record<Toolset, Steps>> = {
  compact: {
    start: (more) => `claude_code {prompt, cwd, waitMs: 45000${more}}`,
    answer:
      'claude_code_check {action: "respond_permission", sessionId, requestId, decision, waitMs: 45000} for each of `actions`',
    wait: 'claude_code_check {action: "wait", sessionId}',
    reply: 'claude_code_reply {sessionId, prompt, waitMs: 45000}',
    rest: '"idle"',
    asks: '"waiting_permission"',
    parallel: `1. Attempts at one task: claude_code {prompt, cwd, attempts: 3, waitMs: 45000}, each in its own worktree; attempts may also list what differs ([{prompt?, model?, effort?}]). Different tasks: claude_code {prompt, cwd, advanced: {workspace: {type: "worktree"}}} for each, without waiting. Each prompt must be self-contained.
2. claude_code_check {action: "wait", sessionIds} for all of them at once; it returns when one asks (answer it, then wait again) or all have finished.`,
    compare:
      'compare them: claude_code_session {action: "compare", sessionIds}; then claude_code_session {action: "apply", sessionId} for each task, or {action: "apply", sessionId, options: {discardOthers: true}} for the best of several attempts.',
  },
  explicit: {
    start: (more) => `claude_create_session {prompt, workingDirectory, waitMs: 45000${more}}`,
    answer: 'claude_respond {sessionId, inputId, decision, waitMs: 45000} for each of `pendingInputs`',
    wait: 'claude_get_status {sessionId, waitMs: 45000}',
    reply: 'claude_send_message {sessionId, message, waitMs: 45000}',
    rest: '"completed"',
    asks: '"waiting_for_input"',
    parallel: `1. Start one session for each, without waiting: claude_create_session {prompt, workingDirectory}. Give each its own directory, such as a git worktree: sessions in the same directory would touch the same files. Each prompt must be self-contained.
2. In turn: claude_get_status {sessionId, waitMs: 45000} for those that are working, claude_respond {sessionId, inputId, decision, waitMs: 45000} for those that ask.`,
    compare: 'compare what each did: `work`, and the diff in its directory.',
  },
};

const where = { name: 'directory', description: 'Where to work; an existing directory.', required: false };

const PROMPTS: readonly PromptDefinition[] = [
  {
    name: 'delegate',
    title: 'Delegate a task to Claude Code',
    description: 'Hands one task to Claude Code and sees it through.',
    arguments: [{ name: 'task', description: 'What to do.', required: true }, where],
    text: ({ task = '', directory }, steps) =>
      `Have Claude Code do this${directory === undefined ? '' : ` in ${directory}`}:

${task}

1. Start it: ${steps.start('')}. Put everything it needs to know into the prompt: it does not see this conversation. Say how to check the work.
2. Status ${steps.asks}: read what it wants to do, then ${steps.answer}. Deny anything beyond the task, with a reason. Status "running": ${steps.wait}.
3. Status ${steps.rest}: the result is what Claude claims, \`work\` is what happened. If work.problems or a failed check contradict the claim, or something is missing: ${steps.reply}.
4. Report what was changed, what was checked and what is left.`,
  },
  {
    name: 'parallel',
    title: 'Run tasks side by side',
    description: 'Several tasks, or several attempts at one, each in its own session.',
    arguments: [
      { name: 'tasks', description: 'The tasks, one per line; or one task and how many attempts.', required: true },
      where,
    ],
    text: ({ tasks = '', directory }, steps) =>
      `Have Claude Code work on these side by side${directory === undefined ? '' : ` in ${directory}`}:

${tasks}

${steps.parallel}
3. When all have finished (status ${steps.rest}), ${steps.compare}
4. Report which were kept, which were not, and why.`,
  },
  {
    name: 'review',
    title: 'Review changes with Claude Code',
    description: 'A second pair of eyes that may read and run checks, but not change anything.',
    arguments: [
      {
        name: 'target',
        description: 'What to review: a branch, a commit, a diff; default: the uncommitted changes.',
        required: false,
      },
      where,
    ],
    text: ({ target = 'the uncommitted changes', directory }, steps) =>
      `Have Claude Code review ${target}${directory === undefined ? '' : ` in ${directory}`}, without changing anything.

1. Start it: ${steps.start(', permissionMode: "plan", disallowedTools: ["Edit", "Write", "NotebookEdit"]')}. Ask only for findings, worst first: file, line, what goes wrong and in which case.
2. Status ${steps.asks}: allow anything that only reads or runs checks, with ${steps.answer}; deny plans to start making changes, since the findings are the answer. Status "running": ${steps.wait}.
3. Check each finding against the code before you pass it on; use ${steps.reply} if one is unclear.
4. Report those that hold up, and say which you dropped.`,
  },
];

export function listPrompts(): ListPromptsResult {
  return {
    prompts: PROMPTS.map(({ name, title, description, arguments: args }) => ({
      name,
      title,
      description,
      arguments: args.map((argument) => ({ ...argument })),
    })),
  };
}

/** The prompt in this toolset's terms. */
export function getPrompt(name: string, given: Given, toolset: Toolset): GetPromptResult {
  const prompt = PROMPTS.find((one) => one.name === name);
  const names = PROMPTS.map((one) => one.name).join(', ');
  if (!prompt) throw new DomainError('INVALID_ARGUMENT', `No prompt ${name.slice(0, 100)}; there are ${names}.`);
  const missing = prompt.arguments.find((argument) => argument.required && (given[argument.name] ?? '').trim() === '');
  if (missing) throw new DomainError('INVALID_ARGUMENT', `${prompt.name} needs ${missing.name}.`);
  const text = prompt.text(given, STEPS[toolset]);
  return { description: prompt.description, messages: [{ role: 'user', content: { type: 'text', text } }] };
}
