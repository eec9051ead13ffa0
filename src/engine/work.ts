import type { Problem, Work } from '../schema/results.ts';
import type { ToolUse } from './activity.ts';
import { tailOf } from './shortening.ts';
import { oneLine } from './tool-summary.ts';

const MOST_PROBLEMS = 5;
const TAIL_CHARS = 200;
const WHAT_CHARS = 80;

const COMMAND_TOOLS: ReadonlySet<string> = new Set(['Bash', 'PowerShell']);

export interface CommandCounts {
  commandsRun: number;
  commandsFailed: number;
}

/** Evidence of what a call did, from its tool calls: the answer is only what Claude says about it. */
export function workOf(uses: readonly ToolUse[], commands: Readonly<CommandCounts>): Work | undefined {
  const problems = uses.filter(isProblem).slice(-MOST_PROBLEMS).map(toProblem);
  if (commands.commandsRun === 0 && problems.length === 0) return undefined;
  return { ...commands, ...(problems.length > 0 && { problems }) };
}

/** A call that ended is counted; `by` -1 takes it back where it turns out that it never ran. */
export function countCommand(counts: CommandCounts, { toolName, status }: ToolUse, by: 1 | -1 = 1): void {
  if (!COMMAND_TOOLS.has(toolName) || (status !== 'completed' && status !== 'failed')) return;
  counts.commandsRun += by;
  if (status === 'failed') counts.commandsFailed += by;
}

export function isProblem({ status }: Pick<ToolUse, 'status'>): boolean {
  return status === 'failed' || status === 'denied';
}

function toProblem({ toolName, summary, status, deniedBy, tail }: ToolUse): Problem {
  return {
    tool: toolName,
    what: oneLine(summary, WHAT_CHARS),
    outcome: status === 'denied' ? 'denied' : 'failed',
    ...(deniedBy !== undefined && { by: deniedBy }),
    tail: outputTail(tail ?? ''),
  };
}

/** The end of an output: that of a test run or of an error says what went wrong. */
export function outputTail(output: string): string {
  const text = output.trimEnd();
  return text.length > TAIL_CHARS ? `…${tailOf(text, TAIL_CHARS - 1)}` : text;
}
