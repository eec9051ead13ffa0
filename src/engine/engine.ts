import type { Settings } from '../config/load-settings.ts';
import type { OfferedModel } from '../driver/agent-process.ts';
import type { PermissionUpdate } from '../driver/permission-ask.ts';
import type { SpareTemplate } from '../driver/driver.ts';
import { DomainError, messageOf } from '../errors/errors.ts';
import type { Answer, CommandOf } from '../schema/commands.ts';
import type { SessionRecord } from '../schema/records.ts';
import type { SessionOptions } from '../schema/session-options.ts';
import { rightsAsked } from './requests/answer.ts';
import { Approvals, type ConnectedClient } from './requests/approvals.ts';
import { launchAttempts, optionsOfAttempt } from './session/attempts.ts';
import { accessOf, answersAsPerson, type DirectoryAccess, type Principal, resumeToken } from './rules/access.ts';
import { driven, type Driven, FleetMember } from './elsewhere/elsewhere.ts';
import type { StoredStretch } from './conversation/reading.ts';
import { Gate } from './gate.ts';
import { Housekeeping } from './session/housekeeping.ts';
import { NoticeStream, type EngineNotice } from './notices.ts';
import { OpenConnections } from './process/missing-values.ts';
import { OwnActions, type Asked } from './requests/own-actions.ts';
import { settledWithin } from './clock.ts';
import type { Policy } from './rules/policy.ts';
import { Registry } from './session/registry.ts';
import { type RewindOutcome, Rewinds } from './session/session-rewinds.ts';
import { Rules, type ConnectionContext } from './rules/rules.ts';
import type { DiskSession } from '../transcripts/disk-sessions.ts';
import type { DiskQuery, EngineServices } from './ports.ts';
import { unknownSession } from './session/session-errors.ts';
import { SessionHost, type EngineParts } from './session/session-host.ts';
import { listDisk, listMachine, type ListedSession } from './session/session-listing.ts';
import { sessionRecord } from './session/session-record.ts';
import { SessionRecall } from './elsewhere/session-recall.ts';
import { withPartialMessages } from './conversation/session-setup.ts';
import { SessionTrail } from './session/session-trail.ts';
import type { OpenedWorkspace } from './session/session-work.ts';
import { SessionWorktrees } from './session/session-worktrees.ts';
import type { Session } from './session/session.ts';
import { Replies, type ReplyRequest } from './session/replies.ts';
import { WorkspaceActions } from './session/workspace-actions.ts';

/** How long the end of the server waits for the store. */
const LAST_STORE_MS = 1_000;

/** A start, and who asks for it. */
export interface StartRequest extends Omit<CommandOf<'start'>, 'kind'> {
  /**
   * The connection this comes from: its principal owns the session. Without one the session belongs to this program.
   */
  by?: ConnectedClient | undefined;
  /** The session's id, if another hub chose it and placed the session here. */
  id?: string;
}

/** All sessions of this server, and the only way to them. */
export class Engine {
  readonly settings: Settings;
  readonly approvals: Approvals;
  /** Everything that happens to every session, as it happens. */
  readonly stream = new NoticeStream<EngineNotice>();
  readonly #services: EngineServices;
  readonly #registry: Registry;
  readonly #housekeeping: Housekeeping;
  readonly #trail: SessionTrail;
  /** For connections without their own. */
  readonly #rules: Rules;
  readonly #worktrees: SessionWorktrees;
  /** Operations on the work of a session. */
  readonly work: WorkspaceActions;
  readonly #actions: OwnActions;
  /** Its part in a group that shares a store. */
  readonly fleet: FleetMember;
  readonly #parts: EngineParts;
  readonly #host: SessionHost;
  /** Finds sessions wherever they are, and loads those that are only stored. */
  readonly finder: SessionRecall;
  readonly #replies: Replies;
  readonly #rewinds: Rewinds;
  readonly #connections = new OpenConnections();
  #closing: Promise<void> | undefined;

  constructor(settings: Settings, cwd: string, services: EngineServices) {
    this.settings = settings;
    const gate = new Gate(services.archive, (error) => services.log('error', `not sent: ${messageOf(error)}`));
    this.approvals = new Approvals(services.clock, services.archive ? 'kept' : 'refused', gate);
    this.#services = services;
    this.#rules = new Rules({ settings, cwd }, services);
    this.#trail = new SessionTrail(services.audit, gate, (line) => services.log('info', line));
    this.#registry = new Registry(settings.maxSessions, (session) =>
      this.stream.tell({ kind: 'forgotten', record: sessionRecord(session), ...session.about }),
    );
    this.#housekeeping = new Housekeeping(this.#registry, settings, services.clock, (session) => {
      this.#trail.parked(session);
      void session.detach();
    });
    this.#worktrees = new SessionWorktrees(services.workspaces, settings);
    this.#actions = new OwnActions({
      clock: services.clock,
      stored: () => this.stored(),
      perform: (session, action, since, by) =>
        action.action === 'rewind'
          ? this.#rewinds.perform(session, action, since)
          : this.work.perform(session, action, since, by),
      checkCanBeDecided: (session) => this.approvals.checkCanBeDecided(session),
      ended: (session, last) => this.#trail.acted(session, last),
      debug: (line) => services.log('debug', line),
    });
    const parts: EngineParts = (this.#parts = {
      settings,
      services,
      registry: this.#registry,
      approvals: this.approvals,
      trail: this.#trail,
      gate,
      stream: this.stream,
      rules: this.#rules,
      worktrees: this.#worktrees,
      connections: this.#connections,
      wake: () => this.#housekeeping.wake(),
      isClosing: () => this.#closing !== undefined,
      actions: this.#actions,
    });
    this.#host = new SessionHost(parts);
    this.finder = new SessionRecall(parts, this.#host);
    this.fleet = new FleetMember(parts, this.finder);
    this.#replies = new Replies(parts, this.#host);
    this.#rewinds = new Rewinds(parts, this.#host, (session, by) => this.#decides(session, by));
    this.work = new WorkspaceActions({
      worktrees: this.#worktrees,
      decides: (session, by) => this.#decides(session, by),
      actions: this.#actions,
      directories: this.policy.directories,
      findSession: (id) => this.#registry.find(id),
      branchDeleted: (...deleted) => this.#trail.branchDeleted(...deleted),
    });
  }

  get sessions(): Session[] {
    return this.#registry.all;
  }

  /** How many sessions are loaded, and how many of them work. */
  get counts(): { readonly sessions: number; readonly working: number; readonly waiting: number } {
    const { all } = this.#registry;
    const waiting = all.filter(({ requests }) => requests.length > 0).length;
    const working = all.filter(({ atRest, requests }) => !atRest && requests.length === 0).length;
    return { sessions: all.length, working, waiting };
  }

  /** The operator's rules, for connections without their own. */
  get policy(): Policy {
    return this.#rules.policy;
  }

  /** Rules for a connection that brings its own; they must be narrower. */
  rulesFor(context: ConnectionContext): Rules {
    return new Rules(context, this.#services);
  }

  /** Which directories this principal may work in. */
  accessOf(principal: Principal): Promise<DirectoryAccess> {
    return accessOf(principal, this.#worktrees);
  }

  /**
   * A session owner has connected. Decisions on sessions that lacked their variables are delivered. Returns a function
   * to call on disconnect.
   */
  connected(by: ConnectedClient): () => void {
    const leave = this.#connections.add(by);
    const warn = (error: unknown): void =>
      this.#services.log('warn', `what waited was not taken up: ${messageOf(error)}`);
    this.finder.handOverWaiting(by).catch(warn);
    return leave;
  }

  /** Resolves when everything so far is stored, where there is a store. Await it before reporting anything. */
  stored(): Promise<void> | undefined {
    return this.#services.archive?.stored();
  }

  /** The tools that sessions reported at their start, once there was one. */
  get tools(): string[] | undefined {
    return this.#host.tools;
  }

  /** The models that Claude Code offered when a session last started; none before that. */
  get models(): readonly OfferedModel[] {
    return this.#host.models;
  }

  get clock(): EngineServices['clock'] {
    return this.#services.clock;
  }

  get audit(): EngineServices['audit'] {
    return this.#services.audit;
  }

  find(id: string): Session | undefined {
    return this.#registry.find(id);
  }

  /** One that is loaded in this process, as plain data. */
  record(id: string): SessionRecord | undefined {
    const session = this.find(id);
    return session && sessionRecord(session);
  }

  /** The newest event that a loaded session no longer keeps. */
  droppedThrough(id: string): number {
    return this.find(id)?.conversation.log.droppedThrough ?? 0;
  }

  /** Events of a session that are no longer in memory, where there is a store that has them. */
  async storedEvents(id: string, after: number): Promise<StoredStretch | undefined> {
    return this.#services.archive?.events(id, after);
  }

  /** The rules that a session was started under and keeps, wherever it runs. */
  async settingsOf(id: string): Promise<Settings | undefined> {
    const located = await this.finder.locate(id);
    if (located?.kind === 'elsewhere') return (await this.finder.findElsewhere(id))?.settings;
    return located && (await this.finder.recall(id))?.rules.settings;
  }

  /** The owner of a session, even if it exists only in the store. */
  async ownerOf(id: string): Promise<string | undefined> {
    return this.find(id)?.owner.id ?? this.#services.archive?.ownerOf(id);
  }

  session(id: string): Session {
    const session = this.find(id);
    if (!session) throw unknownSession(id);
    return session;
  }

  resumeTokenFor(id: string): string | undefined {
    return this.settings.resumeSecret === undefined ? undefined : resumeToken(this.settings.resumeSecret, id);
  }

  /** Starts a session on this machine. */
  async start(request: StartRequest): Promise<Session> {
    return this.#launch(request, await this.#admitted(request));
  }

  /** Starts it on the hub with the most free slots, if hubs share the directory it works in. */
  async startPlaced({ by, ...request }: Omit<StartRequest, 'id'>): Promise<Driven> {
    const admitted = await this.#admitted({ ...request, by });
    const directory = admitted.cwd === undefined ? {} : { cwd: admitted.cwd };
    const command = { kind: 'start', ...request, options: { ...request.options, ...directory } } as const;
    const placed = await this.fleet.place(command, this.#rulesOf(by), by);
    return placed ?? driven(await this.#launch({ ...request, by }, admitted));
  }

  /** Starts the same task several times on this machine, each in its own worktree. */
  async startAttempts({ attempts = [], ...request }: StartRequest): Promise<Session[]> {
    const starts = await Promise.all(
      attempts.map(async (attempt) => {
        const options = await this.#admitted({ ...request, options: optionsOfAttempt(request.options, attempt) });
        const { streamsText = this.#streamsText, by: client } = request;
        const seed = { rules: this.#rulesOf(client), options, origin: { kind: 'new' as const }, streamsText, client };
        return { seed, prompt: attempt.prompt ?? request.prompt };
      }),
    );
    return launchAttempts(this.#parts, this.#host, starts);
  }

  async #admitted({ by, options, defaults }: StartRequest): Promise<SessionOptions> {
    this.#checkOpen();
    const { policy } = this.#rulesOf(by);
    policy.checkDepth();
    return policy.admit(options, defaults);
  }

  /** People watch the sessions of a hub while they work. */
  get #streamsText(): boolean {
    return this.#services.archive !== undefined;
  }

  #launch(
    { by, id, prompt, streamsText = this.#streamsText }: StartRequest,
    options: SessionOptions,
  ): Promise<Session> {
    const rules = this.#rulesOf(by);
    const worktree =
      options.workspace &&
      ((id: string): Promise<OpenedWorkspace> => this.#worktrees.create(id, options, rules.launches));
    return this.#host.launch(
      {
        rules,
        options,
        origin: { kind: 'new' },
        streamsText,
        client: by,
        worktree,
        ...(id !== undefined && { id }),
      },
      prompt,
    );
  }

  /** How a session is launched without special requests from its caller. */
  async plainLaunch(): Promise<SpareTemplate> {
    const options = await this.policy.admit({});
    const { launch } = await this.#rules.launches.plan(
      this.settings.toolset === 'explicit' || this.#streamsText ? withPartialMessages(options) : options,
    );
    return launch;
  }

  async reply(request: ReplyRequest): Promise<Session> {
    this.#checkOpen();
    return (await this.#replies.reply(request)) ?? this.reply(request);
  }

  /** A caller's answer; the session's warnings say what was granted differently than requested. */
  respond(sessionId: string, requestId: string, answer: Answer, by?: ConnectedClient): Session {
    const session = this.session(sessionId);
    this.approvals.checkCallerMayAnswer(session, by);
    this.#checkStorable(answer);
    const { updates, kept, warnings } = rightsAsked(answer, session.findRequest(requestId));
    const rules = this.#rulesOf(by);
    const cwd = session.options.cwd ?? rules.policy.directories.own ?? '';
    const grantable = (asked: readonly PermissionUpdate[]): PermissionUpdate[] =>
      session.rules.policy.grantable(rules.policy.grantable(asked, cwd), cwd);
    grantable(kept);
    const granted = grantable(updates);
    const updatedPermissions = granted.length > 0 && { updatedPermissions: granted };
    session.respond(requestId, { ...answer, ...updatedPermissions }, 'caller', by?.principal);
    session.warnings.push(...warnings);
    return session;
  }

  /**
   * A person's answer, given outside a form. What it grants applies to this session only, within the operator's limits.
   */
  respondAsPerson(sessionId: string, requestId: string, answer: Answer, person: Principal): Session {
    const session = this.session(sessionId);
    this.#checkStorable(answer);
    const { updates, warnings } = rightsAsked(answer, session.findRequest(requestId));
    const granted = session.rules.policy.grantable(updates, session.options.cwd ?? '', 'person');
    const updatedPermissions = granted.length > 0 && { updatedPermissions: granted };
    session.respond(requestId, { ...answer, ...updatedPermissions }, 'human', person);
    session.warnings.push(...warnings);
    return session;
  }

  async rewind(
    id: string,
    toUserMessage: string,
    dryRun: boolean,
    by?: ConnectedClient,
  ): Promise<RewindOutcome | Asked> {
    return this.#rewinds.rewind(this.session(id), toUserMessage, dryRun, by);
  }

  async listDisk(query: DiskQuery): Promise<DiskSession[]> {
    return listDisk(this.#services.transcripts, this.policy.directories, this.#worktrees, query);
  }

  async listMachine(query: Omit<DiskQuery, 'offset'>, known = this.sessions): Promise<ListedSession[]> {
    return listMachine(this.#services.transcripts, this.policy.directories, this.#worktrees, known, query);
  }

  /** Everything ends: sessions, processes, timers. `keep`: processes are left to the next server. Idempotent. */
  close(processes: 'end' | 'keep' = 'end'): Promise<void> {
    return (this.#closing ??= this.#close(processes));
  }

  async #close(processes: 'end' | 'keep'): Promise<void> {
    this.#housekeeping.stop();
    this.finder.close();
    await this.#actions.close();
    const { kept } = this.#services;
    if (processes === 'keep' && kept) kept.leave();
    else await Promise.all(this.#registry.all.map((session) => this.#closeSession(session)));
    // The audit log gets its last records once they are stored.
    const { archive, clock, release } = this.#services;
    if (archive)
      await settledWithin(
        clock,
        LAST_STORE_MS,
        archive.stored().catch(() => undefined),
      );
    await release?.();
  }

  async #closeSession(session: Session): Promise<void> {
    // What is in the store is picked up when the hub starts again.
    if (this.#services.archive && session.persists) {
      await session.work.reported();
      await session.suspend();
    } else if (session.atRest || session.reporting) {
      await session.dispose();
      await session.work.reported();
    } else await session.cancel('the server shuts down', 'shutdown', 'shutdown');
    await session.release();
  }

  #rulesOf(client: ConnectedClient | undefined): Rules {
    return client?.rules ?? this.#rules;
  }

  /** Whether the caller may make decisions that would otherwise be a person's. */
  #decides(session: Session | undefined, by: ConnectedClient | undefined): boolean {
    if (by && answersAsPerson(by.principal)) return true;
    return this.approvals.callerDecides(session ?? { approvals: this.settings.approvals }, by);
  }

  #checkOpen(): void {
    if (this.#closing) throw new DomainError('CANCELLED', 'The server is shutting down.');
    // The caller could not be told about anything started now, and a retry would start it twice.
    this.#services.archive?.checkReachable();
  }

  /** Nothing is decided that cannot be stored; a refusal that also stops the turn never waits for the store. */
  #checkStorable(answer: Answer): void {
    if (answer.decision === 'deny' && answer.interrupt === true) return;
    this.#services.archive?.checkReachable();
  }
}
