import { randomUUID } from 'node:crypto';
import type { Decision, PermissionAsk } from '../../driver/permission-ask.ts';
import { DomainError, messageOf } from '../../errors/errors.ts';
import type { EventBody } from '../../schema/events.ts';
import type { LastAction } from '../../schema/own-action.ts';
import type { SessionRecord } from '../../schema/records.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { Answer } from '../../schema/commands.ts';
import type { ConnectedClient } from '../requests/approvals.ts';
import type { ConversationEvent } from '../conversation/conversation-types.ts';
import { Conversation } from '../conversation/conversation.ts';
import { deferred } from '../deferred.ts';
import { checkChangedInput, stillHolds } from '../requests/grant-recheck.ts';
import { handoverText } from '../requests/handover.ts';
import { Mobility } from './mobility.ts';
import { MovableSession } from './movable-session.ts';
import type { Message } from '../conversation/outbox.ts';
import { settledWithin } from '../patience.ts';
import type { Principal } from '../rules/principal.ts';
import type { ProcessHolder } from '../process/process-holder.ts';
import type { SessionReading } from '../conversation/reading.ts';
import type { OpenRequest, Proposal, Source } from '../requests/requests.ts';
import type { RewindOrder, RewindOutcome } from './rewind.ts';
import type { Rules } from '../rules/rules.ts';
import { cannotSwitch } from './session-errors.ts';
import { sessionRecord } from './session-record.ts';
import { SessionProcess, type Occasion } from '../process/session-process.ts';
import { SessionRewinds } from './session-rewinds.ts';
import type { RestoredSession, SessionSeed, SessionServices, SessionSwitch } from './session-types.ts';
import { SessionWork, withoutWorkspaces } from './session-work.ts';
import { workOf } from '../conversation/work.ts';
import { TranscriptCheck } from '../process/transcript-check.ts';

/** How long an interrupt may take before the process is ended instead. */
const INTERRUPT_PATIENCE_MS = 5_000;

/** A conversation and its process: calls are passed down to either, events are reported up from here. */
export class Session extends MovableSession {
  readonly id: string;
  readonly owner: Principal;
  /** The connection it was started on; it may be gone. */
  readonly client: ConnectedClient | undefined;
  /** What must be provided again before it can run; only in a session from an earlier process. */
  missing: readonly string[] = [];
  /** What the caller should know about the last start; cleared once shown. */
  readonly warnings: string[] = [];
  protected readonly services: SessionServices;
  protected readonly conversation: Conversation;
  protected readonly process: ProcessHolder;
  protected readonly sessionWork: SessionWork | undefined;
  protected restored: RestoredSession | undefined;
  readonly #sessionProcess: SessionProcess;
  readonly #rewinds: SessionRewinds;
  readonly #transcriptCheck: TranscriptCheck;
  #rules: Rules;
  protected readonly mobility: Mobility;
  #lastReply: Promise<unknown> = Promise.resolve();
  /** Commands that are being carried out on it. */
  #uses = 0;

  constructor(seed: SessionSeed, services: SessionServices) {
    super();
    this.id = seed.id;
    this.owner = seed.owner;
    this.client = seed.client;
    this.#rules = seed.rules;
    this.restored = seed.restored;
    this.missing = seed.restored?.missing ?? [];
    this.services = services;
    this.mobility = new Mobility(seed, services.sharedWorkspace);
    this.conversation = new Conversation(
      {
        ...seed,
        eventLimits: services.eventLimits,
        keepsRequests: services.keepsRequests === true && seed.options.persistSession !== false,
        inherited: seed.inherited,
      },
      {
        clock: services.clock,
        tell: (event) => this.#told(event),
        holds: (grant) => stillHolds(grant, this),
        debug: (line) => services.debug(line),
      },
    );
    this.sessionWork =
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
    this.#transcriptCheck = new TranscriptCheck({
      clock: services.clock,
      isWritten: (messageId, since) => services.isWritten(this.id, messageId, since),
      onMissing: () => {
        this.log.append({ kind: 'writes_lost', name: NOT_WRITTEN }, this.now);
        this.activity.note(NOT_WRITTEN);
        this.notices.tell({ kind: 'changed' });
      },
    });
    if (services.onNotice)
      this.notices.subscribe((notice) => {
        if (!this.hasLeft) services.onNotice?.(this, notice);
      });
    const process = {
      ...seed,
      streamsText: seed.streamsText === true,
      hasAnswered: seed.restored?.hasAnswered ?? false,
      arrivedAt: seed.restored?.arrivedAt,
    };
    this.#sessionProcess = new SessionProcess(process, this.conversation, services, {
      onMessage: (translation) => {
        if (this.sessionWork && callsTool(translation.event?.body)) this.sessionWork.toolUsed();
        this.conversation.heard(translation);
      },
      onRequest: (ask) => this.#decision(ask),
      onExit: (exit) => this.#redeliver(this.conversation.exited(exit, this.persists)),
    });
    this.process = this.#sessionProcess.holder;
    this.#rewinds = new SessionRewinds(this, this.conversation, {
      holder: this.process,
      arrivedAt: () => this.#sessionProcess.arrivedAt,
      bringUp: async () => {
        await this.process.settled();
        if (!this.hasProcess) await this.#launch(undefined, 'again');
      },
    });
  }

  get rules(): Rules {
    return this.#rules;
  }

  /** A process that can be closed without losing anything. */
  get parkable(): boolean {
    return this.hasProcess && this.atRest && this.persists && this.backgroundTasks === 0 && !this.#rewinds.underWay;
  }

  /** A command is being carried out on it: it must not be dropped meanwhile. */
  get inUse(): boolean {
    return this.#uses > 0;
  }

  /** Keeps it from being dropped while this runs. */
  async whileInUse<T>(act: () => Promise<T>): Promise<T> {
    this.#uses++;
    try {
      return await act();
    } finally {
      this.#uses--;
    }
  }

  // ── what callers do ────────────────────────────────────────────────────────────────────────────────────────────

  /** Delivers a message. Resolves when a live process has it, or a new one has reported its start. */
  async prompt(text: string): Promise<void> {
    this.mobility.checkOwned(this.id);
    const { lines } = this.conversation.decidedAway;
    const message = {
      id: randomUUID(),
      text: lines.length === 0 ? text : `${handoverText(lines)}\n\n${text}`,
    };
    const isFirst = this.state === 'starting';
    this.conversation.say(message);
    if (isFirst) this.sessionWork?.turnBegins();
    try {
      await this.process.settled();
      if (this.hasProcess) this.process.send(message);
      else await this.#launch(message, isFirst ? 'first' : 'again');
      this.conversation.decidedAway.clear();
      this.notices.tell({ kind: 'changed' });
    } catch (error) {
      this.conversation.undoSend(message);
      throw error;
    }
  }

  /** Restarts a process for a session whose requests were decided while it had none. */
  async handOver(): Promise<void> {
    this.mobility.checkOwned(this.id);
    const { decidedAway, outbox } = this.conversation;
    if ((this.state !== 'running' && !this.atRest) || decidedAway.lines.length === 0) return;
    const undelivered = outbox.takeUndelivered();
    const message = { id: randomUUID(), text: handoverText(decidedAway.lines, undelivered) };
    this.conversation.say(message);
    try {
      await this.process.settled();
      await this.#launch(message, 'again');
    } catch (error) {
      this.conversation.undoSend(message);
      for (const text of undelivered) outbox.add({ id: randomUUID(), text });
      throw error;
    }
    this.conversation.decidedAway.clear();
    this.notices.tell({ kind: 'changed' });
  }

  /** The handover failed: the session is at rest, and the decisions go along with the next message. */
  handoverFailed(error: unknown): void {
    if (!this.atRest) this.conversation.startFailed(error, false);
  }

  /** Call once it is registered: nothing continues what an earlier process had started. */
  takeUp(): void {
    if (!this.restored) return;
    if (!this.atRest) {
      this.sessionWork?.turnContinues();
      this.restored = { ...this.restored, work: undefined };
    }
    this.conversation.hubStopped();
  }

  /** What it needs to run again was provided. */
  adopt(rules: Rules, options: SessionOptions): void {
    this.#rules = rules;
    this.conversation.setup.add(options);
    this.missing = [];
  }

  /** What is needed to continue it in another process. */
  get continuity(): Pick<
    SessionRecord['continuity'],
    | 'permissionTimeoutMs'
    | 'startTimeoutMs'
    | 'streamsText'
    | 'hasAnswered'
    | 'origin'
    | 'handover'
    | 'arrivedAt'
    | 'actionUnderWay'
  > {
    return {
      permissionTimeoutMs: this.conversation.permissionTimeoutMs,
      startTimeoutMs: this.#sessionProcess.initTimeoutMs,
      streamsText: this.#sessionProcess.streamsText,
      hasAnswered: this.#sessionProcess.hasAnswered,
      origin: this.#sessionProcess.origin,
      arrivedAt: this.#sessionProcess.arrivedAt,
      handover: [...this.conversation.decidedAway.lines],
      actionUnderWay: this.conversation.actionUnderWay,
    };
  }

  /** What a reader gets of it. */
  read(): SessionReading {
    const { activity, services } = this;
    return {
      record: sessionRecord(this),
      now: this.now,
      log: this.log,
      requests: this.requests,
      unfinishedText: this.unfinishedText,
      toolUses: (since) => (since === 'all' ? activity.toolUses : activity.latestToolUses),
      findToolUse: (id) => activity.findToolUse(id),
      isAskingPerson: (id) => {
        const request = this.findRequest(id);
        return request !== undefined && services.isAskingPerson(request);
      },
      fullWork: () => this.fullWork,
    };
  }

  /** Ends the process and leaves everything else for the next server process to pick up. */
  async suspend(): Promise<void> {
    this.conversation.requests.detachAll();
    await this.dispose();
  }

  /** Releases its process while its requests stay open. */
  async detach(): Promise<void> {
    this.conversation.detach();
    await this.dispose();
  }

  /** Concurrent replies are delivered one after the other, so that the second finds the session working. */
  oneReplyAtATime<T>(handOver: () => Promise<T>): Promise<T> {
    const turn = this.#lastReply.then(handOver);
    this.#lastReply = turn.catch(() => undefined);
    return turn;
  }

  /** From the next turn on. */
  async switchTo({ model, permissionMode, permissionTimeoutMs }: SessionSwitch): Promise<void> {
    const { setup } = this.conversation;
    // Claude Code accepts this mode only if it was started with it: the next message restarts it.
    if (permissionMode === 'bypassPermissions' && this.permissionMode !== permissionMode) {
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

  setInitTimeout(ms: number): void {
    this.#sessionProcess.setInitTimeout(ms);
  }

  /** Settles one request with someone's decision. */
  respond(requestId: string, answer: Answer, source: Source, by?: Principal): OpenRequest {
    const { request, decision } = this.conversation.requests.decisionFor(requestId, answer);
    // Claude Code confines what it asks for itself, not what an answer puts in its place.
    if (decision.behavior === 'allow')
      checkChangedInput(decision.updatedInput, request.cwd ?? this.directory ?? '', this);
    this.decide(requestId, decision, source, by);
    if (answer.always === true)
      this.conversation.requests.allowAlways(request, decision, { source, ...(by && { by: by.id }) });
    return request;
  }

  /** Like `respond`, with a decision already made. Throws if the request is already settled. */
  decide(requestId: string, decision: Decision, source: Source, by?: Principal): void {
    this.mobility.checkOwned(this.id);
    this.conversation.decide(requestId, decision, source, by?.id);
  }

  /** Opens a request about an action of the server's own, at rest or instead of the one under way. Returns its id. */
  askPerson(proposal: Proposal): string {
    this.mobility.checkOwned(this.id);
    return this.conversation.askPerson(proposal);
  }

  /** The action that a person allowed is done, or could not be. */
  actionEnded(last: LastAction): void {
    this.conversation.actionEnded(last);
  }

  /** Escape: the turn stops, the session stays. Resolves when it has stopped; a queued message is then taken up. */
  async interrupt(): Promise<boolean> {
    this.mobility.checkOwned(this.id);
    if (!this.conversation.interrupt()) return false;
    // A turn that has not started cannot be stopped.
    await this.process.startSettled();
    const { live } = this.process;
    await live?.interrupt().catch((error: unknown) => this.services.debug(`interrupt: ${messageOf(error)}`));
    if (!(await settledWithin(this.services.clock, INTERRUPT_PATIENCE_MS, this.#stopped())) && live) {
      this.#sessionProcess.close();
      this.conversation.stoppedByForce();
    }
    await this.reported();
    return true;
  }

  /** Ends the work and the process for the server's own reasons; the next message continues from the transcript. */
  async stop(reason: string, source: string): Promise<void> {
    if (!this.conversation.stop(reason, source)) return;
    await this.dispose();
  }

  /** Final. Resolves when the process and all it started are gone. */
  async cancel(reason: string, source: string, settledAs: Source = 'cancel'): Promise<boolean> {
    this.mobility.checkOwned(this.id);
    if (!this.conversation.cancel(reason, source, settledAs)) return false;
    this.process.abortStart(new DomainError('CANCELLED', `The session was cancelled: ${reason}`));
    await this.dispose();
    return true;
  }

  /** Closes a process at rest; the next message resumes the transcript. */
  async park(): Promise<void> {
    if (!this.parkable) return;
    await this.dispose();
    // A message may have arrived in the meantime; then there is more to log.
    if (!this.atRest) return;
    this.log.pack();
    this.activity.pack();
  }

  /** Only ends the process. */
  dispose(): Promise<void> {
    return this.#sessionProcess.dispose();
  }

  /**
   * The server drops it: its process ends. The snapshots for comparing its changes are removed, unless it can be
   * recalled.
   */
  async release(): Promise<void> {
    await this.dispose();
    if (this.keepsRequests) return;
    await this.sessionWork?.close().catch((error: unknown) => this.services.debug(`workspace: ${messageOf(error)}`));
  }

  rewind(order: RewindOrder): Promise<RewindOutcome> {
    return this.#rewinds.rewind(order);
  }

  // ── the process ────────────────────────────────────────────────────────────────────────────────────────────────

  #launch(first: Message | undefined, occasion: Occasion): Promise<void> {
    return this.#sessionProcess.launch(this.options, first, occasion);
  }

  /** Claude Code acts on a decision at once, so it gets one that a crash cannot undo. Stopping never waits for a store. */
  async #decision(ask: PermissionAsk): Promise<Decision> {
    const decision = await this.conversation.asked(ask);
    if (decision.behavior === 'deny' && decision.interrupt === true) return decision;
    await this.services.gate.passed(ask.withdrawn);
    if (!ask.withdrawn.aborted && !this.hasLeft) return decision;
    return { behavior: 'deny', message: 'The turn was stopped before the decision was stored.', interrupt: true };
  }

  /** A process that died at rest may be noticed only on the next write: what it never read goes to the next one. */
  #redeliver([first, ...others]: readonly Message[]): void {
    if (!first) return;
    this.#launch(first, 'redelivery').then(
      () => {
        for (const message of others) this.process.send(message);
      },
      // The conversation has ended with it.
      () => undefined,
    );
  }

  #told(event: ConversationEvent): void {
    if (this.hasLeft) return;
    switch (event.kind) {
      case 'changed':
        return this.notices.tell({ kind: 'changed' });
      case 'tools':
        return this.services.onTools(event.tools);
      case 'opened':
        return this.services.onOpened(this, event.request);
      case 'delivered':
        this.#transcriptCheck.delivered(event.messageId);
        return this.notices.tell(event);
      case 'event':
      case 'message':
        return this.notices.tell(event);
      case 'asked':
        this.notices.tell({ kind: 'request', request: event.request });
        return this.services.onRequest(this, event.request);
      case 'settled':
        this.notices.tell(event);
        return this.services.onSettled(this, event.request, event.outcome);
      case 'began':
        this.restored = undefined;
        return this.sessionWork?.turnBegins();
      case 'decided':
        return this.services.onDecided?.(this);
      case 'allowed':
        return this.services.onAllowed?.(this, event.underWay, event.since);
      case 'granted':
        return this.services.onGranted?.(this, event.grant);
      case 'grant_ended':
        return this.services.onGrantEnded?.(this, event.grant, event.end);
      case 'rested':
        return this.#rested();
    }
  }

  #rested(): void {
    const { state, result, activity, acted } = this.conversation;
    if (state === 'idle' && this.persists) this.#transcriptCheck.turnEnded();
    const turn = { state, errorSubtype: result?.errorSubtype, toolUses: activity.callToolUses };
    const { problems } = activity;
    if (!this.sessionWork) return this.services.onRest(this, { ...turn, work: workOf(undefined, problems) });
    const work = this.sessionWork;
    work.turnEnds({ calls: activity.log.ofTurn, acted }, () => {
      this.services.onRest(this, { ...turn, work: work.short(problems) });
      this.notices.tell({ kind: 'changed' });
    });
  }

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

const NOT_WRITTEN =
  'Claude Code has not written the last turn to its transcript, so this session cannot be resumed once its process ends. ' +
  'Free some space on the disk of its configuration directory, then have the work continued in a new session.';

function callsTool(body: EventBody | undefined): boolean {
  return body?.kind === 'message' && body.blocks.some(({ kind }) => kind === 'tool_call');
}
