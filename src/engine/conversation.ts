import type { AgentExit } from '../driver/agent-process.ts';
import type { AgentSignal, Translation } from '../driver/agent-signal.ts';
import type { Decision, PermissionAsk } from '../driver/permission-ask.ts';
import { DomainError, messageOf } from '../errors/errors.ts';
import type { SessionOptions } from '../schema/session-options.ts';
import { Activity } from './activity.ts';
import { assistantText } from './assistant-text.ts';
import type { Clock } from './clock.ts';
import { findEditPlace } from './edit-place.ts';
import { FileTrail } from './file-trail.ts';
import { EventLog, type EventLogLimits } from './event-log.ts';
import type { SessionNotice } from './notices.ts';
import { Outbox, type Message } from './outbox.ts';
import { SessionRequests } from './session-requests.ts';
import type { OpenRequest, Outcome, OwnRequest, Source } from './requests.ts';
import { requestNotFound } from './session-errors.ts';
import { ranInstead } from './shown-request.ts';
import { SessionSetup } from './session-setup.ts';
import { SessionTimes } from './session-times.ts';
import type { Cancellation } from './session-types.ts';
import { isAtRest, transition, type State, type StateAtRest, type StateAtWork, type StateEvent } from './state.ts';
import { oneLine } from './tool-summary.ts';
import { Totals, type Sums } from './totals.ts';
import { endedByForce, lostProcess, startFailed, stoppedByServer, type TurnResult } from './turn-result.ts';

const TOPIC_CHARS = 200;

/** What can be told of a conversation while it goes on. */
export type ConversationEvent =
  /** Something that a waiting call may have been waiting for. */
  | { kind: 'changed' }
  | Extract<SessionNotice, { kind: 'event' | 'message' | 'delivered' | 'settled' }>
  | { kind: 'tools'; tools: string[] }
  /** Every request, also one that a rule is about to refuse. */
  | { kind: 'opened'; request: OpenRequest }
  /** A request that somebody has to answer. */
  | { kind: 'asked'; request: OpenRequest }
  /** A turn begins after a rest. */
  | { kind: 'began' }
  | { kind: 'rested' };

export interface ConversationSeed {
  readonly id: string;
  readonly options: SessionOptions;
  readonly permissionTimeoutMs: number;
  readonly eventLimits: EventLogLimits;
  readonly inherited: Sums | undefined;
}

export interface ConversationServices {
  readonly clock: Clock;
  tell(event: ConversationEvent): void;
  debug(line: string): void;
}

/** Where a conversation stands. The answer so far belongs to the turn while it works, and to the rest afterwards. */
type Standing =
  | {
      readonly kind: StateAtWork | Exclude<StateAtRest, 'cancelled'>;
      readonly result: TurnResult | undefined;
      /** Of a turn that the server stopped. */
      readonly cancellation?: Cancellation | undefined;
    }
  | { readonly kind: 'cancelled'; readonly result: TurnResult | undefined; readonly cancellation: Cancellation };

/** Events that end a turn; each goes through `#end`. */
type EndEvent = 'rest' | 'stop' | 'fail' | 'cancel';

/** How a turn ends, and what is said of the requests that nobody has answered. */
type Ending = { readonly unanswered: Unanswered } & (
  | {
      readonly how: Exclude<EndEvent, 'cancel'>;
      readonly result: TurnResult | undefined;
      readonly error?: object;
      readonly cancellation?: Cancellation;
    }
  | { readonly how: 'cancel'; readonly cancellation: Cancellation }
);

const BACK_TO_REST: Partial<Record<State, OwnRequest['backTo']>> = { idle: 'rest', interrupted: 'stop', error: 'fail' };

interface Unanswered {
  readonly message: string;
  readonly interrupt?: true;
  readonly source: Source;
}

/** One conversation with Claude Code: its state, what was said, done and asked. It knows nothing of processes. */
export class Conversation {
  readonly id: string;
  readonly log: EventLog;
  readonly activity: Activity;
  readonly totals: Totals;
  readonly setup: SessionSetup;
  readonly times: SessionTimes;
  readonly outbox: Outbox;
  readonly requests: SessionRequests;
  /** Only where there are checkpoints to rewind to: it reads every file the session writes. */
  readonly files: FileTrail | undefined;
  readonly #services: ConversationServices;
  #permissionTimeoutMs: number;
  #standing: Standing = { kind: 'starting', result: undefined };
  #backgroundTasks = 0;
  #hadBackgroundTasks = false;
  #lastText = '';
  #unfinishedText = '';
  #lastMessageAt = 1;
  #topic = '';

  constructor(seed: ConversationSeed, services: ConversationServices) {
    this.id = seed.id;
    this.#services = services;
    this.#permissionTimeoutMs = seed.permissionTimeoutMs;
    this.outbox = new Outbox((messageId) => services.tell({ kind: 'delivered', messageId }));
    this.activity = new Activity(() => services.clock.wallTime());
    this.log = new EventLog(seed.eventLimits);
    this.totals = new Totals(seed.inherited);
    this.files = seed.options.enableFileCheckpointing === true ? new FileTrail() : undefined;
    this.setup = new SessionSetup(seed.options);
    this.times = new SessionTimes(services.clock);
    this.requests = new SessionRequests(services.clock, () => this.setup.options, {
      onOpened: (request) => this.#opened(request),
      onSettled: (request, outcome) => this.#settled(request, outcome),
    });
  }

  get state(): State {
    return this.#standing.kind;
  }

  get atRest(): boolean {
    return isAtRest(this.state);
  }

  /** The answer of the last turn; only at rest is it the final one. */
  get result(): TurnResult | undefined {
    return this.#standing.result;
  }

  get cancellation(): Cancellation | undefined {
    return this.#standing.cancellation;
  }

  /** What Claude is writing, where partial messages are asked for. */
  get unfinishedText(): string {
    return this.#unfinishedText;
  }

  get backgroundTasks(): number {
    return this.#backgroundTasks;
  }

  /** Something may have run in this turn. */
  get acted(): boolean {
    return this.#hadBackgroundTasks || this.activity.toolCount > 0;
  }

  /** One line on what it is about: its first message. */
  get topic(): string {
    return this.#topic;
  }

  /** The first event after the last message. */
  get lastMessageAt(): number {
    return this.#lastMessageAt;
  }

  setPermissionTimeout(ms: number): void {
    this.#permissionTimeoutMs = ms;
  }

  // ── what is said to Claude Code ────────────────────────────────────────────────────────────────────────────────

  /** A message is on its way to Claude Code. */
  say(message: Message): void {
    if (this.state === 'cancelled') throw new DomainError('CANCELLED', 'The session was cancelled; start a new one.');
    if (this.#topic === '') this.#topic = oneLine(message.text, TOPIC_CHARS);
    if (this.atRest) this.#beginTurn();
    this.activity.messageGiven();
    this.#lastMessageAt = this.log.nextId;
    this.outbox.add(message);
    this.#services.tell({ kind: 'message', message });
  }

  /** It could not be handed over, and the caller is told; left here it would keep the session from coming to rest. */
  unsay(message: Message): void {
    this.outbox.takeBack(message.id);
  }

  /** The turn is to stop. Tells whether there was one. */
  interrupt(): boolean {
    if (!this.#apply('interrupt')) return false;
    this.#settleAll({ message: 'The turn was interrupted.', interrupt: true, source: 'cancel' });
    return true;
  }

  /** Settles one request. Throws if it had its outcome. */
  decide(requestId: string, decision: Decision, source: Source, by?: string): void {
    const stops = decision.behavior === 'deny' && decision.interrupt === true;
    if (stops && this.requests.find(requestId)) this.#apply('interrupt');
    if (!this.requests.settle(requestId, decision, source, by === undefined ? {} : { by }))
      throw requestNotFound(requestId);
  }

  // ── what Claude Code says and asks ─────────────────────────────────────────────────────────────────────────────

  heard({ event, signals }: Translation): void {
    this.times.heard();
    for (const signal of signals) this.#take(signal);
    if (event) {
      if (event.type === 'output') {
        // Whatever held Claude up has passed.
        this.activity.clearNote();
        this.#unfinishedText = '';
        this.#lastText = assistantText(event.data) ?? this.#lastText;
      }
      this.#append(event.type, event.data);
    }
    if (signals.some((signal) => signal.kind === 'state' && signal.state === 'idle')) this.#becameIdle();
  }

  async asked(ask: PermissionAsk): Promise<Decision> {
    this.times.heard();
    const lastText = this.#lastText;
    // Only for an edit is there anything to wait for.
    const edit = ask.toolName === 'Edit' ? await findEditPlace(ask.input, this.setup.options) : undefined;
    if (this.atRest) return { behavior: 'deny', message: 'The turn has ended.', interrupt: true };
    const { decision, request } = this.requests.ask(ask, this.#permissionTimeoutMs, { lastText, edit });
    if (request) this.#services.tell({ kind: 'asked', request });
    return decision;
  }

  /** The server itself asks, for a caller. Once it is settled the conversation is at rest again. */
  async askAtRest(ask: PermissionAsk, opening: string): Promise<Decision> {
    const backTo = BACK_TO_REST[this.state];
    if (!backTo) throw new DomainError('SESSION_BUSY', `Session ${this.id} is ${this.state}.`);
    this.times.callBegins();
    const own = { opening, backTo };
    const { decision, request } = this.requests.ask(ask, this.#permissionTimeoutMs, { lastText: '', own });
    if (request) this.#services.tell({ kind: 'asked', request });
    return decision;
  }

  #take(signal: AgentSignal): void {
    switch (signal.kind) {
      case 'started':
        this.setup.started(signal);
        this.totals.spends();
        this.#services.tell({ kind: 'tools', tools: signal.tools });
        this.#apply('started');
        return;
      case 'state':
        if (signal.state === 'running' && this.atRest) this.#beginTurn();
        return;
      case 'delivery':
        this.outbox.advance(signal.messageId, signal.state);
        if (signal.state === 'started') this.files?.messageTaken(signal.messageId);
        return;
      case 'result':
        this.outbox.answered(signal.answered);
        this.totals.add(signal.result);
        this.#standing = { ...this.#standing, result: signal.result };
        if (this.state === 'interrupting' && this.outbox.waiting && this.#apply('next')) this.#changed();
        return;
      case 'model_answered':
        this.totals.spends();
        return;
      case 'tool_use':
        this.activity.toolUsed(signal, this.requests.refusedBy(signal.toolName, signal.input));
        this.#changed();
        return;
      case 'tool_result':
        this.activity.toolEnded(signal.toolUseId, signal);
        this.#changed();
        return;
      case 'file_written':
        this.files?.written(signal.path, signal.before);
        return;
      case 'tool_refused':
        this.activity.toolRefused(signal.toolUseId, signal.by, signal.message);
        return;
      case 'background_tasks':
        this.#backgroundTasks = signal.count;
        this.#hadBackgroundTasks ||= signal.count > 0;
        // Claude Code is about to wake and tell of the end.
        this.times.active();
        return;
      case 'permission_mode':
        this.setup.modeReported(signal.mode);
        return;
      case 'partial':
        this.#takePartial(signal);
        return;
      case 'retry':
        this.activity.note(signal.line);
        this.#changed();
        return;
    }
  }

  #takePartial({ messageId, text }: Extract<AgentSignal, { kind: 'partial' }>): void {
    if (messageId !== undefined) this.#unfinishedText = '';
    else this.#unfinishedText += text;
    // A session that only shows what is being written keeps no record of the pieces.
    if (this.setup.options.includePartialMessages !== true) return;
    if (messageId !== undefined) this.log.beginPartial(messageId);
    else this.log.appendPartial(text, this.#services.clock.wallTime());
  }

  #opened(request: OpenRequest): void {
    if (!request.own) this.activity.requestOpened(request);
    this.#append('permission_request', request);
    this.#apply('asked');
    this.#services.tell({ kind: 'opened', request });
    this.#changed();
  }

  #settled(request: OpenRequest, outcome: Outcome): void {
    const { decision, source } = outcome;
    const ran = ranInstead(request, decision);
    if (!request.own) this.activity.requestSettled(request, outcome, ran);
    this.#append('permission_result', {
      requestId: request.id,
      toolName: request.ask.toolName,
      toolUseID: request.ask.toolUseId,
      decision: decision.behavior,
      source,
      ...(decision.behavior === 'deny' && { message: decision.message }),
      ...(ran && { inputChanged: true, input: ran }),
    });
    if (this.requests.size === 0 && !this.atRest) this.#apply(request.own?.backTo ?? 'answered');
    this.#services.tell({ kind: 'settled', request, outcome });
    this.#changed();
  }

  // ── how a turn begins and ends ─────────────────────────────────────────────────────────────────────────────────

  #beginTurn(): void {
    this.#apply('work');
    this.#standing = { ...this.#standing, result: undefined };
    this.times.callBegins();
    this.totals.beginCall();
    this.activity.begin();
    this.#lastText = '';
    this.#services.tell({ kind: 'began' });
    this.#changed();
  }

  #becameIdle(): void {
    // What Claude Code has not read yet is newer than its word of being idle.
    if (this.atRest || this.outbox.unread) return;
    const { result } = this;
    const stopped =
      result?.interrupted === true ||
      (this.state === 'interrupting' && result?.errorSubtype === 'error_during_execution');
    this.#end({
      how: stopped ? 'stop' : result?.isError === true ? 'fail' : 'rest',
      result,
      unanswered: { message: 'The turn has ended.', source: 'cancel' },
    });
  }

  /** No process came up. What was not delivered is told only where nobody waits for the start itself. */
  startFailed(error: unknown, reported: boolean): void {
    const undelivered = this.outbox.takeUndelivered();
    const result = startFailed(messageOf(error), reported ? [] : undelivered);
    this.#fail(result, {});
  }

  /** The process has ended by itself. What it never read is for the next one, if it can have one. */
  exited(exit: AgentExit, canRedeliver: boolean): readonly Message[] {
    this.#backgroundTasks = 0;
    if (this.atRest) return [];
    const { untouched } = this.outbox;
    if (canRedeliver && this.times.heardNothing && untouched.length > 0) return untouched;
    const result = lostProcess(exit, this.outbox.takeUndelivered());
    this.#fail(result, { exitCode: exit.code, signal: exit.signal });
    return [];
  }

  /** The process did not react to an interrupt and was ended. */
  stoppedByForce(): void {
    this.#end({
      how: 'stop',
      result: endedByForce(this.outbox.takeUndelivered()),
      unanswered: { message: 'The turn was interrupted.', interrupt: true, source: 'cancel' },
    });
  }

  /** The server ends the turn; unlike a cancelled one, the conversation takes messages. Tells whether there was a turn. */
  stop(reason: string, source: string): boolean {
    return this.#end({
      how: 'stop',
      result: stoppedByServer(reason, this.outbox.takeUndelivered()),
      cancellation: { at: this.#services.clock.wallTime(), reason, source },
      unanswered: { message: `The turn was stopped: ${reason}.`, interrupt: true, source: 'cancel' },
    });
  }

  /** Final. Tells whether it was news. */
  cancel(reason: string, source: string, settledAs: Source): boolean {
    const cancellation = { at: this.#services.clock.wallTime(), reason, source };
    return this.#end({
      how: 'cancel',
      cancellation,
      unanswered: { message: `The session was cancelled: ${reason}`, interrupt: true, source: settledAs },
    });
  }

  /** Background tasks end with the process. */
  processClosed(): void {
    this.#backgroundTasks = 0;
  }

  #fail(result: TurnResult, details: object): void {
    this.#backgroundTasks = 0;
    this.#end({
      how: 'fail',
      result,
      error: { type: 'error', message: result.text, ...details },
      unanswered: { message: 'Claude Code has ended.', interrupt: true, source: 'cancel' },
    });
  }

  /** The one way in which a turn ends. */
  #end(ending: Ending): boolean {
    const standing = this.#standingAfter(ending);
    if (!standing) return this.#meansNothing(ending.how);
    this.#standing = standing;
    this.#settleAll(ending.unanswered);
    if ('error' in ending) this.#append('error', ending.error);
    this.activity.endAll();
    this.totals.endTurn();
    this.#unfinishedText = '';
    // Its rest begins now: counted from its last prompt, a session stopped for its length would be forgotten at once.
    this.times.active();
    this.#services.tell({ kind: 'rested' });
    this.#changed();
    return true;
  }

  #standingAfter(ending: Ending): Standing | undefined {
    if (ending.how === 'cancel') {
      const kind = transition(this.state, ending.how);
      return kind && { kind, result: this.result, cancellation: ending.cancellation };
    }
    const kind = transition(this.state, ending.how);
    return kind && { kind, result: ending.result, cancellation: ending.cancellation };
  }

  #settleAll({ message, interrupt, source }: Unanswered): void {
    this.requests.settleAll({ behavior: 'deny', message, ...(interrupt && { interrupt }) }, source);
  }

  // ── small things ───────────────────────────────────────────────────────────────────────────────────────────────

  #changed(): void {
    this.#services.tell({ kind: 'changed' });
  }

  #append(type: Parameters<EventLog['append']>[0], data: unknown): void {
    const event = this.log.append(type, data, this.#services.clock.wallTime());
    this.#services.tell({ kind: 'event', event });
  }

  /** Moves on within a turn, into one, or back from a request of the server's own. */
  #apply(event: Exclude<StateEvent, EndEvent> | OwnRequest['backTo']): boolean {
    const kind = transition(this.state, event);
    if (kind === undefined) return this.#meansNothing(event);
    this.#standing = { kind, result: this.result };
    return true;
  }

  #meansNothing(event: StateEvent): false {
    this.#services.debug(`session ${this.id}: ${event} means nothing while ${this.state}`);
    return false;
  }
}
