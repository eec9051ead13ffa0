import { randomUUID } from 'node:crypto';
import type { AgentExit, RewindReport } from '../driver/agent-process.ts';
import type { AgentSignal, Translation } from '../driver/agent-signal.ts';
import type { Decision, PermissionAsk } from '../driver/permission-ask.ts';
import { DomainError, messageOf } from '../errors/errors.ts';
import type { PermissionMode, SessionOptions } from '../schema/session-options.ts';
import { Activity } from './activity.ts';
import type { Answer } from './answer.ts';
import { assistantText } from './assistant-text.ts';
import { deferred } from './deferred.ts';
import { EventLog } from './event-log.ts';
import { Outbox } from './outbox.ts';
import { settledWithin } from './patience.ts';
import { RequestDesk } from './request-desk.ts';
import type { OpenRequest, Outcome, Source } from './requests.ts';
import { busy, cannotSwitch, requestNotFound } from './session-errors.ts';
import { SessionProcess, type ProcessHost } from './session-process.ts';
import { SessionSetup } from './session-setup.ts';
import { SessionTimes } from './session-times.ts';
import type { Cancellation, SessionSeed, SessionServices, SessionSwitch } from './session-types.ts';
import { ChangeSignal } from './signal.ts';
import { isAtRest, transition, type State, type StateEvent } from './state.ts';
import { oneLine } from './tool-summary.ts';
import { Totals } from './totals.ts';
import { describeExit, endedByForce, lostProcess, startFailed, type TurnResult } from './turn-result.ts';

/** How long an interrupt may take before the process is ended instead. */
const INTERRUPT_PATIENCE_MS = 5_000;

const TOPIC_CHARS = 200;

/** One conversation with Claude Code: its state, its process, what happened and what is asked. */
export class Session {
  readonly id: string;
  readonly log: EventLog;
  readonly activity = new Activity();
  readonly totals: Totals;
  readonly changed = new ChangeSignal();
  readonly #services: SessionServices;
  readonly #setup: SessionSetup;
  readonly #times: SessionTimes;
  readonly #requests: RequestDesk;
  readonly #outbox = new Outbox();
  readonly #process: SessionProcess;
  #permissionTimeoutMs: number;
  #state: State = 'starting';
  #lastReply: Promise<void> = Promise.resolve();
  #result: TurnResult | undefined;
  #cancellation: Cancellation | undefined;
  #backgroundTasks = 0;
  /** Rewinds under way: they need the process although the conversation is at rest. */
  #rewinding = 0;
  #lastText = '';
  #topic = '';

  constructor(seed: SessionSeed, services: SessionServices) {
    this.id = seed.id;
    this.#services = services;
    this.#setup = new SessionSetup(seed.options);
    this.#times = new SessionTimes(services.clock);
    this.#permissionTimeoutMs = seed.permissionTimeoutMs;
    this.log = new EventLog(services.eventLimits);
    this.totals = new Totals(seed.inherited);
    this.#requests = new RequestDesk(services.clock, () => this.options, {
      onOpened: (request) => this.#opened(request),
      onSettled: (request, outcome) => this.#settled(request, outcome),
    });
    this.#process = new SessionProcess(this.#processHost(), services, seed.origin, seed.initTimeoutMs);
  }

  // ── what others see ────────────────────────────────────────────────────────────────────────────────────────────

  get state(): State {
    return this.#state;
  }

  get atRest(): boolean {
    return isAtRest(this.#state);
  }

  get options(): SessionOptions {
    return this.#setup.options;
  }

  get createdAt(): number {
    return this.#times.createdAt;
  }

  get requests(): OpenRequest[] {
    return this.#requests.all;
  }

  findRequest(id: string): OpenRequest | undefined {
    return this.#requests.find(id);
  }

  /** The answer of the last call; only at rest is it the final one. */
  get result(): TurnResult | undefined {
    return this.#result;
  }

  get cancellation(): Cancellation | undefined {
    return this.#cancellation;
  }

  get backgroundTasks(): number {
    return this.#backgroundTasks;
  }

  /** Time of day. */
  get lastActiveAt(): number {
    return this.#times.lastActiveAt;
  }

  /** How long nothing has happened to it. */
  get restedMs(): number {
    return this.#times.restedMs;
  }

  /** How long its call has been going on. */
  get workedMs(): number {
    return this.#times.workedMs;
  }

  /** How long Claude Code has said nothing while it works. */
  get quietMs(): number {
    return this.#times.quietMs;
  }

  /** One line on what it is about: the first message this server gave it. */
  get topic(): string {
    return this.#topic;
  }

  get tools(): string[] | undefined {
    return this.#setup.tools;
  }

  get model(): string | undefined {
    return this.#setup.model;
  }

  get permissionMode(): PermissionMode | undefined {
    return this.#setup.permissionMode;
  }

  get hasProcess(): boolean {
    return this.#process.live !== undefined;
  }

  /** A process is on its way but has not reported its start. */
  get launching(): boolean {
    return this.#process.launching;
  }

  /** Also of a process that is on its way out. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Resolves when a process that is being closed has gone. */
  closed(): Promise<void> {
    return this.#process.closed();
  }

  get persists(): boolean {
    return this.options.persistSession !== false;
  }

  /** A process that may be closed without losing anything. */
  get parkable(): boolean {
    return this.hasProcess && this.atRest && this.persists && this.#backgroundTasks === 0 && this.#rewinding === 0;
  }

  // ── talking ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Hands a message over. Resolves when a live process has it, or a new one has reported its start. */
  async prompt(text: string): Promise<void> {
    if (this.#state === 'cancelled') throw new DomainError('CANCELLED', 'The session was cancelled; start a new one.');
    const message = { id: randomUUID(), text };
    const isFirst = this.#state === 'starting';
    if (this.#topic === '') this.#topic = oneLine(text, TOPIC_CHARS);
    if (this.atRest) this.#beginCall();
    this.#outbox.add(message);
    try {
      await this.#process.deliver(message, isFirst);
      this.changed.notify();
    } catch (error) {
      // The caller is told; left here it would hold the session back from ever coming to rest.
      this.#outbox.takeBack(message.id);
      throw error;
    }
  }

  /** A process may have died without its end being told yet; what is sent to it would not arrive. */
  deathTold(): Promise<void> {
    return this.#process.deathTold();
  }

  /** Replies that come together are handed over one after the other, so that the second finds the session at work. */
  oneReplyAtATime(handOver: () => Promise<void>): Promise<void> {
    const turn = this.#lastReply.then(handOver);
    this.#lastReply = turn.catch(() => undefined);
    return turn;
  }

  /** From the next turn on. */
  async switchTo({ model, permissionMode, permissionTimeoutMs }: SessionSwitch): Promise<void> {
    // Claude Code takes this mode only if it was started with it: the next message starts it again.
    if (permissionMode === 'bypassPermissions' && this.permissionMode !== permissionMode) {
      await this.park();
      if (this.hasProcess) throw cannotSwitch(this, permissionMode);
    }
    if (model !== undefined) {
      await this.#process.tell((process) => process.setModel(model));
      this.#setup.switchModel(model);
    }
    if (permissionMode !== undefined) {
      await this.#process.tell((process) => process.setPermissionMode(permissionMode));
      this.#setup.switchMode(permissionMode);
    }
    if (permissionTimeoutMs !== undefined) this.#permissionTimeoutMs = permissionTimeoutMs;
  }

  setInitTimeout(ms: number): void {
    this.#process.setInitTimeout(ms);
  }

  /** Settles one request with a decision somebody made. */
  respond(requestId: string, answer: Answer, source: Source): OpenRequest {
    const { request, decision } = this.#requests.decisionFor(requestId, answer);
    this.decide(requestId, decision, source);
    return request;
  }

  /** As `respond`, with a decision already made. Throws if the request had its outcome. */
  decide(requestId: string, decision: Decision, source: Source): void {
    const stops = decision.behavior === 'deny' && decision.interrupt === true;
    if (stops && this.#requests.find(requestId)) this.#apply('interrupt');
    if (!this.#requests.settle(requestId, decision, source)) throw requestNotFound(requestId);
  }

  /** Escape: the turn stops, the session stays. Resolves when it has stopped; a message that waited is taken up then. */
  async interrupt(): Promise<boolean> {
    if (!this.#apply('interrupt')) return false;
    this.#requests.settleAll({ behavior: 'deny', message: 'The turn was interrupted.', interrupt: true }, 'cancel');
    // A turn that has not begun cannot be stopped.
    await this.#process.startSettled();
    const { live } = this.#process;
    await live?.interrupt().catch((error: unknown) => this.#services.debug(`interrupt: ${messageOf(error)}`));
    if (!(await settledWithin(this.#services.clock, INTERRUPT_PATIENCE_MS, this.#stopped())) && live) {
      this.#close();
      this.#result = endedByForce(this.#outbox.takeUndelivered());
      this.#apply('stop');
      this.#rested();
    }
    return true;
  }

  /** Final. Resolves when the process and all it started are gone. */
  async cancel(reason: string, source: string, settledAs: Source = 'cancel'): Promise<boolean> {
    if (!this.#apply('cancel')) return false;
    this.#cancellation = { at: this.#services.clock.wallTime(), reason, source };
    // Its rest begins now: counted from its last prompt, a session stopped for its length would be forgotten at once.
    this.#times.active();
    this.#requests.settleAll(
      { behavior: 'deny', message: `The session was cancelled: ${reason}`, interrupt: true },
      settledAs,
    );
    this.#process.failStart(new DomainError('CANCELLED', `The session was cancelled: ${reason}`));
    this.activity.endAll();
    this.#services.onRest(this);
    this.changed.notify();
    await this.#closeProcess();
    return true;
  }

  /** Closes a process at rest; the next message resumes the transcript. */
  async park(): Promise<void> {
    if (!this.parkable) return;
    await this.#closeProcess();
    // A message may have come meanwhile; then there is more to write.
    if (this.atRest) this.log.pack();
  }

  /** For a session that is forgotten by the server. */
  async dispose(): Promise<void> {
    await this.#closeProcess();
  }

  async rewind(toUserMessage: string, dryRun: boolean): Promise<RewindReport> {
    if (!this.atRest) throw busy(this);
    this.#rewinding++;
    this.#times.active();
    try {
      return await (await this.#process.ready()).rewindFiles(toUserMessage, dryRun);
    } finally {
      this.#rewinding--;
    }
  }

  // ── the process ────────────────────────────────────────────────────────────────────────────────────────────────

  #processHost(): ProcessHost {
    return {
      id: this.id,
      outbox: this.#outbox,
      totals: this.totals,
      options: () => this.options,
      isCancelled: () => this.#state === 'cancelled',
      heard: (translation) => this.#heard(translation),
      asked: (ask) => this.#asked(ask),
      startFailed: (error, reported) => this.#startFailed(error, reported),
      exited: (exit) => this.#exited(exit),
    };
  }

  #startFailed(error: unknown, reported: boolean): void {
    const undelivered = this.#outbox.takeUndelivered();
    this.#backgroundTasks = 0;
    if (!this.#apply('fail')) return;
    this.#result = startFailed(messageOf(error), reported ? [] : undelivered);
    this.#append('error', { type: 'error', message: this.#result.text });
    this.#rested();
  }

  async #closeProcess(): Promise<void> {
    this.#close();
    await this.closed();
  }

  #close(): void {
    this.#process.close();
    this.#backgroundTasks = 0;
  }

  #exited(exit: AgentExit): void {
    this.#backgroundTasks = 0;
    if (this.#state === 'starting' || this.#process.launching) {
      const words = this.#result?.isError === true ? this.#result.text : describeExit(exit);
      this.#process.failStart(new DomainError('INTERNAL', `Claude Code did not start: ${words}`));
      return;
    }
    if (this.atRest) return;
    if (this.#times.heardNothing && this.persists && this.#process.redeliver(this.#outbox.untouched)) return;
    this.#requests.settleAll({ behavior: 'deny', message: 'Claude Code has ended.', interrupt: true }, 'cancel');
    this.#result = lostProcess(exit, this.#outbox.takeUndelivered());
    this.#append('error', { type: 'error', message: this.#result.text, exitCode: exit.code, signal: exit.signal });
    this.#apply('fail');
    this.#rested();
  }

  // ── what Claude Code says ──────────────────────────────────────────────────────────────────────────────────────

  #heard({ event, signals }: Translation): void {
    this.#times.heard();
    for (const signal of signals) this.#take(signal);
    if (event) {
      if (event.type === 'output') {
        // Whatever held Claude up has passed.
        this.activity.clearNote();
        this.#lastText = assistantText(event.data) ?? this.#lastText;
      }
      this.#append(event.type, event.data);
    }
    for (const signal of signals) if (this.#process.restsOn(signal)) this.#comeToRest();
  }

  #take(signal: AgentSignal): void {
    switch (signal.kind) {
      case 'started':
        this.#setup.started(signal);
        this.#services.onTools(signal.tools);
        this.#apply('started');
        this.#process.started();
        return;
      case 'state':
        if (signal.state === 'running' && this.atRest) this.#beginCall();
        return;
      case 'delivery':
        this.#outbox.advance(signal.messageId, signal.state);
        return;
      case 'result':
        this.#outbox.answered(signal.answered);
        this.#process.hasAnswered();
        this.totals.add(signal.result);
        this.#result = signal.result;
        if (this.#state === 'interrupting' && this.#outbox.waiting && this.#apply('next')) this.changed.notify();
        return;
      case 'tool_use':
        this.activity.toolUsed(signal.toolUseId, signal.toolName, signal.input);
        this.changed.notify();
        return;
      case 'tool_result':
        this.activity.toolEnded(signal.toolUseId, signal.isError ? 'failed' : 'completed');
        return;
      case 'tool_refused':
        this.activity.toolEnded(signal.toolUseId, 'denied');
        return;
      case 'background_tasks':
        this.#backgroundTasks = signal.count;
        // Claude Code is about to wake and tell of the end.
        this.#times.active();
        return;
      case 'permission_mode':
        this.#setup.modeReported(signal.mode);
        return;
      case 'partial':
        if (signal.messageId !== undefined) this.log.beginPartial(signal.messageId);
        else this.log.appendPartial(signal.text, this.#services.clock.wallTime());
        return;
      case 'retry':
        this.activity.note(signal.line);
        this.changed.notify();
        return;
    }
  }

  #comeToRest(): void {
    if (this.atRest || this.#outbox.unread) return;
    // It could not even start, as without a transcript to resume: its end will tell the caller so.
    if (this.#process.launching && this.#result?.isError === true) return;
    this.#requests.settleAll({ behavior: 'deny', message: 'The turn has ended.' }, 'cancel');
    const result = this.#result;
    const stopped =
      result?.interrupted === true ||
      (this.#state === 'interrupting' && result?.errorSubtype === 'error_during_execution');
    this.#apply(stopped ? 'stop' : result?.isError === true ? 'fail' : 'rest');
    this.#process.started();
    this.#rested();
  }

  #rested(): void {
    this.activity.endAll();
    this.#times.active();
    this.#services.onRest(this);
    this.changed.notify();
  }

  #beginCall(): void {
    this.#apply('work');
    this.#times.callBegins();
    this.#result = undefined;
    this.totals.beginCall();
    this.activity.begin();
    this.changed.notify();
  }

  // ── what Claude Code asks ──────────────────────────────────────────────────────────────────────────────────────

  async #asked(ask: PermissionAsk): Promise<Decision> {
    this.#times.heard();
    const { decision, request } = this.#requests.ask(ask, this.#permissionTimeoutMs, this.#lastText);
    if (request) this.#services.onRequest(this, request);
    return decision;
  }

  #opened(request: OpenRequest): void {
    this.#append('permission_request', request);
    this.#apply('asked');
    this.#services.onOpened(this, request);
    this.changed.notify();
  }

  #settled(request: OpenRequest, outcome: Outcome): void {
    const { decision, source } = outcome;
    if (decision.behavior === 'deny') this.activity.toolEnded(request.ask.toolUseId, 'denied');
    this.#append('permission_result', {
      requestId: request.id,
      toolName: request.ask.toolName,
      toolUseID: request.ask.toolUseId,
      decision: decision.behavior,
      source,
      ...(decision.behavior === 'deny' && { message: decision.message }),
    });
    if (this.#requests.size === 0) this.#apply('answered');
    this.#services.onSettled(this, request, outcome);
    this.changed.notify();
  }

  // ── small things ───────────────────────────────────────────────────────────────────────────────────────────────

  #append(type: Parameters<EventLog['append']>[0], data: unknown): void {
    this.log.append(type, data, this.#services.clock.wallTime());
  }

  #apply(event: StateEvent): boolean {
    const next = transition(this.#state, event);
    if (next === undefined) {
      this.#services.debug(`session ${this.id}: ${event} means nothing while ${this.#state}`);
      return false;
    }
    this.#state = next;
    return true;
  }

  /** Resolves when an interrupt has had its effect. */
  async #stopped(): Promise<void> {
    const stopped = deferred<void>();
    const unsubscribe = this.changed.subscribe(() => {
      if (this.#state !== 'interrupting') stopped.resolve();
    });
    if (this.#state !== 'interrupting') stopped.resolve();
    await stopped.promise;
    unsubscribe();
  }
}
