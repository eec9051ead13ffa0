import type { Problem, Work } from '../../schema/results.ts';
import type { FullWork, WorkReport } from '../../workspace/report/work-report.ts';
import type { ToolUse } from './activity.ts';
import { tailOf } from './shortening.ts';

const MAX_PROBLEMS = 5;
const TAIL_CHARS = 200;

/**
 * Evidence of what a call did: the answer is only what Claude claims. Without a report, only the problems, and why there
 * is none.
 */
export function workOf(
  report: WorkReport | FullWork | undefined,
  problems: readonly Problem[],
  incomplete?: string,
): Work | undefined {
  if (!report && problems.length === 0 && incomplete === undefined) return undefined;
  return {
    ...(report as Work | undefined),
    ...(incomplete !== undefined && { incomplete }),
    ...(problems.length > 0 && { problems: [...problems] }),
  };
}

/** The last calls that failed or were denied. */
export function problemsOf(uses: readonly ToolUse[]): Problem[] {
  return uses.slice(-MAX_PROBLEMS).map(toProblem);
}

export function isProblem({ status }: Pick<ToolUse, 'status'>): boolean {
  return status === 'failed' || status === 'denied';
}

function toProblem({ toolName, what, status, deniedBy, tail }: ToolUse): Problem {
  return {
    tool: toolName,
    what,
    outcome: status === 'denied' ? 'denied' : 'failed',
    ...(deniedBy !== undefined && { by: deniedBy }),
    tail: tail ?? '',
  };
}

/** The end of what Claude was told. */
export function messageTail(message: string): string {
  const text = message.trimEnd();
  return text.length > TAIL_CHARS ? `…${tailOf(text, TAIL_CHARS - 1)}` : text;
}
