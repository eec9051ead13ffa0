import { randomUUID } from 'node:crypto';
import type { AgentListener } from '../driver/agent-process.ts';
import type { Decision } from '../driver/permission-ask.ts';
import { DomainError, messageOf } from '../errors/errors.ts';
import type { Settings } from '../config/load-settings.ts';
import type { SessionState } from '../schema/records.ts';
import type { Work } from '../schema/results.ts';
import type { PermissionMode, SessionOptions } from '../schema/session-options.ts';
import type { Workspace } from '../workspace/workspace.ts';
import type { Activity } from './activity.ts';
import type { Answer } from './answer.ts';
import type { ConnectedClient } from './approvals.ts';
import { withBudgetLeft } from './budget.ts';
import type { Instant } from './clock.ts';
import { Conversation, type ConversationEvent } from './conversation.ts';
import { deferred } from './deferred.ts';
import type { EventLog } from './event-log.ts';
import { FileTrail } from './file-trail.ts';
import { handoverText } from './handover.ts';
import type { Message } from './outbox.ts';
import { settledWithin } from './patience.ts';
import type { Principal } from './principal.ts';
import { ProcessHolder, type Launched } from './process-holder.ts';
import { ownAsk, type OpenRequest, type Source } from './requests.ts';
import { rewind, rewindEvent, type RewindOrder, type RewindOutcome, type RewindScene } from './rewind.ts';
import { busy, cannotSwitch } from './session-errors.ts';
import type { Rules } from './rules.ts';
import { withPartialMessages } from './session-setup.ts';
import { SessionWork, withoutWorkspaces } from './session-work.ts';
import type {
  Cancellation,
  RestoredSession,
  SessionOrigin,
  SessionSeed,
  SessionServices,
  SessionSwitch,
  TranscriptLock,
} from './session-types.ts';
import { NoticeStream, type SessionNotice } from './notices.ts';
import { isAtRest, type State } from './state.ts';
import type { Totals } from './totals.ts';
import type { TurnResult } from './turn-result.ts';
import { workOf } from './work.ts';

/** How long an interrupt may take before the process is ended instead. */
const INTERRUPT_PATIENCE_MS = 5_000;

/** `first`: with the history the session was made with. `redelivery`: of what a process that died had not read. */
type Occasion = 'first' | 'again' | 'redelivery';

/** A conversation and the process that carries it on: what callers do goes down to either, what happens comes up here. */
export class Session {
  readonly id: string;
  readonly owner: Principal;
  /** The connection it was started on; it may have gone. */
  readonly client: ConnectedClient | undefined;
  readonly notices = new NoticeStream<SessionNotice>();
  /** What somebody has to bring again before it can run; nothing but in a session of an earlier process. */
  missing: readonly string[] = [];
  #rules: Rules;
  #restored: RestoredSession | undefined;
  /** What the caller should know of the last start; taken out when it is told. */
  readonly warnings: string[] = [];
  readonly #services: SessionServices;
  readonly #origin: SessionOrigin;
  readonly #conversation: Conversation;
  readonly #process: ProcessHolder;
  readonly #streamsText: boolean;
  readonly #work: SessionWork | undefined;
  #initTimeoutMs: number;
  #lastReply: Promise<unknown> = Promise.resolve();
  /** Rewinds under way: they need the process although the conversation is at rest. */
  #rewinding = 0;
  /** Held while there is a process on a transcript that other servers could reach for. */
  #lock: TranscriptLock | undefined;
  /** The next lock is taken only when the last one is gone: it would look like somebody else's. */
  #unlocking: Promise<void> | undefined;
  #lastRewind: Promise<RewindOutcome> | undefined;
  #hasAnswered = false;

  constructor(seed: SessionSeed, services: SessionServices) {
    this.id = seed.id;
    this.owner = seed.owner;
    this.client = seed.client;
    this.#rules = seed.rules;
    this.#restored = seed.restored;
    this.missing = seed.restored?.missing ?? [];
    this.#hasAnswered = seed.restored?.hasAnswered ?? false;
    this.#services = services;
    this.#origin = seed.origin;
    this.#initTimeoutMs = seed.initTimeoutMs;
    this.#streamsText = seed.streamsText === true;
    this.#conversation = new Conversation(
      {
        ...seed,
        eventLimits: services.eventLimits,
        keepsRequests: services.keepsRequests === true && seed.options.persistSession !== false,
        inherited: seed.inherited,
      },
      { clock: services.clock, tell: (event) => this.#told(event), debug: (line) => services.debug(line) },
    );
    this.#work =
      services.openWorkspace &&
      new SessionWork(
        {
          clock: services.clock,
          open: () => services.openWorkspace?.(this) ?? Promise.reject(withoutWorkspaces()),
          othersWorked: (root, since) => services.othersWorked?.(this, root, since) === true,
          debug: (line) => services.debug(line),
        },
        seed.worktree,
      );
    if (services.onNotice) this.notices.subscribe((notice) => services.onNotice?.(this, notice));
    this.#process = new ProcessHolder(services.clock, {
      onMessage: (translation) => {
        const body = translation.event?.body;
        if (body?.kind === 'message' && body.blocks.some(({ kind }) => kind === 'tool_call')) this.#work?.toolUsed();
        this.#hasAnswered ||= body?.kind === 'result';
        this.#conversation.heard(translation);
      },
      onRequest: (ask) => this.#conversation.asked(ask),
      onExit: (exit) => {
        this.#redeliver(this.#conversation.exited(exit, this.persists));
        void this.#unlock();
      },
    });
  }

  // ── what others see ────────────────────────────────────────────────────────────────────────────────────────────

  /** The rules it was started under, and keeps. */
  get rules(): Rules {
    return this.#rules;
  }

  get log(): EventLog {
    return this.#conversation.log;
  }

  get activity(): Activity {
    return this.#conversation.activity;
  }

  get totals(): Totals {
    return this.#conversation.totals;
  }

  /** A turn that has ended counts as running until it is known what it did; a cancelled session waits for nothing. */
  get state(): State {
    const { state } = this.#conversation;
    return this.reporting && state !== 'cancelled' ? 'running' : state;
  }

  get atRest(): boolean {
    return isAtRest(this.state);
  }

  /** Its turn has ended, and what it did is being looked up. */
  get reporting(): boolean {
    return this.#conversation.atRest && this.#work?.isReporting === true;
  }

  /** Resolves when the report of a turn that has ended is there. */
  async reported(): Promise<void> {
    await this.#work?.reported();
  }

  /** The worktree it works in, where it was given one. */
  get worktree(): Workspace | undefined {
    return this.#work?.worktree;
  }

  /** Where it works. */
  async workspace(): Promise<Workspace> {
    if (!this.#work) throw withoutWorkspaces();
    return (await this.#work.opened()).workspace;
  }

  /** Evidence of what the last call did. */
  get work(): Work | undefined {
    if (this.#restored?.work) return this.#restored.work;
    const { problems } = this.activity;
    return this.#work ? this.#work.short(problems) : workOf(undefined, problems);
  }

  /** The same with every file and command. */
  get fullWork(): Work | undefined {
    return this.#work && !this.#restored?.work ? this.#work.full(this.activity.problems) : this.work;
  }

  /** Whether it worked in this checkout since then. */
  workedIn(root: string, since: Instant): boolean {
    return this.#work?.overlaps(root, since) === true;
  }

  get options(): SessionOptions {
    return this.#conversation.setup.options;
  }

  get createdAt(): number {
    return this.#conversation.times.createdAt;
  }

  get requests(): OpenRequest[] {
    return this.#conversation.requests.all;
  }

  findRequest(id: string): OpenRequest | undefined {
    return this.#conversation.requests.find(id);
  }

  /** Whether a person is being asked about it right now. */
  isAskingPerson(request: OpenRequest): boolean {
    return this.#services.isAskingPerson(request);
  }

  /** Who may answer its requests. */
  get approvals(): Settings['approvals'] {
    return this.rules.settings.approvals;
  }

  /** The answer of the last call; only at rest is it the final one. */
  get result(): TurnResult | undefined {
    return this.#conversation.result;
  }

  /** What Claude is writing and has not finished; only of a session that was started to stream it. */
  get unfinishedText(): string {
    return this.#conversation.unfinishedText;
  }

  /** The first event after the last message. */
  get lastMessageAt(): number {
    return this.#conversation.lastMessageAt;
  }

  /** Time of day. */
  get now(): number {
    return this.#services.clock.wallTime();
  }

  get cancellation(): Cancellation | undefined {
    return this.#conversation.cancellation;
  }

  get backgroundTasks(): number {
    return this.#conversation.backgroundTasks;
  }

  /** Time of day. */
  get lastActiveAt(): number {
    return this.#conversation.times.lastActiveAt;
  }

  /** How long nothing has happened to it. */
  get restedMs(): number {
    return this.#conversation.times.restedMs;
  }

  /** How long its call has been going on. */
  get workedMs(): number {
    return this.#conversation.times.workedMs;
  }

  /** How long Claude Code has said nothing while it works. */
  get quietMs(): number {
    return this.#conversation.times.quietMs;
  }

  /** One line on what it is about: the first message this server gave it. */
  get topic(): string {
    return this.#conversation.topic;
  }

  get tools(): string[] | undefined {
    return this.#conversation.setup.tools;
  }

  get model(): string | undefined {
    return this.#conversation.setup.model;
  }

  get permissionMode(): PermissionMode | undefined {
    return this.#conversation.setup.permissionMode;
  }

  get hasProcess(): boolean {
    return this.#process.live !== undefined;
  }

  /** A process is on its way but has not reported its start. */
  get launching(): boolean {
    return this.#process.starting;
  }

  /** Its process is on its way out. */
  get closing(): boolean {
    return this.#process.closing;
  }

  /** There is a process, or one is on its way in or out. */
  get holdsPlace(): boolean {
    return this.hasProcess || this.launching || this.closing;
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
    return this.hasProcess && this.atRest && this.persists && this.backgroundTasks === 0 && this.#rewinding === 0;
  }

  // ── what callers do ────────────────────────────────────────────────────────────────────────────────────────────

  /** Hands a message over. Resolves when a live process has it, or a new one has reported its start. */
  async prompt(text: string): Promise<void> {
    const { handover } = this.#conversation;
    const message = {
      id: randomUUID(),
      text: handover.length === 0 ? text : `${handoverText(handover)}\n\n${text}`,
    };
    const isFirst = this.state === 'starting';
    this.#conversation.say(message);
    if (isFirst) this.#work?.turnBegins();
    try {
      await this.#process.settled();
      if (this.hasProcess) this.#process.send(message);
      else await this.#launch(message, isFirst ? 'first' : 'again');
      this.#conversation.handedOver();
      this.notices.tell({ kind: 'changed' });
    } catch (error) {
      this.#conversation.unsay(message);
      throw error;
    }
  }

  /** Starts a process again for a session whose requests were decided while it had none. */
  async handOver(): Promise<void> {
    const { handover, outbox } = this.#conversation;
    if (this.state !== 'running' || handover.length === 0) return;
    const message = { id: randomUUID(), text: handoverText(handover, outbox.takeUndelivered()) };
    this.#conversation.say(message);
    await this.#process.settled();
    await this.#launch(message, 'again');
    this.#conversation.handedOver();
    this.notices.tell({ kind: 'changed' });
  }

  /** It cannot be told: it rests, and what was decided is told with the next message. */
  handoverFailed(error: unknown): void {
    if (!this.atRest) this.#conversation.startFailed(error, true);
  }

  /** To be called once it is registered: nobody carries on what an earlier process had begun. */
  takeUp(): void {
    if (this.#restored) this.#conversation.hubStopped(this.#restored);
  }

  /** Somebody brought what it needs to run again. */
  adopt(rules: Rules, options: SessionOptions): void {
    this.#rules = rules;
    this.#conversation.setup.add(options);
    this.missing = [];
  }

  /** What it takes to continue it in another process. */
  get continuity(): Pick<
    SessionState,
    'permissionTimeoutMs' | 'startTimeoutMs' | 'streamsText' | 'hasAnswered' | 'handover'
  > {
    return {
      permissionTimeoutMs: this.#conversation.permissionTimeoutMs,
      startTimeoutMs: this.#initTimeoutMs,
      streamsText: this.#streamsText,
      hasAnswered: this.#hasAnswered,
      handover: [...this.#conversation.handover],
    };
  }

  /** Its requests are settled by nobody but whoever may answer them: waiting is neither work nor rest. */
  get keepsRequests(): boolean {
    return this.#services.keepsRequests === true && this.persists;
  }

  /** Everything that is alive in it waits for answers, so its process can be given back. */
  get detachable(): boolean {
    return this.keepsRequests && this.hasProcess && !this.launching && this.#conversation.onlyWaits;
  }

  /** Ends the process and leaves all else as it is, for the next process of this server to take up. */
  async suspend(): Promise<void> {
    this.#conversation.requests.detachAll();
    await this.dispose();
  }

  /** Gives its process back while its requests stay open. */
  async detach(): Promise<void> {
    this.#conversation.detach();
    await this.dispose();
  }

  /** A process may have died without its end being reported yet; what is sent to it would not arrive. */
  exitReported(): Promise<void> {
    return this.#process.exitReported();
  }

  /** Replies that come together are handed over one after the other, so that the second finds the session at work. */
  oneReplyAtATime<T>(handOver: () => Promise<T>): Promise<T> {
    const turn = this.#lastReply.then(handOver);
    this.#lastReply = turn.catch(() => undefined);
    return turn;
  }

  /** From the next turn on. */
  async switchTo({ model, permissionMode, permissionTimeoutMs }: SessionSwitch): Promise<void> {
    const { setup } = this.#conversation;
    // Claude Code takes this mode only if it was started with it: the next message starts it again.
    if (permissionMode === 'bypassPermissions' && this.permissionMode !== permissionMode) {
      await this.park();
      if (this.hasProcess) throw cannotSwitch(this, permissionMode);
    }
    if (model !== undefined) {
      await this.#process.control((process) => process.setModel(model));
      setup.switchModel(model);
    }
    if (permissionMode !== undefined) {
      await this.#process.control((process) => process.setPermissionMode(permissionMode));
      setup.switchMode(permissionMode);
    }
    if (permissionTimeoutMs !== undefined) this.#conversation.setPermissionTimeout(permissionTimeoutMs);
  }

  setInitTimeout(ms: number): void {
    this.#initTimeoutMs = ms;
  }

  /** Settles one request with a decision somebody made. */
  respond(requestId: string, answer: Answer, source: Source, by?: Principal): OpenRequest {
    const { request, decision } = this.#conversation.requests.decisionFor(requestId, answer);
    this.decide(requestId, decision, source, by);
    return request;
  }

  /** As `respond`, with a decision already made. Throws if the request had its outcome. */
  decide(requestId: string, decision: Decision, source: Source, by?: Principal): void {
    this.#conversation.decide(requestId, decision, source, by?.id);
  }

  /** Throws unless a person allows it; only at rest. */
  async askPerson(toolName: string, input: Record<string, unknown>, opening: string): Promise<void> {
    const decision = await this.#conversation.askAtRest(ownAsk(toolName, input), opening);
    if (decision.behavior === 'deny')
      throw new DomainError('PERMISSION_DENIED', `Nothing was changed. ${decision.message}`);
  }

  /** Escape: the turn stops, the session stays. Resolves when it has stopped; a message that waited is taken up then. */
  async interrupt(): Promise<boolean> {
    if (!this.#conversation.interrupt()) return false;
    // A turn that has not begun cannot be stopped.
    await this.#process.startSettled();
    const { live } = this.#process;
    await live?.interrupt().catch((error: unknown) => this.#services.debug(`interrupt: ${messageOf(error)}`));
    if (!(await settledWithin(this.#services.clock, INTERRUPT_PATIENCE_MS, this.#stopped())) && live) {
      this.#close();
      this.#conversation.stoppedByForce();
    }
    await this.reported();
    return true;
  }

  /** Ends the work and the process for a reason of the server's; the next message goes on from the transcript. */
  async stop(reason: string, source: string): Promise<void> {
    if (!this.#conversation.stop(reason, source)) return;
    await this.dispose();
  }

  /** Final. Resolves when the process and all it started are gone. */
  async cancel(reason: string, source: string, settledAs: Source = 'cancel'): Promise<boolean> {
    if (!this.#conversation.cancel(reason, source, settledAs)) return false;
    this.#process.abortStart(new DomainError('CANCELLED', `The session was cancelled: ${reason}`));
    await this.dispose();
    return true;
  }

  /** Closes a process at rest; the next message resumes the transcript. */
  async park(): Promise<void> {
    if (!this.parkable) return;
    await this.dispose();
    // A message may have come meanwhile; then there is more to write.
    if (this.atRest) this.log.pack();
  }

  /** Ends the process, and nothing else. */
  async dispose(): Promise<void> {
    this.#close();
    await this.closed();
    await this.#unlock();
  }

  /** The server forgets it: its process ends, and what was kept to tell what it changed goes. */
  async release(): Promise<void> {
    await this.dispose();
    await this.#work?.close().catch((error: unknown) => this.#services.debug(`workspace: ${messageOf(error)}`));
  }

  /** Kept when it has ended, for a call that is made again to hear of it. */
  get lastRewind(): Promise<RewindOutcome> | undefined {
    return this.#lastRewind;
  }

  rewind(order: RewindOrder): Promise<RewindOutcome> {
    const outcome = this.#rewind(order);
    this.#lastRewind = outcome;
    // Whoever asked may not wait for the person's answer.
    outcome.then(
      (told) => {
        if (!order.dryRun) this.log.append(rewindEvent(told), this.now);
      },
      () => undefined,
    );
    return outcome;
  }

  async #rewind(order: RewindOrder): Promise<RewindOutcome> {
    if (!this.atRest) throw busy(this);
    this.#rewinding++;
    this.#conversation.times.active();
    try {
      await this.#process.settled();
      if (!this.hasProcess) await this.#launch(undefined, 'again');
      return await rewind(this.#rewindScene(), order);
    } finally {
      this.#rewinding--;
    }
  }

  #rewindScene(): RewindScene {
    return {
      // One that saw nothing leaves every file alone.
      files: this.#conversation.files ?? new FileTrail(),
      rewindFiles: async (toUserMessage, dryRun) => {
        const { live } = this.#process;
        if (!live) throw new DomainError('INTERNAL', 'Claude Code has ended, or could not be started; try again.');
        return live.rewindFiles(toUserMessage, dryRun);
      },
      ask: (ask, opening) => this.#conversation.askAtRest(ask, opening),
      undisturbed: async (action) => {
        const done = deferred<Awaited<ReturnType<typeof action>>>();
        await this.oneReplyAtATime(async () => {
          if (!this.atRest) throw busy(this);
          done.resolve(await action());
        });
        return done.promise;
      },
    };
  }

  // ── the process ────────────────────────────────────────────────────────────────────────────────────────────────

  async #launch(first: Message | undefined, occasion: Occasion): Promise<void> {
    try {
      await this.#process.start({
        launch: async (listener) => {
          await this.#lockTranscript(occasion);
          return this.#spawn(first, occasion, listener);
        },
        timeoutMs: this.#initTimeoutMs,
      });
    } catch (error) {
      this.#unlockWhenClosed();
      this.#conversation.startFailed(error, occasion !== 'redelivery');
      throw error;
    }
  }

  /**
   * For as long as there is a process: Claude Code registers itself some time after its start, and until then nothing
   * else tells another server of it. A transcript that is new is nobody else's.
   */
  async #lockTranscript(occasion: Occasion): Promise<void> {
    await this.#unlocking;
    if (occasion === 'first' && this.#origin.kind !== 'resume') return;
    this.#lock ??= await this.#services.lockTranscript(this.id);
  }

  #unlockWhenClosed(): void {
    this.closed()
      .then(() => this.#unlock())
      .catch((error: unknown) => this.#services.debug(`lock: ${messageOf(error)}`));
  }

  async #unlock(): Promise<void> {
    const lock = this.#lock;
    if (!lock || this.hasProcess || this.launching) return this.#unlocking;
    this.#lock = undefined;
    this.#unlocking = lock.release().catch((error: unknown) => this.#services.debug(`lock: ${messageOf(error)}`));
    await this.#unlocking;
  }

  async #spawn(first: Message | undefined, occasion: Occasion, listener: AgentListener): Promise<Launched> {
    const { totals, outbox } = this.#conversation;
    const history = occasion === 'first' ? this.#origin : await this.#history();
    const counted = history.kind === 'fork' ? history.of : this.id;
    totals.beginProcess(history.kind === 'new' ? 0 : await this.#services.recordedCostUsd(counted));
    const affordable = withBudgetLeft(this.options, totals.session.costUsd, first !== undefined);
    const options = this.#streamsText ? withPartialMessages(affordable) : affordable;
    const process = await this.#services.launch({ sessionId: this.id, history, options }, listener);
    const beginsAgain = occasion !== 'first' && history.kind !== 'resume';
    return { process, first: first && beginsAgain ? { ...first, text: outbox.unanswered } : first };
  }

  /**
   * A process that was killed before it wrote a message left nothing to resume: the session begins again. One that has
   * answered had a transcript; if that is gone now, resuming says so, and nobody takes an empty session for the old one.
   */
  async #history(): Promise<SessionOrigin> {
    const resumes = this.#hasAnswered || (await this.#services.salvageTranscript(this.id));
    return resumes ? { kind: 'resume' } : this.#origin;
  }

  /** A process that died at rest may be noticed only when it is written to: what it never read goes to the next one. */
  #redeliver([first, ...others]: readonly Message[]): void {
    if (!first) return;
    this.#launch(first, 'redelivery').then(
      () => {
        for (const message of others) this.#process.send(message);
      },
      // The conversation has ended with it.
      () => undefined,
    );
  }

  #close(): void {
    this.#process.close();
    this.#conversation.processClosed();
    this.#unlockWhenClosed();
  }

  #told(event: ConversationEvent): void {
    switch (event.kind) {
      case 'changed':
        return this.notices.tell({ kind: 'changed' });
      case 'tools':
        return this.#services.onTools(event.tools);
      case 'opened':
        return this.#services.onOpened(this, event.request);
      case 'event':
      case 'message':
      case 'delivered':
        return this.notices.tell(event);
      case 'asked':
        this.notices.tell({ kind: 'request', request: event.request });
        return this.#services.onRequest(this, event.request);
      case 'settled':
        this.notices.tell(event);
        return this.#services.onSettled(this, event.request, event.outcome);
      case 'began':
        this.#restored = undefined;
        return this.#work?.turnBegins();
      case 'decided':
        return this.#services.onDecided?.(this);
      case 'granted':
        return this.#services.onGranted?.(this, event.grant);
      case 'grant_ended':
        return this.#services.onGrantEnded?.(this, event.grant, event.end);
      case 'rested':
        return this.#rested();
    }
  }

  #rested(): void {
    const { state, result, activity, acted } = this.#conversation;
    const turn = { state, errorSubtype: result?.errorSubtype, toolUses: activity.callToolUses };
    const { problems } = activity;
    if (!this.#work) return this.#services.onRest(this, { ...turn, work: workOf(undefined, problems) });
    const work = this.#work;
    work.turnEnds({ calls: activity.log.ofTurn, acted }, () => {
      this.#services.onRest(this, { ...turn, work: work.short(problems) });
      this.notices.tell({ kind: 'changed' });
    });
  }

  /** Resolves when an interrupt has had its effect. */
  async #stopped(): Promise<void> {
    const stopped = deferred<void>();
    const look = (): void => {
      if (this.state !== 'interrupting') stopped.resolve();
    };
    const unsubscribe = this.notices.subscribe(look);
    look();
    await stopped.promise;
    unsubscribe();
  }
}
