import type { AgentExit } from '../../driver/agent-process.ts';
import type { AgentSignal, Translation } from '../../driver/translate.ts';
import type { Decision, PermissionAsk } from '../../driver/permission-ask.ts';
import { DomainError, messageOf } from '../../errors/errors.ts';
import type { EventBody, Original } from '../../schema/events.ts';
import type { LastAction } from '../../schema/own-action.ts';
import type { Activity } from './activity.ts';
import { AgentReports } from './agent-reports.ts';
import {
  type ConversationSeed,
  type ConversationServices,
  type RestoredConversation,
  SessionTimes,
} from './conversation-types.ts';
import { subjectOf } from '../requests/call-target.ts';
import { OwnActionState, type Since } from '../requests/own-actions.ts';
import { DecidedAway } from '../requests/decided-away.ts';
import type { Used } from '../requests/grants.ts';
import type { EventLog } from './event-log.ts';
import type { FileTrail } from '../session/file-trail.ts';
import { Outbox, type Message } from './outbox.ts';
import {
  answersOf,
  ownAsk,
  recordOf,
  RequestBook,
  settledEvent,
  type OpenRequest,
  type Outcome,
  type Proposal,
  type Source,
} from '../requests/requests.ts';
import { requestNotFound } from '../session/session-errors.ts';
import { RequestRules } from '../requests/request-rules.ts';
import type { SessionSetup } from './session-setup.ts';
import type { Cancellation } from '../session/session-types.ts';
import { ranInstead } from '../requests/shown-request.ts';
import { Standing, type Move, isAtRest, type State, type StateEvent } from './state.ts';
import { oneLine } from './tool-summary.ts';
import type { Totals } from './totals.ts';
import {
  cancelled,
  failed,
  forced,
  interruptedDetached,
  ranToCompletion,
  stopped,
  type TurnEnding,
  hubStopped,
  lostProcess,
  startFailed,
  type TurnResult,
} from './turn-result.ts';

const TOPIC_CHARS = 200;

/** One conversation with Claude Code: its state, what was said, done and asked. It knows nothing about processes. */
export class Conversation {
  readonly id: string;
  readonly log: EventLog;
  readonly activity: Activity;
  readonly totals: Totals;
  readonly setup: SessionSetup;
  readonly times: SessionTimes;
  readonly outbox: Outbox;
  readonly requests: RequestBook;
  readonly requestRules: RequestRules;
  readonly decidedAway: DecidedAway;
  /** The server's own action in it. */
  readonly own: OwnActionState;
  readonly files: FileTrail | undefined;
  /** For requests from now on; 0: they never expire. */
  permissionTimeoutMs: number;
  readonly #services: ConversationServices;
  readonly #reports: AgentReports;
  readonly #standing: Standing;
  readonly #keepsRequests: boolean;
  #lastMessageAt = 1;
  #topic = '';

  constructor(seed: ConversationSeed, services: ConversationServices) {
    this.id = seed.id;
    this.#services = services;
    this.permissionTimeoutMs = seed.permissionTimeoutMs;
    this.#keepsRequests = seed.keepsRequests;
    this.#standing = new Standing(seed.restored);
    this.decidedAway = new DecidedAway(seed.id, services, seed.restored);
    this.own = new OwnActionState(seed.restored);
    this.outbox = new Outbox((messageId) => services.tell({ kind: 'delivered', messageId }));
    const reports = new AgentReports(seed, services.clock, (event) => services.tell({ kind: 'event', event }));
    this.#reports = reports;
    this.log = reports.log;
    this.activity = reports.activity;
    this.totals = reports.totals;
    this.setup = reports.setup;
    this.files = reports.files;
    this.times = new SessionTimes(services.clock);
    this.requests = new RequestBook(services.clock, {
      onOpened: (request) => this.#opened(request),
      onSettled: (request, outcome) => this.#settled(request, outcome),
    });
    this.requestRules = new RequestRules(this.requests, () => this.setup.options, services.rules);
    if (seed.restored) this.#restore(seed.restored);
  }

  #restore(restored: RestoredConversation): void {
    const { reports, topic, requests, undelivered } = restored;
    this.#reports.restore(reports, this.atRest);
    // The last call of the model may not have been stored in time.
    if (!this.atRest && this.state !== 'starting') this.totals.spends();
    this.times.restore(restored);
    this.#topic = topic;
    this.#lastMessageAt = reports.lastMessageAt;
    for (const request of requests) this.requests.restore(request);
    this.#services.rules?.restore(reports.events, reports.droppedThrough);
    this.outbox.restore(reports.events);
    // What was queued goes to the next process, with what is decided until then.
    if (!this.atRest) for (const message of undelivered) this.outbox.add(message);
  }

  /** Call once, when there are listeners: whatever was running when the hub stopped no longer is. */
  hubStopped(): void {
    if (this.#tellAllowed('restart')) return;
    if (this.atRest || this.requests.size > 0) return;
    if (this.decidedAway.lines.length > 0) return this.#services.tell({ kind: 'decided' });
    this.fail(hubStopped(this.outbox.takeUndelivered()));
  }

  /** Call once, when there are listeners: the process that an earlier hub started is still there. */
  processContinues(backgroundTasks: number): void {
    this.decidedAway.clear();
    this.requests.expectAll();
    this.#reports.processContinues(backgroundTasks);
    this.#tellAllowed('restart');
  }

  /** Returns whether there is an action that a person has allowed. */
  #tellAllowed(since: Since): boolean {
    const { underWay } = this.own;
    if (underWay) this.#services.tell({ kind: 'allowed', underWay, since });
    return underWay !== undefined;
  }

  /** Everything still alive is waiting for answers. */
  get onlyWaits(): boolean {
    return this.state === 'waiting' && this.backgroundTasks === 0 && this.activity.onlyWaits(this.requests.all);
  }

  /** The process is released while requests are open. They stay open. */
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

  // ── what is said to Claude Code ────────────────────────────────────────────────────────────────────────────────

  /** A message is on its way to Claude Code. */
  say(message: Message): void {
    if (this.state === 'cancelled') throw new DomainError('CANCELLED', 'The session was cancelled; start a new one.');
    if (this.#topic === '') this.#topic = oneLine(message.text, TOPIC_CHARS);
    const begins = this.atRest || this.state === 'starting';
    if (this.atRest) this.#beginTurn();
    this.activity.messageGiven();
    this.#lastMessageAt = this.log.nextId;
    this.outbox.add({ ...message, ...(begins && { begins }) });
    this.#services.tell({ kind: 'message', message });
  }

  /** A note on a call that is about to run. It is read with the result of the call, and begins nothing. */
  note(message: Message): void {
    this.outbox.add(message);
    this.#services.tell({ kind: 'message', message });
  }

  /**
   * It could not be delivered, and the caller gets the error; left here it would keep the session from coming to rest,
   * and so would the turn that it began.
   */
  undoSend(message: Message, error: unknown): void {
    if (this.outbox.takeBack(message.id) === 'nothing begins' && !this.atRest) this.startFailed(error, true);
  }

  /** Stops the turn. Returns whether there was one. */
  interrupt(): boolean {
    // Half of an action is worse than all of it.
    if (this.own.underWay) return false;
    if (this.requests.all.some(({ id }) => this.requests.isDetached(id))) return this.#stopDetached();
    if (!this.#apply('interrupt')) return false;
    this.#settleAll({ message: 'The turn was interrupted.', interrupt: true, source: 'interrupt' });
    return true;
  }

  /** Settles one request. Throws if it was already settled. */
  decide(requestId: string, decision: Decision, source: Source, by?: { id: string; name: string }): void {
    const isOwn = this.requests.find(requestId)?.own !== undefined;
    const stops = decision.behavior === 'deny' && decision.interrupt === true && !isOwn;
    const detached = this.requests.isDetached(requestId);
    if (stops && !detached && this.requests.find(requestId)) this.#apply('interrupt');
    if (!this.requests.settle(requestId, decision, source, by && { by: by.id, byName: by.name }))
      throw requestNotFound(requestId);
    if (stops && detached) this.#stopDetached();
  }

  #stopDetached(): boolean {
    this.decidedAway.clear();
    return this.#end(interruptedDetached(this.outbox.takeUndelivered()));
  }

  // ── what Claude Code says and asks ─────────────────────────────────────────────────────────────────────────────

  heard({ event, signals }: Translation): void {
    this.times.heard(this);
    if (event) this.#take(event.body);
    let becameIdle = false;
    for (const signal of signals) {
      this.#react(signal);
      becameIdle ||= signal.kind === 'state' && signal.state === 'idle';
    }
    const ruledOut = event && this.activity.ruledOut(event.body);
    if (ruledOut) this.#append(ruledOut);
    else if (event) this.#append(event.body, event.original);
    if (becameIdle) this.#becameIdle();
  }

  async asked(ask: PermissionAsk): Promise<Decision> {
    const again = this.requests.reattach(ask);
    if (again) return again;
    this.times.heard(this);
    const { speech } = this.#reports;
    const saidPlan = speech.plan(ask);
    const said = speech.aboutCall(ask);
    const agent = this.activity.findToolUse(speech.startOf(ask.toolUseId) ?? '')?.summary;
    const examining = subjectOf(ask, this.setup.options, this.#keepsRequests);
    const subject = examining && (await examining);
    const { rules } = this.#services;
    const verdict = rules && (await rules.verdict(ask));
    const granted =
      verdict?.decision === 'deny'
        ? undefined
        : this.decidedAway.use(ask, this.setup.options.cwd ?? '', subject?.target);
    if (granted) return this.#repeated(ask, granted);
    if (this.atRest) return { behavior: 'deny', message: 'The turn has ended.', interrupt: true };
    const scope = this.#keepsRequests ? this.#services.rules?.scope : undefined;
    return this.#ask(ask, { saidPlan, said, agent, ...subject, scope, verdict });
  }

  /** A call that was allowed while there was no process runs now, with the changes that were made to it then. */
  #repeated(ask: PermissionAsk, { requestId, decision }: Used): Decision {
    const { toolName, toolUseId } = ask;
    const input = ranInstead({ kind: 'permission', ask }, decision);
    this.activity.repeated(ask, input);
    this.#append({ kind: 'repeated', requestId, toolName, toolUseId, ...(input && { input }) });
    this.#changed();
    return decision;
  }

  /** Waits for a person's decision on an action of the server's own, or for that action. */
  get awaitsAction(): boolean {
    return this.own.underWay !== undefined || this.requests.all.some(({ own }) => own !== undefined);
  }

  /**
   * A request from the server itself, on behalf of a caller: of a conversation at rest, or in place of one that was
   * allowed but can no longer be carried out as it was shown. Returns its id.
   */
  askPerson(proposal: Proposal): string {
    const backTo = this.own.asks(this);
    this.times.callBegins();
    const ask = ownAsk(proposal);
    const { opening, action } = proposal;
    void this.#ask(ask, { saidPlan: '', own: { opening, action, backTo } });
    return ask.requestId;
  }

  /** The action that was allowed has ended, one way or another: the conversation is at rest again. */
  actionEnded(last: LastAction): void {
    const backTo = this.own.ended(last);
    if (backTo && !this.atRest && this.requests.size === 0) this.#apply(backTo);
    this.times.active();
    this.#changed();
  }

  #ask(ask: PermissionAsk, context: Parameters<RequestRules['ask']>[2]): Promise<Decision> {
    const { decision, request } = this.requestRules.ask(ask, this.permissionTimeoutMs, context);
    if (request) this.#services.tell({ kind: 'asked', request });
    return decision;
  }

  #take(body: EventBody): void {
    this.#services.rules?.heard(body);
    const tasksBefore = this.#reports.backgroundTasks;
    if (this.#reports.take(body, (...call) => this.requestRules.refusalOf(...call))) this.#changed();
    for (const use of this.activity.takeRuledOut()) this.#services.tell({ kind: 'ruled_out', use });
    if (body.kind === 'init') {
      this.#services.tell({ kind: 'tools', tools: body.tools });
      this.#apply('started');
    } else if (body.kind === 'result') {
      this.outbox.answered(body.answered);
      this.#standing.setResult(body.result);
      if (this.state === 'interrupting' && this.outbox.waiting && this.#apply('next')) this.#changed();
    } else if (body.kind === 'background_tasks' && body.count !== tasksBefore) {
      // Claude Code is about to wake up and report that they ended. To a new hub it repeats the count.
      this.times.active();
    }
  }

  #taken(messageId: string): void {
    this.files?.messageTaken(messageId);
    const message = this.outbox.find(messageId);
    if (message) this.#append({ kind: 'prompt', messageId, ...message });
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
      case 'file_edited':
      case 'streamed':
        return this.#reports.takeSignal(signal);
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
    const { decision } = outcome;
    const ran = ranInstead(request, decision);
    if (decision.behavior === 'allow') this.#services.rules?.granted(decision.updatedPermissions ?? []);
    if (!request.own) this.activity.requestSettled(request, outcome, { ran, answers: answersOf(request, decision) });
    this.#append(settledEvent(request, outcome, ran));
    if (outcome.detached && !this.atRest && !request.own) this.decidedAway.add(request, decision, outcome.source);
    const next = request.own ? this.own.settled(request.id, request.own, outcome) : 'answered';
    if (this.requests.size === 0 && !this.atRest) this.#apply(next);
    this.#services.tell({ kind: 'settled', request, outcome });
    this.#changed();
    if (request.own && this.#tellAllowed('answer')) return;
    if (outcome.detached && this.state === 'running') this.#services.tell({ kind: 'decided' });
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
    // If Claude Code has not read everything yet, its report of being idle is out of date.
    // One of the server's own requests is not the turn's: a background task that woke Claude up does not settle it.
    if (this.atRest || this.outbox.unread || this.awaitsAction) return;
    this.#end(ranToCompletion(this.state, this.result));
  }

  /** No process came up. Undelivered messages are listed only if no caller is waiting for the start itself. */
  startFailed(error: unknown, reported: boolean): void {
    const undelivered = this.outbox.takeUndelivered();
    this.fail(startFailed(messageOf(error), reported ? [] : undelivered));
  }

  /** The process exited by itself. The next process, if any, gets what it never read. */
  exited(exit: AgentExit, canRedeliver: boolean): readonly Message[] {
    this.#reports.processGone();
    if (this.atRest || this.awaitsAction) return [];
    if (this.#keepsRequests && this.state === 'waiting') {
      this.detach();
      return [];
    }
    const { untouched } = this.outbox;
    if (canRedeliver && this.times.isSilent && untouched.length > 0) return untouched;
    this.fail(lostProcess(exit, this.outbox.takeUndelivered()), exit);
    return [];
  }

  /** The process did not respond to an interrupt and was ended. */
  stoppedByForce(): void {
    this.#end(forced(this.outbox.takeUndelivered()));
  }

  /**
   * The server ends the turn; unlike a cancelled conversation, this one still accepts messages. Returns whether there
   * was a turn.
   */
  stop(reason: string, source: string): boolean {
    const cancellation = { at: this.#services.clock.wallTime(), reason, source };
    return this.#end(stopped(cancellation, this.outbox.takeUndelivered()));
  }

  /** Final. Returns whether it was still active. */
  cancel(reason: string, source: string, settledAs: Source): boolean {
    const cancellation = { at: this.#services.clock.wallTime(), reason, source };
    return this.#end(cancelled(cancellation, settledAs));
  }

  /** Background tasks end with the process. */
  processClosed(): void {
    this.#reports.processGone();
  }

  /** There is no process left to continue the turn. */
  fail(result: TurnResult, exit?: AgentExit): void {
    this.#reports.processGone();
    this.#end(failed(result, exit));
  }

  /** The only way a turn ends. */
  #end(ending: TurnEnding): boolean {
    const { workedMs } = this.times;
    if (!this.#standing.end(this.atRest ? ending : this.decidedAway.lapsed(ending)))
      return this.#ignoreUnexpected(ending.how);
    this.#settleAll(ending.unanswered);
    if (ending.error) this.#append(ending.error);
    this.#reports.totals.endedWithoutResult(workedMs);
    this.#reports.turnEnds();
    // The idle time starts now: counted from its last prompt, a session stopped for running too long would be dropped
    // at once.
    this.times.active();
    this.#services.tell({ kind: 'rested' });
    this.#changed();
    return true;
  }

  #settleAll({ message, interrupt, source }: TurnEnding['unanswered']): void {
    this.requests.settleAll({ behavior: 'deny', message, ...(interrupt && { interrupt }) }, source);
  }

  #changed(): void {
    this.#services.tell({ kind: 'changed' });
  }

  #append(body: EventBody, original?: Original): void {
    this.log.append(body, this.#services.clock.wallTime(), original);
  }

  #apply(event: Move): boolean {
    return this.#standing.move(event) || this.#ignoreUnexpected(event);
  }

  #ignoreUnexpected(event: StateEvent): false {
    this.#services.debug(`session ${this.id}: unexpected ${event} while ${this.state}`);
    return false;
  }
}
