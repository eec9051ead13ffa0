import type { AgentSignal } from '../../driver/translate.ts';
import type { EventBody, MessageBody, SessionEvent } from '../../schema/events.ts';
import type { TotalsRecord } from '../../schema/records.ts';
import type { PermissionMode, SessionOptions } from '../../schema/session-options.ts';
import { Activity, type Refusal } from './activity.ts';
import type { Clock } from '../clock.ts';
import { EventLog, type EventLogLimits } from './event-log.ts';
import { FileTrail } from '../session/file-trail.ts';
import { SessionSetup } from './session-setup.ts';
import type { Source } from '../requests/requests.ts';
import { Totals, type Sums } from './totals.ts';

export interface ReportsSeed {
  readonly options: SessionOptions;
  readonly eventLimits: EventLogLimits;
  readonly inherited: Sums | undefined;
}

/** Reports that survive from an earlier process. */
export interface RestoredReports {
  readonly events: readonly SessionEvent[];
  readonly lastEventId: number;
  readonly droppedThrough: number;
  readonly lastMessageAt: number;
  readonly totals: TotalsRecord;
  readonly model: string | undefined;
  readonly permissionMode: PermissionMode | undefined;
  readonly tools: string[] | undefined;
}

/** What refuses such a call without asking. */
type RefusalOf = (toolName: string, input: Record<string, unknown>) => Refusal | undefined;

/** What Claude Code has reported about itself and its work. Nothing here changes the state of the conversation. */
export class AgentReports {
  readonly log: EventLog;
  readonly activity: Activity;
  readonly totals: Totals;
  readonly setup: SessionSetup;
  readonly speech = new Speech();
  /** Only where there are checkpoints to rewind to: it reads every file the session writes. */
  readonly files: FileTrail | undefined;
  readonly #clock: Clock;
  #backgroundTasks = 0;
  #hadBackgroundTasks = false;

  constructor({ options, eventLimits, inherited }: ReportsSeed, clock: Clock, announce: (event: SessionEvent) => void) {
    this.#clock = clock;
    this.activity = new Activity(() => clock.wallTime());
    this.log = new EventLog(eventLimits, announce);
    this.totals = new Totals(inherited);
    this.files = options.enableFileCheckpointing === true ? new FileTrail() : undefined;
    this.setup = new SessionSetup(options);
  }

  /** Replays what is left of the last turn; totals are restored as stored. */
  restore(restored: RestoredReports, atRest: boolean): void {
    const { events, lastEventId, droppedThrough, lastMessageAt, totals, ...setup } = restored;
    this.log.restore(events, lastEventId + 1, droppedThrough);
    this.replay(
      events.filter(({ id }) => id >= lastMessageAt),
      atRest,
    );
    this.totals.restore(totals);
    this.setup.restore(setup);
  }

  /** What the events since the last message say about the activity. */
  replay(events: readonly SessionEvent[], atRest: boolean): void {
    this.activity.begin();
    this.activity.messageGiven();
    for (const { body } of events) this.#replay(body);
    if (atRest) this.activity.endAll();
  }

  #replay(body: EventBody): void {
    if (body.kind === 'permission_request') {
      if (!body.request.own) this.activity.requestOpened(body.request);
    } else if (body.kind === 'permission_result') {
      const { toolUseId, decision, source, message = '', input, answers, detached, rule } = body;
      const outcome = {
        decision: decision === 'allow' ? { behavior: decision } : { behavior: decision, message },
        source: source as Source,
        ...(detached && { detached }),
        ...(rule && { rule }),
      };
      this.activity.requestSettled({ ask: { toolUseId } }, outcome, { ran: input, answers });
    } else if (body.kind === 'repeated') this.activity.repeated({ ...body, input: {} }, body.input);
    else this.take(body, () => undefined);
  }

  get backgroundTasks(): number {
    return this.#backgroundTasks;
  }

  /** Something may have run in this turn. */
  get acted(): boolean {
    return this.#hadBackgroundTasks || this.activity.toolCount > 0;
  }

  turnBegins(): void {
    this.totals.beginCall();
    this.activity.begin();
    this.speech.turnBegins();
  }

  turnEnds(): void {
    this.activity.endAll();
    this.totals.endTurn();
    this.speech.turnEnds();
  }

  /** An earlier server's process is still there. */
  processContinues(backgroundTasks: number): void {
    this.#backgroundTasks = backgroundTasks;
  }

  /** Background tasks end with the process. */
  processGone(): void {
    this.#backgroundTasks = 0;
  }

  /** Returns whether a waiting call may have been waiting for it. */
  take(body: EventBody, refusalOf: RefusalOf): boolean {
    switch (body.kind) {
      case 'message':
        return this.#takeMessage(body, refusalOf);
      case 'init':
        this.setup.started(body);
        this.totals.spends();
        return false;
      case 'result':
        this.totals.add(body.result, this.#clock.wallTime());
        return false;
      case 'tool_refused':
        this.activity.toolRefused(body.toolUseId, body.by, body.message, body.rule);
        return false;
      case 'background_tasks':
        this.#backgroundTasks = body.count;
        this.#hadBackgroundTasks ||= body.count > 0;
        return false;
      case 'status':
        if (body.permissionMode) this.setup.modeReported(body.permissionMode);
        return false;
      case 'retry':
        this.activity.note(body.summary);
        return true;
      case 'prompt':
      case 'partial':
      case 'permission_request':
      case 'permission_result':
      case 'repeated':
      case 'error':
      case 'writes_lost':
      case 'rewind':
      case 'apply':
      case 'discard':
      case 'notice':
        return false;
    }
  }

  #takeMessage(body: MessageBody, refusalOf: RefusalOf): boolean {
    if (body.role === 'assistant') this.totals.spends();
    for (const block of body.blocks) {
      if (block.kind === 'tool_call') this.activity.toolUsed(block, refusalOf(block.toolName, block.input));
      else if (block.kind === 'tool_result') this.activity.toolEnded(block.toolUseId, block);
    }
    // Whatever was blocking Claude is over.
    this.activity.clearNote();
    this.speech.messageEnds(body);
    return body.blocks.some((block) => 'toolUseId' in block);
  }

  takeSignal(signal: Extract<AgentSignal, { kind: 'file_written' | 'file_edited' | 'streamed' }>): void {
    if (signal.kind === 'file_written') this.files?.written(signal.path, signal.before);
    else if (signal.kind === 'file_edited') this.activity.fileEdited(signal.toolUseId, signal.edit);
    else this.#streamed(signal);
  }

  #streamed({ messageId, text }: Extract<AgentSignal, { kind: 'streamed' }>): void {
    if (messageId !== undefined) this.speech.messageBegins();
    else this.speech.streamed(text);
    // A session that only shows text as it is written does not record the pieces.
    if (this.setup.options.includePartialMessages !== true) return;
    if (messageId !== undefined) this.log.beginPartial(messageId);
    // Most pieces do not need their own timestamp.
    else if (!this.log.growPartial(text)) this.log.appendPartial(text, this.#clock.wallTime());
  }
}

/** What Claude said in a message, if it said anything. */
export function assistantText(body: EventBody): string | undefined {
  if (body.kind !== 'message' || body.role !== 'assistant') return undefined;
  let said: string | undefined;
  for (const block of body.blocks)
    if (block.kind === 'text') said = said === undefined ? block.text : `${said}\n${block.text}`;
  return said;
}

export function isPlan(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '';
}

interface Call {
  readonly toolUseId: string;
  readonly agentId?: string | undefined;
}

/** What Claude and its sub-agents said last in this turn, and what Claude is writing. */
class Speech {
  /** By the call that started the sub-agent; undefined for Claude itself. */
  readonly #last = new Map<string | undefined, string>();
  /** Like the above, but only what was said since a tool last returned something to that agent. */
  readonly #sinceResult = new Map<string | undefined, string>();
  /** Calls of sub-agents, and the call that started each sub-agent. */
  readonly #startedBy = new Map<string, string>();
  /** By call. Claude Code drops a plan that is an argument of the call, and asks with the plan file's, if there is one. */
  readonly #plans = new Map<string, string>();
  #unfinished = '';

  /** The plan it presents with this call, or else what it said last in this turn. */
  plan(call: Call): string {
    return this.#plans.get(call.toolUseId) ?? this.#wordsFor(call, this.#last);
  }

  /** What it said about this call: not what it said before another tool returned. */
  aboutCall(call: Call): string {
    return this.#wordsFor(call, this.#sinceResult);
  }

  /** The call that started the sub-agent which made this call. */
  startOf(toolUseId: string): string | undefined {
    return this.#startedBy.get(toolUseId);
  }

  get unfinished(): string {
    return this.#unfinished;
  }

  turnBegins(): void {
    this.#last.clear();
    this.#sinceResult.clear();
    this.#startedBy.clear();
    this.#plans.clear();
  }

  turnEnds(): void {
    this.#unfinished = '';
  }

  messageBegins(): void {
    this.#unfinished = '';
  }

  streamed(text: string): void {
    this.#unfinished += text;
  }

  messageEnds(body: MessageBody): void {
    const { parentToolUseId: agent, blocks } = body;
    if (agent === undefined) this.#unfinished = '';
    for (const block of blocks) {
      if (block.kind !== 'tool_call') continue;
      const { toolUseId, toolName, input } = block;
      if (agent !== undefined) this.#startedBy.set(toolUseId, agent);
      if (toolName === 'ExitPlanMode' && isPlan(input['plan'])) this.#plans.set(toolUseId, input['plan']);
    }
    const said = assistantText(body);
    if (said !== undefined) {
      this.#last.set(agent, said);
      this.#sinceResult.set(agent, said);
    } else if (blocks.some(({ kind }) => kind === 'tool_result')) this.#sinceResult.delete(agent);
  }

  #wordsFor({ toolUseId, agentId }: Call, words: ReadonlyMap<string | undefined, string>): string {
    const agent = this.startOf(toolUseId);
    // Words of one agent must not pass for those of another.
    return agentId !== undefined && agent === undefined ? '' : (words.get(agent) ?? '');
  }
}
