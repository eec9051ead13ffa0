import type { Settings } from '../../config/load-settings.ts';
import type { Decision } from '../../driver/permission-ask.ts';
import { DomainError, messageOf } from '../../errors/errors.ts';
import type { Answer } from '../../schema/commands.ts';
import type { SessionRecord } from '../../schema/records.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { Workspace } from '../../workspace/workspace.ts';
import { Conversation } from '../conversation/conversation.ts';
import type { Message } from '../conversation/outbox.ts';
import type { WholeReading } from '../conversation/reading.ts';
import { isAtRest, type State } from '../conversation/state.ts';
import { lostContact } from '../conversation/turn-result.ts';
import { deferred, settledWithin } from '../clock.ts';
import type { AdoptableRun } from '../ports.ts';
import { NoticeStream, type AboutSession, type SessionNotice } from '../notices.ts';
import type { ProcessHolder } from '../process/process-holder.ts';
import { SessionProcess, type Occasion } from '../process/session-process.ts';
import type { AskingSession, ConnectedClient } from '../requests/approvals.ts';
import type { OpenRequest, Proposal, Source } from '../requests/requests.ts';
import type { Principal } from '../rules/access.ts';
import type { Rules } from '../rules/rules.ts';
import { SessionRules } from '../rules/standing/session-rules.ts';
import { redeliver, withdraw } from './delivery.ts';
import { Mobility } from './mobility.ts';
import { type RewindOrder, type RewindOutcome, SessionRewinds } from './session-rewinds.ts';
import { checkFresh, decisionOn, respond, stillHolds } from './session-answers.ts';
import { busy, cannotSwitch, outOfContact, runsElsewhere, stoppedBeforeStart } from './session-errors.ts';
import { SessionObserver } from './session-observer.ts';
import { readingOf, sessionRecord } from './session-record.ts';
import type { SessionSeed, SessionServices, SessionSwitch } from './session-types.ts';
import { SessionWork } from './session-work.ts';

/** How long an interrupt may take before the process is ended instead. */
const INTERRUPT_PATIENCE_MS = 5_000;

/**
 * A conversation, the process that carries it on, and the work done in it: what concerns more than one of them happens
 * here, the rest is asked of the part itself.
 */
export class Session implements AskingSession {
  readonly id: string;
  readonly owner: Principal;
  /** What must be provided again before it can run; only in a session from an earlier process. */
  missing: readonly string[];
  /** The connection it was started on; it may be gone. */
  readonly client: ConnectedClient | undefined;
  /** The sessions of the same start, in order, if it is one of several attempts. */
  readonly attempts: readonly string[] | undefined;
  /** What was in force of a requested sandbox when its process was last launched. */
  sandbox: string | undefined;
  /** What the caller should know about the last start; cleared once shown. */
  readonly warnings: string[] = [];
  readonly notices = new NoticeStream<SessionNotice>();
  readonly conversation: Conversation;
  /** The process it has, if it has one. */
  readonly process: ProcessHolder;
  /** How that is launched. */
  readonly launches: SessionProcess;
  readonly work: SessionWork;
  readonly mobility: Mobility;
  readonly services: SessionServices;
  /** Where there can be standing rules. */
  readonly standing: SessionRules | undefined;
  readonly #rewinds: SessionRewinds;
  readonly #observer: SessionObserver;
  #rules: Rules;
  #lastReply: Promise<unknown> = Promise.resolve();
  /** Commands that are being carried out on it. */
  #uses = 0;

  constructor(seed: SessionSeed, services: SessionServices) {
    const { restored } = seed;
    this.id = seed.id;
    this.owner = seed.owner;
    this.client = seed.client;
    this.attempts = seed.attempts;
    this.services = services;
    this.#rules = seed.rules;
    this.missing = restored?.missing ?? [];
    const ruled = {
      owner: seed.owner.id,
      options: seed.options,
      directory: seed.options.cwd ?? seed.rules.policy.directories.own,
    };
    this.standing =
      services.standingRules && new SessionRules(services.standingRules, ruled, () => services.clock.wallTime());
    this.conversation = new Conversation(
      {
        ...seed,
        eventLimits: services.eventLimits,
        keepsRequests: services.keepsRequests === true && seed.options.persistSession !== false,
        inherited: seed.inherited,
      },
      {
        clock: services.clock,
        tell: (event) => this.#observer.told(event),
        holds: (grant) => stillHolds(grant, this),
        rules: this.standing,
        debug: services.debug,
      },
    );
    this.work = new SessionWork(this, services, { opened: seed.worktree, ...restored });
    this.#observer = new SessionObserver(this, services);
    if (services.onNotice)
      this.notices.subscribe((notice) => {
        if (!this.hasLeft) services.onNotice?.(this, notice);
      });
    const process = {
      ...seed,
      streamsText: seed.streamsText === true,
      hasAnswered: restored?.hasAnswered ?? false,
      arrivedAt: restored?.arrivedAt,
    };
    this.launches = new SessionProcess(process, this.conversation, services, {
      onMessage: (translation) => {
        this.#observer.heard(translation);
      },
      onRequest: (ask) => decisionOn(this, ask),
      onExit: (exit) => redeliver(this, this.conversation.exited(exit, this.persists)),
      beforeMessage: () => this.work.baselineKnown(),
    });
    this.process = this.launches.holder;
    this.mobility = new Mobility(this, seed, services);
    this.#rewinds = new SessionRewinds(this);
  }

  // ── what is known of it ────────────────────────────────────────────────────────────────────────────────────────

  /** As plain data. */
  get record(): SessionRecord {
    return sessionRecord(this);
  }

  /** What a reader gets of it. */
  read(): WholeReading {
    return readingOf(this);
  }

  /** What a notice about it says. */
  get about(): AboutSession {
    const { totals } = this.conversation;
    return { sessionId: this.id, owner: this.owner.id, atRest: this.atRest, totals: totals.session };
  }

  /** A finished turn counts as running until its work is known; a cancelled session waits for nothing. */
  get state(): State {
    const { state } = this.conversation;
    return this.reporting && state !== 'cancelled' ? 'running' : state;
  }

  get atRest(): boolean {
    return isAtRest(this.state);
  }

  /** Its turn has ended, and its work is being determined. */
  get reporting(): boolean {
    return this.work.isReporting && this.conversation.atRest;
  }

  get options(): SessionOptions {
    return this.conversation.setup.options;
  }

  get persists(): boolean {
    return this.options.persistSession !== false;
  }

  /** The rules it was started under, and keeps. */
  get rules(): Rules {
    return this.#rules;
  }

  /** Who may answer its requests. */
  get approvals(): Settings['approvals'] {
    return this.rules.settings.approvals;
  }

  get requests(): OpenRequest[] {
    return this.conversation.requests.all;
  }

  findRequest(id: string): OpenRequest | undefined {
    return this.conversation.requests.find(id);
  }

  /** Requests are settled only by those who may answer them: waiting is neither working nor resting. */
  get keepsRequests(): boolean {
    return this.services.keepsRequests === true && this.persists;
  }

  /** Where it works; undefined only for a session whose client named no directory. */
  get directory(): string | undefined {
    return this.options.cwd ?? this.rules.policy.directories.own;
  }

  /** The worktree it works in, if it was given one. */
  get worktree(): Workspace | undefined {
    return this.work.worktree;
  }

  /** Whether the server may work with its files: it is at rest, or only waits for the server to do so. */
  get leavesFilesAlone(): boolean {
    return this.atRest || this.conversation.own.underWay !== undefined;
  }

  get hasLeft(): boolean {
    return this.mobility.hasLeft;
  }

  get hasProcess(): boolean {
    return this.process.live !== undefined;
  }

  /** There is a process, or one is starting or closing. */
  get holdsPlace(): boolean {
    return this.hasProcess || this.process.starting || this.process.closing;
  }

  /** A process that can be closed without losing anything. */
  get parkable(): boolean {
    const { backgroundTasks } = this.conversation;
    return this.hasProcess && this.atRest && this.persists && backgroundTasks === 0 && !this.#rewinds.underWay;
  }

  /** Its process has values that nobody has brought since the hub was restarted: it is given up last. */
  get isHardToReplace(): boolean {
    return this.hasProcess && this.missing.length > 0;
  }

  /** Everything alive in it waits for answers, so its process can be released. */
  get detachable(): boolean {
    return this.keepsRequests && this.hasProcess && !this.process.starting && this.conversation.onlyWaits;
  }

  /** A command is being carried out on it: it must not be dropped meanwhile. */
  get inUse(): boolean {
    return this.#uses > 0;
  }

  // ── what callers do ────────────────────────────────────────────────────────────────────────────────────────────

  /** Keeps it from being dropped while this runs. */
  async whileInUse<T>(act: () => Promise<T>): Promise<T> {
    this.#uses++;
    try {
      return await act();
    } finally {
      this.#uses--;
    }
  }

  /** Concurrent replies are delivered one after the other, so that the second finds the session working. */
  oneReplyAtATime<T>(reply: () => Promise<T>): Promise<T> {
    const turn = this.#lastReply.then(reply);
    this.#lastReply = turn.catch(() => undefined);
    return turn;
  }

  /** Takes back a queued message, or puts other words in its place. False if it is too late for that. */
  withdraw(messageId: string, replacement?: string): Promise<boolean> {
    return this.oneReplyAtATime(() => withdraw(this, messageId, replacement));
  }

  /** From the next turn on. */
  async switchTo({ model, permissionMode, permissionTimeoutMs }: SessionSwitch): Promise<void> {
    const { setup } = this.conversation;
    // Claude Code accepts this mode only if it was started with it: the next message restarts it.
    if (permissionMode === 'bypassPermissions' && setup.permissionMode !== permissionMode) {
      await this.park();
      if (this.hasProcess) throw cannotSwitch(this, permissionMode);
    }
    if (model !== undefined) {
      await this.process.control((process) => process.setModel(model));
      setup.switchModel(model);
    }
    if (permissionMode !== undefined) {
      await this.process.control((process) => process.setPermissionMode(permissionMode));
      setup.switchMode(permissionMode);
    }
    if (permissionTimeoutMs !== undefined) this.conversation.permissionTimeoutMs = permissionTimeoutMs;
  }

  /** Throws if the answer allows a request that has to be looked at again first. */
  checkFresh(requestId: string, answer: Answer): Promise<void> {
    return checkFresh(this, requestId, answer);
  }

  /** Settles one request with someone's decision. */
  respond(requestId: string, answer: Answer, source: Source, by?: Principal): OpenRequest {
    return respond(this, requestId, answer, source, by);
  }

  /** Returns whether that changed anything. */
  rename(title: string): Promise<boolean> {
    this.mobility.checkOwned();
    const { setup } = this.conversation;
    if (setup.options.title === title) return Promise.resolve(false);
    setup.add({ title });
    this.notices.tell({ kind: 'changed' });
    return Promise.resolve(true);
  }

  /** Returns whether that changed anything. The next message takes it out of the archive. */
  archive(archived: boolean): Promise<boolean> {
    this.mobility.checkOwned();
    if (archived && !this.atRest) throw busy(this);
    if (!this.conversation.times.archive(archived)) return Promise.resolve(false);
    this.notices.tell({ kind: 'changed' });
    return Promise.resolve(true);
  }

  /** Like `respond`, with a decision already made. Throws if the request is already settled. */
  decide(requestId: string, decision: Decision, source: Source, by?: Principal): void {
    this.mobility.checkOwned();
    this.conversation.decide(requestId, decision, source, by);
  }

  /** Opens a request about an action of the server's own, at rest or instead of the one under way. Returns its id. */
  askPerson(proposal: Proposal): string {
    this.mobility.checkOwned();
    return this.conversation.askPerson(proposal);
  }

  rewind(order: RewindOrder): Promise<RewindOutcome> {
    return this.#rewinds.rewind(order);
  }

  /** Escape: the turn stops, the session stays. Resolves when it has stopped; a queued message is then taken up. */
  async interrupt(): Promise<boolean> {
    this.mobility.checkOwned();
    if (!this.conversation.interrupt()) return false;
    // A turn that has not started cannot be stopped.
    await this.process.startSettled();
    const { live } = this.process;
    await live?.interrupt().catch((error: unknown) => this.services.debug(`interrupt: ${messageOf(error)}`));
    if (!(await settledWithin(this.services.clock, INTERRUPT_PATIENCE_MS, this.#stopped())) && live) {
      this.launches.close();
      this.conversation.stoppedByForce();
    }
    await this.work.reported();
    return true;
  }

  /** Final. Resolves when the process and all it started are gone. */
  async cancel(reason: string, source: string, settledAs: Source = 'cancel'): Promise<boolean> {
    this.mobility.checkOwned();
    if (!this.conversation.cancel(reason, source, settledAs)) return false;
    this.process.abortStart(new DomainError('CANCELLED', `The session was cancelled: ${reason}`));
    await this.dispose();
    return true;
  }

  // ── what the server does ───────────────────────────────────────────────────────────────────────────────────────

  /** Call once it is registered: nothing continues what an earlier process had started. */
  async takeUp(): Promise<void> {
    await this.#noteDelivered();
    this.#turnContinues();
    this.conversation.hubStopped();
  }

  /** What Claude Code had begun to work on is in its transcript, even if it ended before anybody read its report. */
  async #noteDelivered(): Promise<void> {
    const { outbox } = this.conversation;
    const { opening } = outbox;
    if (opening === undefined) return;
    // A transcript that cannot be read must not keep the session from being loaded.
    const isBegun = await this.services.isInTranscript(this.id, opening).catch(() => false);
    if (isBegun) outbox.advance(opening, 'started');
  }

  /** Like `takeUp`, with the process that an earlier server started: it goes on as if nothing had happened. */
  async continueWith(run: AdoptableRun, { backgroundTasks }: SessionRecord): Promise<void> {
    this.#turnContinues();
    this.conversation.processContinues(backgroundTasks);
    const process = await this.launches.adopt(this.options, run);
    // What the process was given before is not given again: its keeper remembers.
    for (const { id, text } of this.conversation.outbox.undelivered) process.send(text, id);
    process.ready().then(
      (asked) => this.conversation.requests.withdrawUnasked(asked),
      () => undefined,
    );
  }

  /** The turn goes on; one that had ended without a report is reported now. */
  #turnContinues(): void {
    if (this.atRest && !this.work.lacksReport) return;
    this.work.turnContinues();
    if (this.atRest) this.#observer.rested();
  }

  /** What it needs to run again was provided. */
  adopt(rules: Rules, options: SessionOptions): void {
    this.#rules = rules;
    this.conversation.setup.add(options);
    this.missing = [];
  }

  launch(first: Message | undefined, occasion: Occasion): Promise<void> {
    return this.launches.launch(this.options, first, occasion);
  }

  /** Ends the work and the process for the server's own reasons; the next message continues from the transcript. */
  async stop(reason: string, source: string): Promise<void> {
    if (!this.conversation.stop(reason, source)) return;
    await this.dispose();
  }

  /** Closes a process at rest; the next message resumes the transcript. */
  async park(): Promise<void> {
    if (!this.parkable) return;
    await this.dispose();
    // A message may have arrived in the meantime; then there is more to log.
    if (!this.atRest) return;
    this.#observer.parked();
  }

  /** Ends the process and leaves everything else for the next server process to pick up. */
  async suspend(): Promise<void> {
    this.conversation.requests.detachAll();
    this.process.abortStart(stoppedBeforeStart(this.id));
    await this.dispose();
  }

  /** Releases its process while its requests stay open. */
  async detach(): Promise<void> {
    this.conversation.detach();
    await this.dispose();
  }

  /** This hub may no longer run it. Requests stay open; a working turn comes to rest and says why. */
  async loseContact(): Promise<void> {
    if (!this.holdsPlace) return;
    const { conversation } = this;
    if (this.keepsRequests && this.state === 'waiting') conversation.detach();
    else if (!conversation.atRest) conversation.fail(lostContact(conversation.outbox.takeUndelivered()));
    this.process.abortStart(outOfContact(this.id));
    await this.dispose();
  }

  /** Another hub has it: from here on nothing that happens to this copy is reported. */
  async disown(): Promise<void> {
    this.mobility.leave();
    this.process.abortStart(runsElsewhere(this.id));
    await this.suspend();
  }

  /** Only ends the process. */
  dispose(): Promise<void> {
    return this.launches.dispose();
  }

  /**
   * The server drops it: its process ends. The snapshots for comparing its changes are removed, unless it can be
   * recalled.
   */
  async release(): Promise<void> {
    await this.dispose();
    if (this.keepsRequests) return;
    await this.work.close().catch((error: unknown) => this.services.debug(`workspace: ${messageOf(error)}`));
  }

  // ── what happens in it ─────────────────────────────────────────────────────────────────────────────────────────

  /** Resolves when an interrupt has taken effect. */
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
