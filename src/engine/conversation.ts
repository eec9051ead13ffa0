import type { AgentExit } from '../driver/agent-process.ts';
import type { AgentSignal, Translation } from '../driver/agent-signal.ts';
import type { Decision, PermissionAsk } from '../driver/permission-ask.ts';
import { DomainError, messageOf } from '../errors/errors.ts';
import type { EventBody, Original, RequestRecord } from '../schema/events.ts';
import type { Activity } from './activity.ts';
import { AgentReports, type ReportsSeed, type RestoredReports } from './agent-reports.ts';
import type { Clock } from './clock.ts';
import { findEditPlace } from './edit-place.ts';
import { Grants, targetState, type Grant, type GrantEnd } from './grants.ts';
import { handoverLine, lapsedText } from './handover.ts';
import type { FileTrail } from './file-trail.ts';
import type { EventLog } from './event-log.ts';
import type { SessionNotice } from './notices.ts';
import { Outbox, type Message } from './outbox.ts';
import { SessionRequests } from './session-requests.ts';
import { recordOf, type OpenRequest, type Outcome, type OwnRequest, type Source } from './requests.ts';
import { requestNotFound } from './session-errors.ts';
import { ranInstead } from './shown-request.ts';
import type { SessionSetup } from './session-setup.ts';
import { SessionTimes } from './session-times.ts';
import type { Cancellation } from './session-types.ts';
import { Standing, type Ending, type Move } from './standing.ts';
import { isAtRest, type State, type StateEvent } from './state.ts';
import { oneLine } from './tool-summary.ts';
import type { Totals } from './totals.ts';
import {
  endedByForce,
  HUB_STOPPED,
  hubStopped,
  interruptedWaiting,
  lostProcess,
  startFailed,
  stoppedByServer,
  type TurnResult,
} from './turn-result.ts';

const TOPIC_CHARS = 200;

/** What can be told of a conversation while it goes on. */
export type ConversationEvent =
  /** Something that a waiting call may have been waiting for. */
  | { kind: 'changed' }
  | Extract<SessionNotice, { kind: 'event' | 'message' | 'delivered' | 'settled' }>
  /** All that was asked is decided, and there is no process to hear it. */
  | { kind: 'decided' }
  | { kind: 'granted'; grant: Grant }
  | { kind: 'grant_ended'; grant: Grant; end: GrantEnd }
  | { kind: 'tools'; tools: string[] }
  /** Every request, also one that a rule is about to refuse. */
  | { kind: 'opened'; request: OpenRequest }
  /** A request that somebody has to answer. */
  | { kind: 'asked'; request: OpenRequest }
  /** A turn begins after a rest. */
  | { kind: 'began' }
  | { kind: 'rested' };

export interface ConversationSeed extends ReportsSeed {
  readonly id: string;
  readonly permissionTimeoutMs: number;
  /** Requests outlive the process that made them. */
  readonly keepsRequests: boolean;
  readonly restored?: RestoredConversation | undefined;
}

/** What is left of a conversation that an earlier process carried on. */
export interface RestoredConversation {
  readonly state: State;
  readonly result: TurnResult | undefined;
  readonly cancellation: Cancellation | undefined;
  readonly reports: RestoredReports;
  readonly createdAt: number;
  readonly lastActiveAt: number;
  readonly topic: string;
  readonly requests: readonly RequestRecord[];
  readonly grants: readonly Grant[];
  readonly handover: readonly string[];
  /** Messages that Claude Code was never given. */
  readonly undelivered: readonly Message[];
}

export interface ConversationServices {
  readonly clock: Clock;
  tell(event: ConversationEvent): void;
  debug(line: string): void;
}

const BACK_TO_REST: Partial<Record<State, OwnRequest['backTo']>> = { idle: 'rest', interrupted: 'stop', error: 'fail' };

/** What is said of the requests that nobody has answered when a turn ends. */
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
  readonly files: FileTrail | undefined;
  readonly #services: ConversationServices;
  readonly #reports: AgentReports;
  readonly #standing: Standing;
  readonly #keepsRequests: boolean;
  readonly #grants: Grants;
  /** What was decided while there was no process, in words for the next one. */
  #handover: string[] = [];
  #permissionTimeoutMs: number;
  #lastMessageAt = 1;
  #topic = '';

  constructor(seed: ConversationSeed, services: ConversationServices) {
    this.id = seed.id;
    this.#services = services;
    this.#permissionTimeoutMs = seed.permissionTimeoutMs;
    this.#keepsRequests = seed.keepsRequests;
    this.#standing = new Standing(seed.restored);
    this.#grants = new Grants(
      seed.id,
      () => services.clock.wallTime(),
      {
        added: (grant) => services.tell({ kind: 'granted', grant }),
        closed: (grant, end) => services.tell({ kind: 'grant_ended', grant, end }),
      },
      seed.restored?.grants,
    );
    this.outbox = new Outbox((messageId) => services.tell({ kind: 'delivered', messageId }));
    const reports = new AgentReports(seed, services.clock, (event) => services.tell({ kind: 'event', event }));
    this.#reports = reports;
    this.log = reports.log;
    this.activity = reports.activity;
    this.totals = reports.totals;
    this.setup = reports.setup;
    this.files = reports.files;
    this.times = new SessionTimes(services.clock);
    this.requests = new SessionRequests(services.clock, () => this.setup.options, {
      onOpened: (request) => this.#opened(request),
      onSettled: (request, outcome) => this.#settled(request, outcome),
    });
    if (seed.restored) this.#restore(seed.restored);
  }

  #restore({ reports, createdAt, lastActiveAt, topic, requests, handover }: RestoredConversation): void {
    this.#reports.restore(reports, this.atRest);
    this.times.restore(createdAt, lastActiveAt);
    this.#topic = topic;
    this.#lastMessageAt = reports.lastMessageAt;
    this.#handover = [...handover];
    for (const request of requests) this.requests.restore(request);
  }

  /** To be called once, when somebody listens: what was at work when the hub stopped is so no longer. */
  hubStopped({ undelivered }: RestoredConversation): void {
    if (this.atRest) return;
    // Whoever began these waits no longer.
    for (const { id, own } of this.requests.all)
      if (own) this.requests.settle(id, { behavior: 'deny', message: HUB_STOPPED, interrupt: true }, 'shutdown');
    if (this.atRest || this.requests.size > 0) return;
    if (this.#handover.length > 0) return this.#services.tell({ kind: 'decided' });
    this.#fail(hubStopped(undelivered.map(({ text }) => text)), undefined);
  }

  /** What the next process has to be told first; empty where there is nothing. */
  get handover(): readonly string[] {
    return this.#handover;
  }

  /** The next process was told. */
  handedOver(): void {
    this.#handover = [];
  }

  get permissionTimeoutMs(): number {
    return this.#permissionTimeoutMs;
  }

  /** Everything that is alive waits for answers. */
  get onlyWaits(): boolean {
    return this.state === 'waiting' && this.backgroundTasks === 0 && this.activity.onlyWaits(this.requests.all);
  }

  /** The process is given back while requests are open. They stay. */
  detach(): void {
    this.requests.detachAll();
    this.#reports.processGone();
    this.#changed();
  }

  get state(): State {
    return this.#standing.state;
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
    return this.#reports.speech.unfinished;
  }

  get backgroundTasks(): number {
    return this.#reports.backgroundTasks;
  }

  /** Something may have run in this turn. */
  get acted(): boolean {
    return this.#reports.acted;
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
    if (this.#waitsDetached) return this.#stopDetached();
    if (!this.#apply('interrupt')) return false;
    this.#settleAll({ message: 'The turn was interrupted.', interrupt: true, source: 'cancel' });
    return true;
  }

  /** Settles one request. Throws if it had its outcome. */
  decide(requestId: string, decision: Decision, source: Source, by?: string): void {
    const stops = decision.behavior === 'deny' && decision.interrupt === true;
    const detached = this.requests.isDetached(requestId);
    if (stops && !detached && this.requests.find(requestId)) this.#apply('interrupt');
    if (!this.requests.settle(requestId, decision, source, by === undefined ? {} : { by }))
      throw requestNotFound(requestId);
    if (stops && detached) this.#stopDetached();
  }

  get #waitsDetached(): boolean {
    return this.requests.all.some(({ id }) => this.requests.isDetached(id));
  }

  #stopDetached(): boolean {
    this.#handover = [];
    return this.#end({
      how: 'stop',
      result: interruptedWaiting(this.outbox.takeUndelivered()),
      unanswered: { message: 'The turn was interrupted.', interrupt: true, source: 'cancel' },
    });
  }

  // ── what Claude Code says and asks ─────────────────────────────────────────────────────────────────────────────

  heard({ event, signals }: Translation): void {
    this.times.heard();
    if (event) this.#take(event.body);
    for (const signal of signals) this.#react(signal);
    if (event) this.#append(event.body, event.original);
    if (signals.some((signal) => signal.kind === 'state' && signal.state === 'idle')) this.#becameIdle();
  }

  async asked(ask: PermissionAsk): Promise<Decision> {
    this.times.heard();
    const lastText = this.#reports.speech.last;
    // Only for an edit is there anything to wait for.
    const edit = ask.toolName === 'Edit' ? await findEditPlace(ask.input, this.setup.options) : undefined;
    const { cwd = '' } = this.setup.options;
    const target = this.#keepsRequests ? await targetState(ask.toolName, ask.input, cwd) : undefined;
    const granted = this.#grants.use(ask, { ...ask, cwd, target });
    if (granted) return granted;
    if (this.atRest) return { behavior: 'deny', message: 'The turn has ended.', interrupt: true };
    const { decision, request } = this.requests.ask(ask, this.#permissionTimeoutMs, { lastText, edit, target });
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

  #take(body: EventBody): void {
    if (this.#reports.take(body, (toolName, input) => this.requests.refusedBy(toolName, input))) this.#changed();
    if (body.kind === 'init') {
      this.#services.tell({ kind: 'tools', tools: body.tools });
      this.#apply('started');
    } else if (body.kind === 'result') {
      this.outbox.answered(body.answered);
      this.#standing.setResult(body.result);
      if (this.state === 'interrupting' && this.outbox.waiting && this.#apply('next')) this.#changed();
    } else if (body.kind === 'background_tasks') {
      // Claude Code is about to wake and report their end.
      this.times.active();
    }
  }

  #taken(messageId: string): void {
    this.files?.messageTaken(messageId);
    const text = this.outbox.textOf(messageId);
    if (text !== undefined) this.#append({ kind: 'prompt', messageId, text });
  }

  #react(signal: AgentSignal): void {
    switch (signal.kind) {
      case 'state':
        if (signal.state === 'running' && this.atRest) this.#beginTurn();
        return;
      case 'delivery':
        this.outbox.advance(signal.messageId, signal.state);
        if (signal.state === 'started') this.#taken(signal.messageId);
        return;
      case 'file_written':
        return this.files?.written(signal.path, signal.before);
      case 'file_edited':
        return this.activity.fileEdited(signal.toolUseId, signal.edit);
      case 'streamed':
        return this.#reports.streamed(signal);
    }
  }

  #opened(request: OpenRequest): void {
    if (!request.own) this.activity.requestOpened(request);
    this.#append({ kind: 'permission_request', request: recordOf(request) });
    this.#apply('asked');
    this.#services.tell({ kind: 'opened', request });
    this.#changed();
  }

  #settled(request: OpenRequest, outcome: Outcome): void {
    const { decision, source } = outcome;
    const ran = ranInstead(request, decision);
    if (!request.own) this.activity.requestSettled(request, outcome, ran);
    this.#append({
      kind: 'permission_result',
      requestId: request.id,
      toolName: request.ask.toolName,
      toolUseId: request.ask.toolUseId,
      decision: decision.behavior,
      source,
      ...(decision.behavior === 'deny' && { message: decision.message }),
      ...(ran && { input: ran }),
    });
    if (outcome.detached && !this.atRest && !request.own) this.#decidedAway(request, decision);
    if (this.requests.size === 0 && !this.atRest) this.#apply(request.own?.backTo ?? 'answered');
    this.#services.tell({ kind: 'settled', request, outcome });
    this.#changed();
    if (outcome.detached && this.state === 'running') this.#services.tell({ kind: 'decided' });
  }

  /** What was allowed is granted once; denials and answers are handed over in words. */
  #decidedAway(request: OpenRequest, decision: Decision): void {
    const { ask, kind, cwd = '', target } = request;
    this.#handover.push(handoverLine(request, decision));
    if (decision.behavior === 'allow' && kind !== 'user_question')
      this.#grants.add(request.id, { ...ask, cwd, target }, decision);
  }

  // ── how a turn begins and ends ─────────────────────────────────────────────────────────────────────────────────

  #beginTurn(): void {
    this.#apply('work');
    this.#standing.setResult(undefined);
    this.times.callBegins();
    this.#reports.turnBegins();
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
    this.#fail(result, undefined);
  }

  /** The process has ended by itself. What it never read is for the next one, if it can have one. */
  exited(exit: AgentExit, canRedeliver: boolean): readonly Message[] {
    this.#reports.processGone();
    if (this.atRest) return [];
    if (this.#keepsRequests && this.state === 'waiting') {
      this.detach();
      return [];
    }
    const { untouched } = this.outbox;
    if (canRedeliver && this.times.heardNothing && untouched.length > 0) return untouched;
    const result = lostProcess(exit, this.outbox.takeUndelivered());
    this.#fail(result, exit);
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
    this.#reports.processGone();
  }

  #fail(result: TurnResult, details: Pick<AgentExit, 'code' | 'signal'> | undefined): void {
    this.#reports.processGone();
    this.#end({
      how: 'fail',
      result,
      error: {
        kind: 'error',
        message: result.text,
        ...(details && { exitCode: details.code, signal: details.signal }),
      },
      unanswered: { message: 'Claude Code has ended.', interrupt: true, source: 'cancel' },
    });
  }

  /** The one way in which a turn ends. */
  #end(ending: Ending & { readonly unanswered: Unanswered; readonly error?: EventBody }): boolean {
    if (!this.#standing.end(this.#withLapsed(ending))) return this.#meansNothing(ending.how);
    this.#settleAll(ending.unanswered);
    if (ending.error) this.#append(ending.error);
    this.#reports.turnEnds();
    // Its rest begins now: counted from its last prompt, a session stopped for its length would be forgotten at once.
    this.times.active();
    this.#services.tell({ kind: 'rested' });
    this.#changed();
    return true;
  }

  /** At rest nothing is left of what was allowed, unless nobody has been told of it yet. */
  #withLapsed(ending: Ending): Ending {
    if (this.#handover.length > 0 || this.#grants.open.length === 0 || this.atRest) return ending;
    const lapsed = this.#grants.lapseAll().map(({ tool }) => tool);
    if (ending.how === 'cancel' || !ending.result) return ending;
    return { ...ending, result: { ...ending.result, text: `${ending.result.text}\n\n${lapsedText(lapsed)}` } };
  }

  #settleAll({ message, interrupt, source }: Unanswered): void {
    this.requests.settleAll({ behavior: 'deny', message, ...(interrupt && { interrupt }) }, source);
  }

  // ── small things ───────────────────────────────────────────────────────────────────────────────────────────────

  #changed(): void {
    this.#services.tell({ kind: 'changed' });
  }

  #append(body: EventBody, original?: Original): void {
    this.log.append(body, this.#services.clock.wallTime(), original);
  }

  #apply(event: Move): boolean {
    return this.#standing.move(event) || this.#meansNothing(event);
  }

  #meansNothing(event: StateEvent): false {
    this.#services.debug(`session ${this.id}: ${event} means nothing while ${this.state}`);
    return false;
  }
}
