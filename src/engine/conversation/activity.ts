import type { EventBody, FileEdit, ToolCallBlock, ToolResultBlock } from '../../schema/events.ts';
import { COMMAND_TOOLS, type DeniedBy, type ToolStatus } from '../../schema/enums.ts';
import type { DecidingRule, Problem } from '../../schema/results.ts';
import { CallLog, isProblem, messageTail, problemsOf } from './call-log.ts';
import { PackableMap } from './event-log.ts';
import { denierOf, kindOf, type OpenRequest, type Outcome } from '../requests/requests.ts';
import { cutAt, describeTool, oneLine, summarizeTool } from './tool-summary.ts';
import { outputTail } from '../../workspace/report/output-tail.ts';

export interface ToolUse {
  readonly id: string;
  readonly toolName: string;
  /** One line on the input it was called with, or on what actually ran if an answer changed it. */
  summary: string;
  /** The same in more words, for a report of what went wrong. */
  what: string;
  status: ToolStatus;
  /** The call and the message it belongs to, counted over the session. */
  readonly call: number;
  readonly message: number;
  /** What refuses such a call without asking. */
  readonly refusal: Refusal | undefined;
  /** While it waits for an answer. */
  requestId?: string | undefined;
  inputChanged?: true;
  /** Of a question, in one line, in the order of its questions. */
  answer?: string;
  deniedBy?: DeniedBy | undefined;
  /** The standing rule that denied it. */
  rule?: DecidingRule | undefined;
  exitCode?: number | undefined;
  /** The end of its output, if it failed or was denied. */
  tail?: string | undefined;
}

/** A rule of the session's `disallowedTools`, or a standing rule, that Claude Code applies without asking. */
export type Refusal =
  | { readonly by: 'disallowedTools'; readonly wholeTool: boolean }
  | { readonly by: 'rule'; readonly wholeTool: boolean; readonly rule: DecidingRule };

type ToolCall = Omit<ToolCallBlock, 'kind'>;
type ToolOutcome = Omit<ToolResultBlock, 'kind' | 'toolUseId'>;

/** What an answer gave Claude Code along with its consent. */
interface Given {
  /** What runs instead of what was requested. */
  readonly ran?: Record<string, unknown> | undefined;
  /** Of a question, by its text. */
  readonly answers?: Record<string, unknown> | undefined;
}

const MAX_TOOL_USES = 200;
const ANSWER_CHARS = 120;
/** Tools of Claude Code that run as long as their sub-agent does. */
const AGENT_TOOLS: ReadonlySet<string> = new Set(['Task', 'Agent']);
const MAX_LINE = 200;

/** What was done since the prompt and what is going on now. */
export class Activity {
  readonly #uses = new PackableMap<ToolUse>();
  readonly #log: CallLog;
  #counts = new Map<string, number>();
  #call = 0;
  #message = 0;
  #note: string | undefined;
  /** Whether any are worth looking for. */
  #hasProblems = false;
  /** Calls that a standing rule refused, unasked, since they were last taken. */
  #ruledOut: ToolUse[] = [];
  #lastToolUseId: string | undefined;

  /** Time of day. */
  constructor(now: () => number) {
    this.#log = new CallLog(now);
  }

  begin(): void {
    this.#call++;
    this.#counts = new Map();
    this.#hasProblems = false;
    this.#log.begin();
    this.#note = undefined;
  }

  /** Call when nothing more is expected for a long time. */
  pack(): void {
    this.#uses.pack();
    this.#log.pack();
  }

  /** From now on, calls count as made after this message. */
  messageGiven(): void {
    this.#message++;
  }

  toolUsed({ toolUseId: id, toolName, input }: ToolCall, refusal?: Refusal): void {
    const uses = this.#uses.toWrite;
    // The request may arrive before the message that makes the call.
    if (uses.has(id)) return;
    this.#note = undefined;
    this.#lastToolUseId = id;
    this.#counts.set(toolName, (this.#counts.get(toolName) ?? 0) + 1);
    this.#log.used(id, toolName, input);
    const summary = summarizeTool(toolName, input, 120);
    const what = describeTool(toolName, input);
    const [call, message] = [this.#call, this.#message];
    uses.set(id, { id, toolName, status: 'running', summary, what, call, message, refusal });
    if (uses.size > MAX_TOOL_USES) this.#evict();
  }

  /** A denial stays a denial when its error result arrives. */
  toolEnded(id: string, { isError, output, exitCode }: ToolOutcome): void {
    const use = this.#uses.toWrite.get(id);
    if (use?.status !== 'running' && use?.status !== 'awaiting_permission') return;
    // A tool that is disallowed altogether does not exist for Claude Code, and a file tool is refused before it is looked
    // at as a permission: there is only the error.
    if (isError && use.refusal && (use.refusal.wholeTool || !COMMAND_TOOLS.has(use.toolName)))
      return this.#refused(use, use.refusal, output);
    use.status = isError ? 'failed' : 'completed';
    use.exitCode = exitCode;
    use.requestId = undefined;
    const tail = isError || COMMAND_TOOLS.has(use.toolName) ? outputTail(output, isError) : undefined;
    if (isError) {
      use.tail = tail;
      this.#hasProblems = true;
    }
    this.#log.ended(id, { failed: isError, exitCode, tail });
  }

  fileEdited(id: string, edit: FileEdit): void {
    this.#log.edited(id, edit);
  }

  requestOpened({ id, ask }: { readonly id: string; readonly ask: ToolCall }): void {
    this.toolUsed(ask);
    const use = this.#uses.toWrite.get(ask.toolUseId);
    if (use?.status !== 'running') return;
    use.status = 'awaiting_permission';
    use.requestId = id;
  }

  requestSettled({ ask }: { readonly ask: Pick<ToolCall, 'toolUseId'> }, outcome: Outcome, given: Given): void {
    const { decision } = outcome;
    if (decision.behavior === 'allow' && outcome.detached) this.#allowedAway(ask.toolUseId, given);
    else if (decision.behavior === 'allow') this.#allowed(ask.toolUseId, given);
    else this.#denied(ask.toolUseId, denierOf(outcome), decision.message, outcome.rule);
  }

  #allowed(id: string, { ran, answers }: Given): void {
    const use = this.#uses.toWrite.get(id);
    if (use?.status !== 'awaiting_permission') return;
    use.status = 'running';
    use.requestId = undefined;
    if (answers) use.answer = answerLine(answers);
    if (ran) this.#changed(use, ran);
  }

  /** Nothing ran: Claude is told an answer in words, and makes a call that was allowed again, under another id. */
  #allowedAway(id: string, { answers }: Given): void {
    const uses = this.#uses.toWrite;
    const use = uses.get(id);
    if (use?.status !== 'awaiting_permission') return;
    if (answers) {
      use.status = 'completed';
      use.requestId = undefined;
      use.answer = answerLine(answers);
      return;
    }
    uses.delete(id);
    this.#log.neverRan(id);
    const count = (this.#counts.get(use.toolName) ?? 0) - 1;
    if (count > 0) this.#counts.set(use.toolName, count);
    else this.#counts.delete(use.toolName);
  }

  /** It was allowed before it was made. `ran`: what runs instead. */
  repeated(call: ToolCall, ran: Record<string, unknown> | undefined): void {
    this.toolUsed(call);
    const use = this.#uses.toWrite.get(call.toolUseId);
    if (use && ran) this.#changed(use, ran);
  }

  #changed(use: ToolUse, ran: Record<string, unknown>): void {
    this.#log.changed(use.id, ran);
    use.inputChanged = true;
    use.summary = summarizeTool(use.toolName, ran, 120);
    use.what = describeTool(use.toolName, ran);
  }

  /** Claude Code does not distinguish the session's own rules and standing rules from those in settings. */
  toolRefused(id: string, by: DeniedBy, message: string, rule?: DecidingRule): void {
    const use = this.#uses.toRead.get(id);
    if (use?.refusal) this.#refused(use, use.refusal, message);
    else this.#denied(id, by, message, rule);
  }

  #refused(use: ToolUse, refusal: Refusal, message: string): void {
    if (use.status === 'denied') return;
    const rule = refusal.by === 'rule' ? refusal.rule : undefined;
    this.#denied(use.id, refusal.by, message, rule);
    if (rule) this.#ruledOut.push({ ...use, rule });
  }

  /** A refusal with the rule of this server that caused it: Claude Code does not know whose rules it applies. */
  ruledOut(body: EventBody): EventBody | undefined {
    if (body.kind !== 'tool_refused') return undefined;
    const { deniedBy, rule } = this.findToolUse(body.toolUseId) ?? {};
    if (deniedBy !== 'rule' && deniedBy !== 'disallowedTools') return undefined;
    return { ...body, by: deniedBy, ...(rule && { rule }) };
  }

  takeRuledOut(): readonly ToolUse[] {
    const taken = this.#ruledOut;
    if (taken.length > 0) this.#ruledOut = [];
    return taken;
  }

  /** Also for a call whose error arrived first: then it never ran. */
  #denied(id: string, by: DeniedBy | undefined, message: string, rule?: DecidingRule): void {
    const use = this.#uses.toWrite.get(id);
    if (!use || use.status === 'completed' || use.status === 'denied') return;
    this.#log.neverRan(id);
    this.#hasProblems = true;
    use.status = 'denied';
    use.deniedBy = by;
    use.rule = rule;
    use.requestId = undefined;
    use.tail = messageTail(message);
  }

  /** Everything still running is waiting for an answer, sub-agents included. */
  onlyWaits(requests: readonly Pick<OpenRequest, 'ask'>[]): boolean {
    const waitingAgents = new Set(requests.flatMap(({ ask }) => ask.agentId ?? [])).size;
    const running = this.toolUses.filter(({ status }) => status === 'running');
    return running.length <= waitingAgents && running.every(({ toolName }) => AGENT_TOOLS.has(toolName));
  }

  /** Whatever was still running when the turn ended did not finish. */
  endAll(): void {
    const unfinished = { isError: true, output: 'It was still running when the turn ended.' };
    for (const { id } of this.toolUses) this.toolEnded(id, unfinished);
  }

  /** Something worth reporting that is not a tool, such as a retry; cleared by the next tool. */
  note(line: string): void {
    this.#note = line;
  }

  clearNote(): void {
    this.#note = undefined;
  }

  get toolUses(): ToolUse[] {
    return [...this.#uses.toRead.values()];
  }

  /** Those since the last message. */
  get latestToolUses(): ToolUse[] {
    return this.toolUses.filter(({ message }) => message === this.#message);
  }

  /** Those of the present call, or of the last one at rest. */
  get callToolUses(): ToolUse[] {
    return this.toolUses.filter(({ call }) => call === this.#call);
  }

  /** Those of them that failed or were denied. */
  get callProblems(): ToolUse[] {
    const found: ToolUse[] = [];
    if (!this.#hasProblems) return found;
    for (const use of this.#uses.toRead.values()) if (use.call === this.#call && isProblem(use)) found.push(use);
    return found;
  }

  findToolUse(id: string): ToolUse | undefined {
    return this.#uses.toRead.get(id);
  }

  /** The last of the present call that failed or were denied. */
  get problems(): Problem[] {
    return problemsOf(this.callProblems);
  }

  /** Commands and edits that ran to their end. */
  get log(): Pick<CallLog, 'ofTurn' | 'all'> {
    return this.#log;
  }

  get toolCount(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  get lastToolUseId(): string | undefined {
    return this.#lastToolUseId;
  }

  /**
   * At most 200 characters: `14 tools (6 Read, 5 Edit, 3 Bash), 1 failed, now: npm test`. `ownRequest`: what the server
   * itself has asked, while Claude does nothing.
   */
  line(costUsd: number | undefined, working: boolean, ownRequest?: string): string {
    const parts: string[] = [];
    if (this.#note !== undefined) parts.push(this.#note);
    const kinds = [...this.#counts].filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a);
    const shown = kinds.slice(0, 5).map(([name, count]) => `${String(count)} ${name}`);
    if (kinds.length > shown.length) shown.push('…');
    const count = this.toolCount;
    parts.push(
      count === 0
        ? `no tools${working ? ' yet' : ''}`
        : `${String(count)} ${count === 1 ? 'tool' : 'tools'} (${shown.join(', ')})`,
      ...this.#troubles(),
    );
    if (working) parts.push(ownRequest === undefined ? this.#now() : `${WAITS_FOR.permission}: ${ownRequest}`);
    if (costUsd !== undefined) parts.push(dollars(costUsd));
    const line = parts.join(', ');
    return line.length > MAX_LINE ? `${cutAt(line, MAX_LINE - 1)}…` : line;
  }

  #troubles(): string[] {
    const uses = this.callProblems;
    return (['failed', 'denied'] as const).flatMap((status) => {
      const count = uses.filter((use) => use.status === status).length;
      return count === 0 ? [] : [`${String(count)} ${status}`];
    });
  }

  #now(): string {
    const uses = this.toolUses;
    const waiting = uses.filter(({ status }) => status === 'awaiting_permission');
    const [first] = waiting;
    if (first) {
      const more = waiting.length > 1 ? ` and ${String(waiting.length - 1)} more` : '';
      return `${WAITS_FOR[kindOf(first.toolName)]}: ${nameOf(first)}${more}`;
    }
    const now = uses.filter(({ status }) => status === 'running').at(-1);
    if (!now) return 'now: thinking';
    return `now: ${nameOf(now)}${now.inputChanged ? ' (input changed)' : ''}`;
  }

  /** Problems of this call are kept longest, because its report is made from them. */
  #evict(): void {
    const uses = this.#uses.toWrite;
    let oldest: ToolUse | undefined;
    for (const use of uses.values()) {
      oldest ??= use;
      if (use.status !== 'completed' && !(isProblem(use) && use.call < this.#call)) continue;
      oldest = use;
      break;
    }
    if (oldest) uses.delete(oldest.id);
  }
}

const WAITS_FOR = {
  permission: 'waiting for permission',
  plan_review: 'waiting for a plan review',
  user_question: 'waiting for an answer',
} as const;

/** What cost something is not told as having cost nothing. */
function dollars(costUsd: number): string {
  return costUsd > 0 && costUsd < 0.005 ? '<$0.01' : `$${costUsd.toFixed(2)}`;
}

function answerLine(answers: Record<string, unknown>): string {
  return oneLine(Object.values(answers).map(String).join(' | '), ANSWER_CHARS);
}

function nameOf({ summary, toolName }: ToolUse): string {
  return cutAt(summary, 80) || toolName;
}
