import path from 'node:path';
import type { Answer } from '../../schema/commands.ts';
import type { Action, CheckAnswer, ServerClient, Question } from '../rehearsal/rehearsal.ts';
import { askYesNo, type Paint, type Screen, type Terminal } from '../terminal/terminal.ts';
import { TEST_COMMAND } from './demo-script.ts';

/** How long a poll may wait; events are drawn with at most this delay. */
const LOOK_MS = 250;

export interface Following {
  readonly client: ServerClient;
  readonly sessionId: string;
  readonly project: string;
  readonly screen: Screen;
  readonly paint: Paint;
  readonly decide: Decide;
  readonly signal: AbortSignal;
}

/** Draws a session until it is at rest, and has its requests answered. Resolves with its last state. */
export async function followSession(following: Following): Promise<CheckAnswer> {
  const { client, sessionId, project, screen, paint, signal } = following;
  let cursor: number | undefined;
  for (;;) {
    signal.throwIfAborted();
    await client.call('claude_code_check', { action: 'wait', sessionId, waitMs: LOOK_MS });
    const state = await client.call('claude_code_check', {
      action: 'poll',
      sessionId,
      ...(cursor !== undefined && { cursor }),
    });
    cursor = state.nextCursor;
    for (const line of eventLines(state, project, paint)) screen.line(line);
    for (const action of state.actions ?? []) await answer(action, following);
    if (state.status !== 'running' && state.status !== 'waiting_permission') {
      screen.now('');
      return state;
    }
    screen.now(state.activity ?? 'working');
  }
}

async function answer(action: Action, { client, sessionId, screen, paint, decide, signal }: Following): Promise<void> {
  for (const line of askedLines(action, paint)) screen.line(line);
  // The user types where the status line would be drawn.
  screen.now('');
  const { decision, words, permissionOptions } = await decide(action);
  signal.throwIfAborted();
  await client.call('claude_code_check', {
    action: 'respond_permission',
    sessionId,
    requestId: action.requestId,
    decision,
    ...(permissionOptions && { permissionOptions }),
  });
  screen.line(`    ${decision === 'allow' ? paint.green(`✓ ${words}`) : paint.red(`✗ ${words}`)}`);
}

function askedLines({ type, toolName, plan, input: { questions = [] } }: Action, paint: Paint): string[] {
  const heading = (words: string): string => `  ${paint.yellow('?')} ${paint.bold(words)}`;
  switch (type) {
    case 'user_question':
      return questions.flatMap(({ question, options }) => [
        heading(`Claude asks: ${question}`),
        ...options.map(({ label, description = '' }, index) => `    ${index + 1}. ${label}  ${paint.dim(description)}`),
      ]);
    case 'plan_review':
      return [heading('Claude has a plan'), ...(plan ?? '').split('\n').map((line) => `    ${line}`)];
    case 'permission':
      return [heading(`Claude asks for permission: ${toolName}`)];
  }
}

interface Output {
  readonly role?: string;
  readonly text?: string;
  readonly tools?: readonly { readonly name: string; readonly summary: string }[];
  readonly results?: readonly { readonly head: string; readonly isError: boolean }[];
}

/** The events of a session as lines: what Claude says, which tools it calls, what went wrong. */
function eventLines({ events = [] }: CheckAnswer, project: string, paint: Paint): string[] {
  return events.flatMap(({ type, data }) => {
    if (type === 'error') return [`  ${paint.red('✗')} ${(data as { message?: string }).message ?? 'error'}`];
    return type === 'output' ? outputLines(data as Output, project, paint) : [];
  });
}

function outputLines({ role, text, tools = [], results = [] }: Output, project: string, paint: Paint): string[] {
  return [
    ...(text !== undefined && role !== 'user' ? ['', `  ${paint.cyan('●')} ${text.replaceAll('\n', '\n    ')}`] : []),
    ...tools
      // Its question is shown with its answer.
      .filter(({ name }) => name !== 'AskUserQuestion')
      .map(({ name, summary }) => `    ${paint.bold(name.padEnd(5))} ${summary.replaceAll(project + path.sep, '')}`),
    ...results.filter(({ isError }) => isError).map(({ head }) => `    ${paint.yellow('failed')} ${paint.dim(head)}`),
  ];
}

/** A unified-style diff. */
export function diffLines(diff: string, paint: Paint): string[] {
  return diff
    .trimEnd()
    .split('\n')
    .filter((line) => !/^(index |diff --git )/.test(line))
    .map((line) => {
      if (/^(\+\+\+|---)/.test(line)) return `  ${paint.bold(line)}`;
      if (line.startsWith('+')) return `  ${paint.green(line)}`;
      if (line.startsWith('-')) return `  ${paint.red(line)}`;
      return `  ${line.startsWith('@@') ? paint.cyan(line) : line}`;
    });
}

export interface Verdict {
  readonly decision: Answer['decision'];
  /** A description for the screen. */
  readonly words: string;
  readonly permissionOptions?: Readonly<Record<string, unknown>>;
}

/** Answers Claude's requests: the demo itself, or the person at the terminal. */
export type Decide = (action: Action) => Promise<Verdict>;

/** Allows everything, the first choice of every question; the test command for the rest of the session. */
export function allowAll(pauseMs: number): Decide {
  return async (action) => {
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    const { questions, command } = action.input;
    if (questions) return answered(questions.map(({ question, options }) => [question, options[0]?.label ?? 'Yes']));
    if (action.type === 'plan_review') return { decision: 'allow', words: 'approved' };
    if (command?.includes(TEST_COMMAND))
      return { decision: 'allow', words: 'allowed, for this session', permissionOptions: { always: true } };
    return { decision: 'allow', words: 'allowed' };
  };
}

export function askPerson(terminal: Terminal): Decide {
  return async ({ input: { questions } }) => {
    if (questions) {
      const answers: [string, string][] = [];
      for (const question of questions) answers.push([question.question, await choose(terminal, question)]);
      return answered(answers);
    }
    const allowed = await askYesNo(terminal, '    Allow it?');
    return allowed ? { decision: 'allow', words: 'allowed' } : { decision: 'deny', words: 'denied' };
  };
}

function answered(answers: readonly (readonly [question: string, answer: string])[]): Verdict {
  return {
    decision: 'allow',
    words: answers.map(([, answer]) => answer).join(', '),
    permissionOptions: { answers: Object.fromEntries(answers) },
  };
}

/** By number, or as free text. */
async function choose(terminal: Terminal, { options }: Question): Promise<string> {
  const said = await terminal.ask(`    Your choice (1-${options.length}, or your own words): `);
  return options[Number(said) - 1]?.label ?? (said || (options[0]?.label ?? 'Yes'));
}
