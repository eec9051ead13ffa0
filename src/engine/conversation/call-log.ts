import { COMMAND_TOOLS, EDIT_TOOLS } from '../../schema/enums.ts';
import type { FileEdit } from '../../schema/events.ts';
import type { Problem, Work } from '../../schema/results.ts';
import type { FullWork, ToolCall, WorkReport } from '../../workspace/report/work-report.ts';
import type { ToolUse } from './activity.ts';
import { PackableMap, sizeOf } from './event-log.ts';
import { tailOf } from './tool-summary.ts';

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
  const text = message.replace(/<\/?tool_use_error>/g, '').trimEnd();
  return text.length > TAIL_CHARS ? `…${tailOf(text, TAIL_CHARS - 1)}` : text;
}

interface LoggedCall extends ToolCall {
  readonly turn: number;
  readonly bytes: number;
}

type Input = Readonly<Record<string, unknown>>;

const MAX_CALLS = 5_000;
/** What a session keeps of patches; the oldest go first. */
const MAX_BYTES = 4_000_000;

/** The commands and edits of a session, for the report of its work. */
export class CallLog {
  readonly #running = new PackableMap<Pick<LoggedCall, 'tool' | 'input' | 'startedAt' | 'turn'>>();
  readonly #ended = new PackableMap<LoggedCall>();
  readonly #now: () => number;
  #turn = 0;
  #bytes = 0;
  readonly #plans = new Set<string>();

  /** Time of day: file times are compared with it. */
  constructor(now: () => number) {
    this.#now = now;
  }

  begin(): void {
    this.#turn++;
  }

  pack(): void {
    this.#running.pack();
    this.#ended.pack();
  }

  used(id: string, tool: string, input: Input): void {
    // Claude's own plan is no work, wherever its settings keep plans.
    if (tool === 'ExitPlanMode' && typeof input['planFilePath'] === 'string') this.#plans.add(input['planFilePath']);
    if (!COMMAND_TOOLS.has(tool) && !EDIT_TOOLS.has(tool)) return;
    this.#running.toWrite.set(id, { tool, input: named(input), startedAt: this.#now(), turn: this.#turn });
  }

  /** It was allowed to run with a different input. */
  changed(id: string, input: Input): void {
    const call = this.#running.toRead.get(id);
    if (call) this.#running.toWrite.set(id, { ...call, input: named(input) });
  }

  ended(id: string, { failed, exitCode, tail }: Pick<ToolCall, 'failed' | 'exitCode' | 'tail'>): void {
    const call = this.#running.toRead.get(id);
    if (!call) return;
    this.#running.toWrite.delete(id);
    const ended = this.#ended.toWrite;
    ended.set(id, { ...call, failed, exitCode, tail, endedAt: this.#now(), bytes: 0 });
    if (ended.size > MAX_CALLS) this.#drop(oldestOf(ended));
  }

  /** What a finished call changed in a file. */
  edited(id: string, edit: FileEdit): void {
    const call = this.#ended.toRead.get(id);
    if (!call) return;
    const bytes = sizeOf(edit);
    this.#ended.toWrite.set(id, { ...call, edit, bytes });
    this.#bytes += bytes - call.bytes;
    if (this.#bytes > MAX_BYTES) this.#dropPatches();
  }

  neverRan(id: string): void {
    this.#running.toWrite.delete(id);
    this.#drop(id);
  }

  get ofTurn(): ToolCall[] {
    return this.all.filter(({ turn }) => turn === this.#turn);
  }

  get all(): LoggedCall[] {
    const calls = [...this.#ended.toRead.values()];
    if (this.#plans.size === 0) return calls;
    return calls.filter(({ input }) => !this.#plans.has(String(input['file_path'])));
  }

  /** The calls themselves are still counted. */
  #dropPatches(): void {
    const ended = this.#ended.toWrite;
    for (const [id, call] of ended) {
      if (this.#bytes <= MAX_BYTES / 2) return;
      this.#bytes -= call.bytes;
      ended.set(id, { ...call, edit: undefined, bytes: 0 });
    }
  }

  #drop(id: string): void {
    const ended = this.#ended.toWrite;
    this.#bytes -= ended.get(id)?.bytes ?? 0;
    ended.delete(id);
  }
}

function oldestOf(calls: ReadonlyMap<string, unknown>): string {
  return calls.keys().next().value ?? '';
}

/** Which command, which file: contents are in the patch. */
function named(input: Input): Input {
  return Object.fromEntries(
    ['command', 'file_path', 'notebook_path', 'run_in_background'].flatMap((name) =>
      name in input ? [[name, input[name]]] : [],
    ),
  );
}
