import { randomUUID } from 'node:crypto';
import type { AgentExit, AgentListener, AgentProcess, RewindReport } from '../driver/agent-process.ts';
import type { AgentSignal, Translation } from '../driver/agent-signal.ts';
import type { Decision, PermissionAsk } from '../driver/permission-ask.ts';
import { DomainError, messageOf } from '../errors/errors.ts';
import type { PermissionMode, SessionOptions } from '../schema/session-options.ts';
import { Activity } from './activity.ts';
import { AgentLink } from './agent-link.ts';
import type { Answer } from './answer.ts';
import { assistantText } from './assistant-text.ts';
import { deferred, type Deferred } from './deferred.ts';
import { EventLog } from './event-log.ts';
import { Outbox } from './outbox.ts';
import { RequestDesk } from './request-desk.ts';
import type { OpenRequest, Outcome, Source } from './requests.ts';
import { busy, requestNotFound } from './session-errors.ts';
import type { Cancellation, SessionOrigin, SessionSeed, SessionServices, SessionSwitch } from './session-types.ts';
import { ChangeSignal } from './signal.ts';
import { isAtRest, transition, type State, type StateEvent } from './state.ts';
import { oneLine } from './tool-summary.ts';
import { Totals } from './totals.ts';
import { describeExit, endedByForce, failed, lostProcess, type TurnResult } from './turn-result.ts';

/** How long an interrupt may take before the process is ended instead. */
const INTERRUPT_PATIENCE_MS = 5_000;

const TOPIC_CHARS = 200;

/** One conversation with Claude Code: its state, its process, what happened and what is asked. */
export class Session {
  readonly id: string;
  readonly createdAt: number;
  readonly log: EventLog;
  readonly activity = new Activity();
  readonly totals: Totals;
  readonly changed = new ChangeSignal();
  readonly #services: SessionServices;
  readonly #requests: RequestDesk;
  readonly #outbox = new Outbox();
  readonly #link = new AgentLink();
  #options: SessionOptions;
  #origin: SessionOrigin;
  #permissionTimeoutMs: number;
  #initTimeoutMs: number;
  #state: State = 'starting';
  #starting: Deferred<void> | undefined;
  #lastReply: Promise<void> = Promise.resolve();
  #reportsState = false;
  #hasAnswered = false;
  /** What was said since the last answer: a session that has to begin again begins with it. */
  #unanswered: string[] = [];
  #result: TurnResult | undefined;
  #cancellation: Cancellation | undefined;
  #backgroundTasks = 0;
  /** Rewinds under way: they need the process although the conversation is at rest. */
  #rewinding = 0;
  #lastActiveAt: number;
  #workingSince: number;
  #lastHeardAt: number;
  #tools: string[] | undefined;
  #model: string | undefined;
  #permissionMode: PermissionMode | undefined;
  #lastText = '';
  #topic = '';

  constructor(seed: SessionSeed, services: SessionServices) {
    const now = services.clock.now();
    this.id = seed.id;
    this.createdAt = now;
    this.#lastActiveAt = now;
    this.#workingSince = now;
    this.#lastHeardAt = now;
    this.#options = seed.options;
    this.#origin = seed.origin;
    this.#permissionTimeoutMs = seed.permissionTimeoutMs;
    this.#initTimeoutMs = seed.initTimeoutMs;
    this.#permissionMode = seed.options.permissionMode;
    this.#model = seed.options.model;
    this.#services = services;
    this.log = new EventLog(services.eventLimits);
    this.totals = new Totals(seed.inherited);
    this.#requests = new RequestDesk(services.clock, () => this.#options, {
      onOpened: (request) => this.#opened(request),
      onSettled: (request, outcome) => this.#settled(request, outcome),
    });
  }

  // ── what others see ────────────────────────────────────────────────────────────────────────────────────────────

  get state(): State {
    return this.#state;
  }

  get atRest(): boolean {
    return isAtRest(this.#state);
  }

  get options(): SessionOptions {
    return this.#options;
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

  get lastActiveAt(): number {
    return this.#lastActiveAt;
  }

  get workingSince(): number {
    return this.#workingSince;
  }

  /** How long Claude Code has said nothing while it works. */
  get quietMs(): number {
    return this.#services.clock.now() - this.#lastHeardAt;
  }

  /** One line on what it is about: the first message this server gave it. */
  get topic(): string {
    return this.#topic;
  }

  get tools(): string[] | undefined {
    return this.#tools;
  }

  get model(): string | undefined {
    return this.#model;
  }

  get permissionMode(): PermissionMode | undefined {
    return this.#permissionMode;
  }

  get hasProcess(): boolean {
    return this.#link.live !== undefined;
  }

  /** A process is on its way but has not reported its start. */
  get launching(): boolean {
    return this.#starting !== undefined;
  }

  /** Also of a process that is on its way out. */
  get pid(): number | undefined {
    return this.#link.pid;
  }

  /** Resolves when a process that is being closed has gone. */
  closed(): Promise<void> {
    return this.#link.closed();
  }

  get persists(): boolean {
    return this.#options.persistSession !== false;
  }

  /** A process that may be closed without losing anything. */
  get parkable(): boolean {
    return this.hasProcess && this.atRest && this.persists && this.#backgroundTasks === 0 && this.#rewinding === 0;
  }

  // ── talking ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Hands a message over. Resolves when a live process has it, or a new one has reported its start. */
  async prompt(text: string): Promise<void> {
    if (this.#state === 'cancelled') throw new DomainError('CANCELLED', 'The session was cancelled; start a new one.');
    const id = randomUUID();
    const fresh = this.#state === 'starting';
    if (this.#topic === '') this.#topic = oneLine(text, TOPIC_CHARS);
    if (this.atRest) this.#beginCall();
    this.#outbox.add(id, text);
    this.#unanswered.push(text);
    try {
      await this.#deliver(text, id, fresh);
    } catch (error) {
      this.#unsay([text]);
      // The caller is told; left here it would hold the session back from ever coming to rest.
      this.#outbox.advance(id, 'ended');
      throw error;
    }
  }

  async #deliver(text: string, id: string, fresh: boolean): Promise<void> {
    await this.closed();
    if (this.#starting) await this.#starting.promise;
    if (!this.#link.live) return this.#launch(text, id, fresh);
    this.#link.live.send(text, id);
    this.changed.notify();
  }

  /** A process may have died without its end being told yet; what is sent to it would not arrive. */
  async deathTold(): Promise<void> {
    if (!this.#starting) await this.#link.deathTold();
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
    if (permissionMode === 'bypassPermissions' && this.#permissionMode !== permissionMode) await this.park();
    if (model !== undefined) {
      await this.#link.tell((process) => process.setModel(model));
      this.#options = { ...this.#options, model };
      this.#model = model;
    }
    if (permissionMode !== undefined) {
      await this.#link.tell((process) => process.setPermissionMode(permissionMode));
      this.#options = { ...this.#options, permissionMode };
      this.#permissionMode = permissionMode;
    }
    if (permissionTimeoutMs !== undefined) this.#permissionTimeoutMs = permissionTimeoutMs;
  }

  setInitTimeout(ms: number): void {
    this.#initTimeoutMs = ms;
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
    await this.#starting?.promise.catch(() => undefined);
    const { live } = this.#link;
    await live?.interrupt().catch((error: unknown) => this.#services.debug(`interrupt: ${messageOf(error)}`));
    if (!(await this.#stoppedWithin(INTERRUPT_PATIENCE_MS)) && live) {
      this.#close();
      this.#result = endedByForce(this.#takeUndelivered());
      this.#apply('stop');
      this.#rested();
    }
    return true;
  }

  /** Final. Resolves when the process and all it started are gone. */
  async cancel(reason: string, source: string, settledAs: Source = 'cancel'): Promise<boolean> {
    if (!this.#apply('cancel')) return false;
    const now = this.#services.clock.now();
    this.#cancellation = { at: now, reason, source };
    // Its rest begins now: counted from its last prompt, a session stopped for its length would be forgotten at once.
    this.#lastActiveAt = now;
    this.#requests.settleAll(
      { behavior: 'deny', message: `The session was cancelled: ${reason}`, interrupt: true },
      settledAs,
    );
    this.#starting?.reject(new DomainError('CANCELLED', `The session was cancelled: ${reason}`));
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
    this.#lastActiveAt = this.#services.clock.now();
    try {
      return await (await this.#processAtRest()).rewindFiles(toUserMessage, dryRun);
    } finally {
      this.#rewinding--;
    }
  }

  async #processAtRest(): Promise<AgentProcess> {
    await this.closed();
    if (!this.hasProcess) await this.#launch(undefined, undefined, false);
    if (this.#link.live) return this.#link.live;
    throw new DomainError('INTERNAL', 'Claude Code could not be started for the rewind.');
  }

  // ── the process ────────────────────────────────────────────────────────────────────────────────────────────────

  async #launch(text: string | undefined, messageId: string | undefined, fresh: boolean): Promise<void> {
    const starting = deferred<void>();
    // Nobody may be listening when it fails: a cancel, a crash during the launch itself.
    starting.promise.catch(() => undefined);
    this.#starting = starting;
    try {
      const history = fresh ? this.#origin : await this.#history();
      const counted = history.kind === 'fork' ? history.of : this.id;
      this.totals.beginProcess(history.kind === 'new' ? 0 : await this.#services.recordedCostUsd(counted));
      const process = await this.#services.launch(
        { sessionId: this.id, history, options: this.#options },
        this.#listenerFor(() => process),
      );
      if (this.#state === 'cancelled') {
        await process.stop();
        throw new DomainError('CANCELLED', 'The session was cancelled while it started.');
      }
      this.#link.attach(process);
      this.#reportsState = false;
      if (text === undefined || messageId === undefined) return;
      const beginsAgain = !fresh && history.kind !== 'resume';
      process.send(beginsAgain ? this.#unanswered.join('\n\n') : text, messageId);
      await this.#startReported(starting.promise);
    } catch (error) {
      starting.reject(error);
      this.#failStart(error);
      throw error;
    } finally {
      this.#starting = undefined;
    }
  }

  /**
   * A process that was killed before it wrote anything left nothing to resume: the session begins again. One that has
   * answered had a transcript; if that is gone now, resuming says so, and nobody takes an empty session for the old one.
   */
  async #history(): Promise<SessionOrigin> {
    const resumes = this.#hasAnswered || (await this.#services.hasTranscript(this.id));
    return resumes ? { kind: 'resume' } : this.#origin;
  }

  async #startReported(reported: Promise<void>): Promise<void> {
    const { clock } = this.#services;
    const timeoutMs = this.#initTimeoutMs;
    const late = deferred<never>();
    const callOff = clock.after(timeoutMs, () => {
      late.reject(
        new DomainError(
          'TIMEOUT',
          `Claude Code did not report its start within ${String(timeoutMs)} ms; raise sessionInitTimeoutMs or run \`claude-code-mcp doctor\`.`,
        ),
      );
    });
    try {
      await Promise.race([reported, late.promise]);
    } finally {
      callOff();
    }
  }

  #failStart(error: unknown): void {
    const message = messageOf(error);
    // Whoever sent something is told by the error of that call.
    this.#outbox.takeUndelivered();
    if (this.#apply('fail')) {
      this.#result = failed(message, 'start_failed');
      this.#append('error', { type: 'error', message });
      this.#rested();
    }
    void this.#closeProcess();
  }

  /** Messages of a process that is no longer ours, such as one that dies of a cancel, fall on deaf ears. */
  #listenerFor(process: () => AgentProcess): AgentListener {
    const current = (): boolean => this.#state !== 'cancelled' && this.#link.mayHear(process);
    return {
      onMessage: (translation) => {
        if (current()) this.#heard(translation);
      },
      onRequest: async (ask) => {
        if (current()) return this.#asked(ask);
        return { behavior: 'deny', message: 'The session has ended.', interrupt: true };
      },
      onExit: (exit) => {
        if (this.#link.live === process()) this.#exited(exit);
      },
    };
  }

  async #closeProcess(): Promise<void> {
    this.#close();
    await this.closed();
  }

  #close(): void {
    this.#link.close();
    this.#backgroundTasks = 0;
  }

  #exited(exit: AgentExit): void {
    this.#link.detach();
    this.#backgroundTasks = 0;
    if (this.#state === 'starting' || this.#starting) {
      const words = this.#result?.isError === true ? this.#result.text : describeExit(exit);
      this.#starting?.reject(new DomainError('INTERNAL', `Claude Code did not start: ${words}`));
      return;
    }
    if (this.atRest) return;
    if (this.#heardNothing && this.persists && this.#redeliver(this.#outbox.takeUntouched())) return;
    this.#requests.settleAll({ behavior: 'deny', message: 'Claude Code has ended.', interrupt: true }, 'cancel');
    this.#result = lostProcess(exit, this.#takeUndelivered());
    this.#append('error', { type: 'error', message: this.#result.text, exitCode: exit.code, signal: exit.signal });
    this.#apply('fail');
    this.#rested();
  }

  /** What the caller is told to send again must not also be said by a session that begins again. */
  #takeUndelivered(): string[] {
    const texts = this.#outbox.takeUndelivered();
    this.#unsay(texts);
    return texts;
  }

  #unsay(texts: readonly string[]): void {
    for (const text of texts) {
      const index = this.#unanswered.lastIndexOf(text);
      if (index >= 0) this.#unanswered.splice(index, 1);
    }
  }

  /** No word from Claude Code since the call began. */
  get #heardNothing(): boolean {
    return this.#lastHeardAt === this.#workingSince;
  }

  /** A process that died at rest may be noticed only when it is written to: what it never read goes to the next one. */
  #redeliver(messages: { id: string; text: string }[]): boolean {
    const [first, ...others] = messages;
    if (!first) return false;
    for (const { id, text } of messages) this.#outbox.add(id, text);
    void this.#launch(first.text, first.id, false).then(
      () => {
        for (const { id, text } of others) this.#link.live?.send(text, id);
      },
      (error: unknown) => this.#services.debug(`session ${this.id}: ${messageOf(error)}`),
    );
    return true;
  }

  // ── what Claude Code says ──────────────────────────────────────────────────────────────────────────────────────

  #heard({ event, signals }: Translation): void {
    this.#lastHeardAt = this.#services.clock.now();
    for (const signal of signals) this.#take(signal);
    if (event) {
      if (event.type === 'output') {
        // Whatever held Claude up has passed.
        this.activity.clearNote();
        this.#lastText = assistantText(event.data) ?? this.#lastText;
      }
      this.#append(event.type, event.data);
    }
    for (const signal of signals) if (restsOn(signal, this.#reportsState)) this.#comeToRest();
  }

  #take(signal: AgentSignal): void {
    switch (signal.kind) {
      case 'started':
        this.#tools = signal.tools;
        this.#model = signal.model;
        this.#permissionMode = signal.permissionMode;
        this.#services.onTools(signal.tools);
        this.#apply('started');
        this.#starting?.resolve();
        this.#starting = undefined;
        return;
      case 'state':
        this.#reportsState = true;
        if (signal.state === 'running' && this.atRest) this.#beginCall();
        return;
      case 'delivery':
        this.#outbox.advance(signal.messageId, signal.state);
        return;
      case 'result':
        this.#outbox.answered(signal.answered);
        this.#hasAnswered = true;
        this.#unanswered = [];
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
        // Claude Code is about to wake and tell of the end: time for parking counts from here.
        this.#lastActiveAt = this.#lastHeardAt;
        return;
      case 'permission_mode':
        this.#switchedTo(signal.mode);
        return;
      case 'partial':
        if (signal.messageId !== undefined) this.log.beginPartial(signal.messageId);
        else this.log.appendPartial(signal.text, this.#lastHeardAt);
        return;
      case 'retry':
        this.activity.note(signal.line);
        this.changed.notify();
        return;
    }
  }

  /** A mode left on the way, such as plan mode when the plan was allowed, must not come back with the next process. */
  #switchedTo(mode: PermissionMode): void {
    if (this.#permissionMode !== undefined && mode !== this.#permissionMode)
      this.#options = { ...this.#options, permissionMode: mode };
    this.#permissionMode = mode;
  }

  #comeToRest(): void {
    if (this.atRest || this.#outbox.unread) return;
    // It could not even start, as without a transcript to resume: its end will tell the caller so.
    if (this.#starting && this.#result?.isError === true) return;
    this.#requests.settleAll({ behavior: 'deny', message: 'The turn has ended.' }, 'cancel');
    const result = this.#result;
    const stopped =
      result?.interrupted === true ||
      (this.#state === 'interrupting' && result?.errorSubtype === 'error_during_execution');
    this.#apply(stopped ? 'stop' : result?.isError === true ? 'fail' : 'rest');
    this.#starting?.resolve();
    this.#rested();
  }

  #rested(): void {
    this.activity.endAll();
    this.#lastActiveAt = this.#services.clock.now();
    this.#services.onRest(this);
    this.changed.notify();
  }

  #beginCall(): void {
    const now = this.#services.clock.now();
    this.#apply('work');
    this.#lastActiveAt = now;
    this.#workingSince = now;
    this.#lastHeardAt = now;
    this.#result = undefined;
    this.totals.beginCall();
    this.activity.begin();
    this.changed.notify();
  }

  // ── what Claude Code asks ──────────────────────────────────────────────────────────────────────────────────────

  async #asked(ask: PermissionAsk): Promise<Decision> {
    this.#lastHeardAt = this.#services.clock.now();
    const { decision, request } = this.#requests.ask(ask, this.#permissionTimeoutMs, this.#lastText);
    if (request) this.#services.onRequest(this, request);
    return decision;
  }

  #opened(request: OpenRequest): void {
    this.#append('permission_request', request);
    this.#apply('asked');
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
    this.log.append(type, data, this.#services.clock.now());
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

  async #stoppedWithin(ms: number): Promise<boolean> {
    if (this.#state !== 'interrupting') return true;
    const stopped = deferred<boolean>();
    const callOff = this.#services.clock.after(ms, () => stopped.resolve(false));
    const unsubscribe = this.changed.subscribe(() => {
      if (this.#state !== 'interrupting') stopped.resolve(true);
    });
    try {
      return await stopped.promise;
    } finally {
      callOff();
      unsubscribe();
    }
  }
}

/** Idle is Claude Code's own word; only one that never says it is taken at its first result. */
function restsOn(signal: AgentSignal, reportsState: boolean): boolean {
  return signal.kind === 'state' ? signal.state === 'idle' : signal.kind === 'result' && !reportsState;
}
