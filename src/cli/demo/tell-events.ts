import path from 'node:path';
import type { Paint } from '../terminal/paint.ts';
import type { CheckAnswer } from '../rehearsal/server-client.ts';

interface Output {
  readonly role?: string;
  readonly text?: string;
  readonly tools?: readonly { readonly name: string; readonly summary: string }[];
  readonly results?: readonly { readonly head: string; readonly isError: boolean }[];
}

/** The events of a session as lines: what Claude says, which tools it calls, what went wrong. */
export function eventLines({ events = [] }: CheckAnswer, project: string, paint: Paint): string[] {
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
