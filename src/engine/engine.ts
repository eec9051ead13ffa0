import { randomUUID } from 'node:crypto';
import type { Settings } from '../config/load-settings.ts';
import type { SpareTemplate } from '../driver/spare-agent.ts';
import { DomainError, formatError } from '../errors/errors.ts';
import type { PermissionMode, SessionOptions } from '../schema/session-options.ts';
import { rewindCopiesDir } from './kept-files.ts';
import { rightsAsked, type Answer } from './answer.ts';
import { Approvals, type ConnectedClient } from './approvals.ts';
import { Housekeeping } from './housekeeping.ts';
import { withReason } from './launch-plan.ts';
import { NoticeStream, type EngineNotice } from './notices.ts';
import type { Policy } from './policy.ts';
import { LOCAL, RIGHTS, type Principal } from './principal.ts';
import { Registry } from './registry.ts';
import type { RewindOrder, RewindOutcome } from './rewind.ts';
import { checkMayResume, resumeToken } from './resume-token.ts';
import { Rules, type ConnectionContext } from './rules.ts';
import type { DiskQuery, DiskSession, EngineServices, RecalledSession, SessionArchive } from './services.ts';
import { busy, heldElsewhere, notFound, unknownSession } from './session-errors.ts';
import type { SessionSeed, SessionServices, TranscriptLock } from './session-types.ts';
import { Session } from './session.ts';
import { listDisk, listMachine, type ListedSession } from './session-listing.ts';
import { withPartialMessages } from './session-setup.ts';
import { SessionTrail } from './session-trail.ts';
import type { OpenedWorkspace } from './session-work.ts';
import { inCheckout, inWorktree, isInside, requireWorktree, SessionWorktrees } from './session-worktrees.ts';
import { WorkspaceActions } from './workspace-actions.ts';

export interface StartRequest {
  prompt: string;
  options: SessionOptions;
  /** What holds where the caller set nothing. */
  defaults?: SessionOptions;
  /** The connection this comes from: its principal owns the session. Without one the session is this program's own. */
  by?: ConnectedClient | undefined;
  /** `unfinishedText` of the session shows text while it is written. */
  streamsText?: boolean;
}

export interface ReplyRequest {
  sessionId: string;
  prompt: string;
  fork?: boolean;
  whenBusy?: 'reject' | 'queue';
  model?: string | undefined;
  permissionMode?: PermissionMode | undefined;
  permissionRequestTimeoutMs?: number | undefined;
  sessionInitTimeoutMs?: number | undefined;
  /** As at a start; for a session that this reply brings to the server. */
  streamsText?: boolean;
  disk: DiskResume;
  /** As in a start, for a session that this reply makes: a fork, or one from disk. */
  by?: ConnectedClient | undefined;
}

/** How a session that only the disk remembers may be taken up. */
export type DiskResume = Pick<StartRequest, 'options' | 'defaults'> &
  ({ kind: 'token'; token: string | undefined; resumeSessionAt?: string | undefined } | { kind: 'open' });

const EVENT_BYTES = 4_000_000;
/** While there is no place for a process. */
const HAND_OVER_AGAIN_MS = 2_000;

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
  /** Of whoever brings none of its own. */
  readonly #rules: Rules;
  readonly #worktrees: SessionWorktrees;
  /** What can be done with the work of a session. */
  readonly work: WorkspaceActions;
  readonly #resuming = new Map<string, Promise<Session>>();
  readonly #recalling = new Map<string, Promise<Session | undefined>>();
  #tools: string[] | undefined;
  #closing: Promise<void> | undefined;

  constructor(settings: Settings, cwd: string, services: EngineServices) {
    this.settings = settings;
    this.approvals = new Approvals(services.clock, services.archive ? 'kept' : 'refused');
    this.#services = services;
    this.#rules = new Rules({ settings, cwd }, services);
    this.#trail = new SessionTrail(services.audit, (line) => services.log('info', line));
    this.#registry = new Registry(settings.maxSessions);
    this.#housekeeping = new Housekeeping(this.#registry, settings, services.clock, (session) => {
      this.#trail.parked(session);
      void session.detach();
    });
    this.#worktrees = new SessionWorktrees(services.workspaces, settings);
    this.work = new WorkspaceActions({
      worktrees: this.#worktrees,
      decides: (session, by) => this.#decides(session, by),
      directories: this.policy.directories,
      findSession: (id) => this.#registry.find(id),
    });
  }

  get sessions(): Session[] {
    return this.#registry.all;
  }

  /** The operator's rules, for whoever brings none of its own. */
  get policy(): Policy {
    return this.#rules.policy;
  }

  /** Rules for a connection that brings its own; they have to be narrower. */
  rulesFor(context: ConnectionContext): Rules {
    return new Rules(context, this.#services);
  }

  /** Resolves when everything that has happened so far is stored, where there is a store: only then tell anybody. */
  stored(): Promise<void> | undefined {
    return this.#services.archive?.stored();
  }

  /** The tools that sessions reported at their start, once there was one. */
  get tools(): string[] | undefined {
    return this.#tools;
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

  /** The session, be it that it has to be recalled from the store first. */
  async recall(id: string): Promise<Session | undefined> {
    const known = this.find(id);
    const { archive } = this.#services;
    if (known || !archive) return known;
    const underWay = this.#recalling.get(id);
    if (underWay) return underWay;
    const recalling = this.#recall(id, archive).finally(() => this.#recalling.delete(id));
    this.#recalling.set(id, recalling);
    return recalling;
  }

  async #recall(id: string, archive: SessionArchive): Promise<Session | undefined> {
    await this.#registry.departed(id);
    const recalled = await archive.recall(id);
    if (!recalled) return undefined;
    const session = await this.#revived(recalled);
    this.#registry.add(session);
    this.stream.tell({ kind: 'added', session });
    this.#housekeeping.wake();
    session.takeUp();
    for (const request of session.requests) this.approvals.requested(session, request);
    return session;
  }

  /** Sessions that are only in the store, as far as a list shows them. */
  async listStored(principal: string | undefined, limit: number): Promise<Session[]> {
    const rows = await this.#services.archive?.list({ limit, ...(principal !== undefined && { principal }) });
    const unknown = (rows ?? []).filter(({ id }) => !this.#registry.find(id));
    const nothing = { events: [], lastEventId: 0, droppedThrough: 0, requests: [], messages: [], grants: [] };
    return Promise.all(unknown.map((row) => this.#revived({ row, ...nothing })));
  }

  async #revived(recalled: RecalledSession): Promise<Session> {
    const { revive } = await import('./restored-session.ts');
    const { settings, hasWorktree, ...seed } = revive(recalled, this.#services.baseEnv);
    const cwd = this.policy.directories.own;
    const rules = new Rules({ settings: { ...this.settings, ...settings }, cwd }, this.#services);
    const worktree = hasWorktree ? await this.#worktrees.find(seed.id) : undefined;
    return new Session({ ...seed, rules, worktree }, this.#sessionServices());
  }

  session(id: string): Session {
    const session = this.find(id);
    if (!session) throw unknownSession(id);
    return session;
  }

  resumeTokenFor(id: string): string | undefined {
    return this.settings.resumeSecret === undefined ? undefined : resumeToken(this.settings.resumeSecret, id);
  }

  async start({ prompt, options, defaults, streamsText, by }: StartRequest): Promise<Session> {
    this.#checkOpen();
    const rules = this.#rulesOf(by);
    rules.policy.checkDepth();
    const admitted = await rules.policy.admit(options, defaults);
    const worktree =
      admitted.workspace && ((id: string): Promise<OpenedWorkspace> => this.#worktrees.create(id, admitted));
    return this.#launchNew(
      { rules, options: admitted, origin: { kind: 'new' }, streamsText, client: by, worktree },
      prompt,
    );
  }

  /** How a session is launched whose caller asks for nothing special. */
  async plainLaunch(): Promise<SpareTemplate> {
    const options = await this.policy.admit({});
    const { launch } = await this.#rules.launches.plan(
      this.settings.toolset === 'explicit' ? withPartialMessages(options) : options,
    );
    return launch;
  }

  async reply(request: ReplyRequest): Promise<Session> {
    this.#checkOpen();
    // Also what only a resume from disk would use: what a caller may not set is refused, not passed over.
    const rules = this.#rulesOf(request.by);
    rules.policy.check(withOverrides(request.disk.options, request));
    const known = this.#registry.find(request.sessionId);
    if (!known) return this.#replyFromDisk(request);
    rules.checkMayDrive(known);
    known.rules.policy.check(withOverrides({}, request));
    await known.exitReported();
    if (known.state === 'cancelled')
      throw new DomainError('CANCELLED', `Session ${known.id} was cancelled; start a new one.`);
    if (Object.keys(request.disk.options).length > 0)
      known.warnings.push('diskResumeConfig was not used: the session is not on disk only, and keeps its options.');
    if (request.fork === true) return this.#fork(known, request);
    checkFree(known, request);
    await known.oneReplyAtATime(async () => {
      // Another reply may have been faster.
      checkFree(known, request);
      await this.#continue(known, request);
    });
    return known;
  }

  /** A caller's answer; the session's warnings say what was granted otherwise than asked. */
  respond(sessionId: string, requestId: string, answer: Answer, by?: ConnectedClient): Session {
    const session = this.session(sessionId);
    this.approvals.checkCallerMayAnswer(session, by);
    const { updates, warnings } = rightsAsked(answer, session.findRequest(requestId));
    const rules = this.#rulesOf(by);
    const cwd = session.options.cwd ?? rules.policy.directories.own ?? '';
    const granted = session.rules.policy.grantable(rules.policy.grantable(updates, cwd), cwd);
    const updatedPermissions = granted.length > 0 && { updatedPermissions: granted };
    session.respond(requestId, { ...answer, ...updatedPermissions }, 'caller', by?.principal);
    session.warnings.push(...warnings);
    return session;
  }

  /** A person's answer, given elsewhere than in a form. What it grants holds for this session. */
  respondAsPerson(sessionId: string, requestId: string, answer: Answer, person: Principal): Session {
    const session = this.session(sessionId);
    const { updates, warnings } = rightsAsked(answer, session.findRequest(requestId));
    const granted = updates.map((update) => ({ ...update, destination: 'session' as const }));
    const updatedPermissions = granted.length > 0 && { updatedPermissions: granted };
    session.respond(requestId, { ...answer, ...updatedPermissions }, 'human', person);
    session.warnings.push(...warnings);
    return session;
  }

  async rewind(
    sessionId: string,
    toUserMessage: string,
    dryRun: boolean,
    by?: ConnectedClient,
  ): Promise<RewindOutcome> {
    const session = this.session(sessionId);
    this.#rulesOf(by).checkMayDrive(session);
    if (session.options.enableFileCheckpointing !== true) {
      throw new DomainError(
        'INVALID_ARGUMENT',
        'The session keeps no checkpoints; start it with advanced.enableFileCheckpointing.',
      );
    }
    this.#checkDirectory(session);
    const order: RewindOrder = {
      toUserMessage,
      dryRun,
      askPerson: !this.#decides(session, by),
      copiesDir: rewindCopiesDir(this.settings.stateDir),
    };
    return session.hasProcess
      ? session.rewind(order)
      : this.#registry.withPlace((place) => {
          place.session = session;
          return session.rewind(order);
        });
  }

  async listDisk(query: DiskQuery): Promise<DiskSession[]> {
    return listDisk(this.#services.transcripts, this.policy.directories, query);
  }

  async listMachine(query: Omit<DiskQuery, 'offset'>, known = this.sessions): Promise<ListedSession[]> {
    return listMachine(this.#services.transcripts, this.policy.directories, known, query);
  }

  /** Everything ends: sessions, processes, timers. Twice is harmless. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    this.#housekeeping.stop();
    await Promise.all(this.#registry.all.map((session) => this.#closeSession(session)));
    await this.#services.release?.();
  }

  async #closeSession(session: Session): Promise<void> {
    // What the store remembers is taken up when the hub starts again.
    if (this.#services.archive && session.persists) {
      await session.reported();
      await session.suspend();
    } else if (session.atRest || session.reporting) {
      await session.dispose();
      await session.reported();
    } else await session.cancel('the server shuts down', 'shutdown', 'shutdown');
    await session.release();
  }

  #rulesOf(client: ConnectedClient | undefined): Rules {
    return client?.rules ?? this.#rules;
  }

  /** Whether whoever calls may decide by itself what would otherwise be a person's to decide. */
  #decides(session: Session | undefined, by: ConnectedClient | undefined): boolean {
    if (by && RIGHTS[by.principal.role].answer === 'person') return true;
    return this.approvals.callerDecides(session ?? { approvals: this.settings.approvals }, by);
  }

  #checkOpen(): void {
    if (this.#closing) throw new DomainError('CANCELLED', 'The server is shutting down.');
  }

  // ── ways into a conversation ───────────────────────────────────────────────────────────────────────────────────

  async #launchNew(
    seed: Pick<SessionSeed, 'rules' | 'options' | 'origin' | 'inherited' | 'streamsText' | 'client'> & {
      id?: string;
      /** How the session gets its worktree, where it gets one. */
      worktree?: ((id: string) => Promise<OpenedWorkspace>) | undefined;
    },
    prompt: string,
  ): Promise<Session> {
    return this.#registry.withPlace(async (place) => {
      // A spare process has another directory and an id already.
      const own = seed.worktree && (seed.id ?? randomUUID());
      const worktree = own === undefined ? undefined : await seed.worktree?.(own);
      const options = worktree ? inWorktree(seed.options, worktree.workspace) : seed.options;
      const launched = seed.streamsText === true ? withPartialMessages(options) : options;
      const { launches, settings } = seed.rules;
      const { launch } = await launches.plan(launched, worktree?.workspace);
      const session = new Session(
        {
          ...seed,
          options,
          worktree,
          owner: seed.client?.principal ?? LOCAL,
          id: own ?? seed.id ?? this.#services.driver.newSessionId?.(launch) ?? randomUUID(),
          permissionTimeoutMs: options.permissionRequestTimeoutMs ?? settings.permissionTimeoutMs,
          initTimeoutMs: options.sessionInitTimeoutMs ?? settings.startTimeoutMs,
        },
        this.#sessionServices(),
      );
      place.session = session;
      this.#registry.add(session);
      this.stream.tell({ kind: 'added', session });
      this.#housekeeping.wake();
      this.#trail.started(session, seed.origin, prompt);
      const warnings = this.#services.startWarnings?.(launch.options).catch(() => []);
      const { missing } = launches;
      try {
        await session.prompt(prompt);
        session.warnings.push(
          ...(missing === undefined ? [] : [missing]),
          ...((await warnings) ?? []),
          ...(worktree?.workspace.notes ?? []),
        );
        return session;
      } catch (error) {
        void this.#registry.forget(session);
        // Nothing was done in it; what holds something all the same is kept.
        if (seed.origin.kind !== 'resume') await worktree?.workspace.discard().catch(() => undefined);
        const failure = withReason(error, missing);
        this.#trail.startFailed(session, formatError(failure));
        throw failure;
      }
    });
  }

  async #continue(session: Session, request: ReplyRequest): Promise<void> {
    await session.switchTo({
      model: request.model,
      permissionMode: request.permissionMode,
      permissionTimeoutMs: request.permissionRequestTimeoutMs,
    });
    // Another reply may have been faster.
    if (!session.atRest && request.whenBusy !== 'queue') throw busy(session);
    if (request.sessionInitTimeoutMs !== undefined) session.setInitTimeout(request.sessionInitTimeoutMs);
    if (session.hasProcess || !session.atRest) {
      await session.prompt(request.prompt);
      return;
    }
    if (!session.persists) {
      throw new DomainError(
        'SESSION_NOT_FOUND',
        'The process of this session has ended and it keeps no transcript (persistSession:false).',
      );
    }
    this.#rulesOf(request.by).policy.checkDepth();
    this.#checkDirectory(session);
    this.#bringMissing(session, request);
    // A process that is on its way out is still registered, and would look like somebody else's.
    await session.closed();
    await this.#checkNotHeld(session.id);
    await this.#registry.withPlace((place) => {
      place.session = session;
      return session.prompt(request.prompt);
    });
  }

  /** After a restart a session lacks what is never stored, until whoever replies brings it. */
  #bringMissing(session: Session, { by, disk }: ReplyRequest): void {
    if (session.missing.length === 0) return;
    const { baseEnv } = this.#rulesOf(by);
    const { env = {}, mcpServers, settings, agents } = disk.options;
    const brought = { mcpServers, settings, agents } as Record<string, unknown>;
    const isBrought = (name: string): boolean =>
      brought[name] !== undefined ||
      (name.startsWith('env.') ? env[name.slice('env.'.length)] !== undefined : baseEnv[name] !== undefined);
    const lacking = session.missing.filter((name) => !isBrought(name));
    if (lacking.length > 0)
      throw new DomainError(
        'INVALID_ARGUMENT',
        `Session ${session.id} needs ${lacking.join(', ')} again: secrets are not stored. Bring the options in diskResumeConfig, and variables with a client that has them in its environment.`,
      );
    const context = { settings: session.rules.settings, cwd: session.rules.policy.directories.own, baseEnv };
    session.adopt(new Rules(context, this.#services), definedOptions({ ...brought, env: disk.options.env }));
  }

  async #fork(parent: Session, request: ReplyRequest): Promise<Session> {
    if (!parent.persists)
      throw new DomainError(
        'INVALID_ARGUMENT',
        'A session without a transcript (persistSession:false) cannot be forked.',
      );
    this.#rulesOf(request.by).policy.checkDepth();
    const options = withOverrides(parent.options, request);
    const original = parent.worktree;
    if (!original) this.#checkDirectory(parent);
    return this.#launchNew(
      {
        id: randomUUID(),
        rules: parent.rules,
        options,
        worktree: original && ((id) => this.#worktrees.fork(id, original)),
        origin: { kind: 'fork', of: parent.id },
        inherited: parent.totals.session,
        client: request.by,
        streamsText: request.streamsText,
      },
      request.prompt,
    );
  }

  /** Of replies that come together one starts the process; the others wait for it and find the session known. */
  async #replyFromDisk(request: ReplyRequest): Promise<Session> {
    const { sessionId, fork = false } = request;
    if (fork) return this.#takeFromDisk(request);
    const underWay = this.#resuming.get(sessionId);
    if (underWay) {
      await underWay.catch(() => undefined);
      return this.reply(request);
    }
    const session = this.#takeFromDisk(request);
    this.#resuming.set(sessionId, session);
    try {
      return await session;
    } finally {
      this.#resuming.delete(sessionId);
    }
  }

  async #takeFromDisk(request: ReplyRequest): Promise<Session> {
    const { disk, sessionId } = request;
    if (disk.kind === 'token') checkMayResume(this.settings, sessionId, disk.token);
    await this.#registry.departed(sessionId);
    const found = await this.#services.transcripts.find(sessionId);
    if (!found) throw notFound(sessionId, 'Claude Code keeps no session of this id on this machine.');
    if (disk.options.cwd === undefined && found.cwd === undefined)
      throw new DomainError(
        'INVALID_ARGUMENT',
        'The transcript does not tell the directory of the session: give its cwd if the tool takes one, or start a new session there.',
      );
    const worktree = disk.options.cwd === undefined ? await this.#worktreeOf(sessionId, found.cwd) : undefined;
    // The checkout is what has to be allowed; the worktree is the session's own.
    const directory = worktree ? inCheckout(worktree.workspace) : found.cwd;
    const recorded = directory === undefined ? {} : { cwd: directory };
    const rules = this.#rulesOf(request.by);
    const admitted = await rules.policy.admit(withOverrides(disk.options, request), { ...disk.defaults, ...recorded });
    const options = withFreshSystemPrompt(admitted);
    rules.policy.checkDepth();
    const fork = request.fork === true;
    if (!fork) await this.#checkNotHeld(sessionId);
    const at = disk.kind === 'token' ? disk.resumeSessionAt : undefined;
    const spent = await this.#services.transcripts.lastCostUsd(sessionId);
    const unwritten = await this.#services.transcripts.hasUnwrittenCost(sessionId);
    return this.#launchNew(
      {
        id: fork ? randomUUID() : sessionId,
        rules,
        options,
        worktree: worktree && (async (id) => (fork ? this.#worktrees.fork(id, worktree.workspace) : worktree)),
        origin: fork ? { kind: 'fork', of: sessionId, at } : { kind: 'resume', at },
        inherited: { turns: 0, costUsd: spent, ...(unwritten && { costUnknown: true }) },
        client: request.by,
        streamsText: request.streamsText,
      },
      request.prompt,
    );
  }

  async #worktreeOf(sessionId: string, directory: string | undefined): Promise<OpenedWorkspace | undefined> {
    const isWorktree = directory !== undefined && isInside(this.settings.worktreesDir, directory);
    return isWorktree ? this.#worktrees.find(sessionId) : undefined;
  }

  #checkDirectory({ options, worktree, rules }: Session): void {
    if (worktree) requireWorktree(worktree);
    else if (options.cwd !== undefined) rules.policy.directories.existing(options.cwd, 'cwd');
  }

  async #checkNotHeld(sessionId: string): Promise<void> {
    const holder = await this.#services.transcripts.findHolder(sessionId, (pid) => this.#registry.hasProcess(pid));
    if (holder) throw heldElsewhere(sessionId, holder.pid);
  }

  /** What was free a moment ago need not be: only under the lock does a look at the holders count. */
  async #lockTranscript(sessionId: string): Promise<TranscriptLock> {
    const lock = await this.#services.transcripts.lock(sessionId);
    if ('pid' in lock) throw heldElsewhere(sessionId, lock.pid, 'server');
    try {
      await this.#checkNotHeld(sessionId);
      return lock;
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  // ── what sessions are given ────────────────────────────────────────────────────────────────────────────────────

  #sessionServices(): SessionServices {
    const { clock, driver, transcripts, log } = this.#services;
    return {
      clock,
      eventLimits: { maxEvents: this.settings.eventBufferSize, maxBytes: EVENT_BYTES },
      launch: async (asked, listener) => {
        const session = this.#registry.find(asked.sessionId);
        const { launches } = session?.rules ?? this.#rules;
        launches.checkSandbox();
        const { launch, warnings } = await launches.plan(asked.options, session?.worktree);
        session?.warnings.push(...warnings);
        return driver.launch({ ...asked, ...launch }, listener);
      },
      recordedCostUsd: (id) => transcripts.lastCostUsd(id),
      lockTranscript: (id) => this.#lockTranscript(id),
      salvageTranscript: (id) => transcripts.salvage(id),
      onOpened: (session, request) => this.#trail.requested(session, request),
      onRequest: (session, request) => this.approvals.requested(session, request),
      isAskingPerson: (request) => this.approvals.isAskingPerson(request),
      onSettled: (session, request, outcome) => this.#trail.settled(session, request, outcome),
      ...this.#workServices(),
      onRest: (session, turn) => this.#trail.rested(session, turn),
      keepsRequests: this.#services.archive !== undefined,
      onDecided: (session) => this.#handOver(session),
      onGranted: (_session, grant) => this.#services.archive?.grantAdded(grant),
      onGrantEnded: (session, grant, end) => {
        this.#trail.grantEnded(session, grant, end);
        this.#services.archive?.grantClosed(grant, end);
      },
      onTools: (tools) => this.#learnTools(tools),
      onNotice: (session, notice) => this.stream.tell({ ...notice, session }),
      debug: (line) => log('debug', line),
    };
  }

  #workServices(): Pick<SessionServices, 'openWorkspace' | 'othersWorked'> {
    const load = this.#services.workspaces;
    if (!load) return {};
    return {
      openWorkspace: async ({ id, options }) => {
        const { workspaces, ...words } = await load();
        return {
          ...words,
          workspace: await workspaces.openDirectory(id, options.cwd ?? this.policy.directories.own ?? '.'),
        };
      },
      othersWorked: (session, root, since) =>
        this.#registry.all.some((other) => other !== session && other.workedIn(root, since)),
    };
  }

  /** What was decided while a session had no process: one is started and told, as soon as there is a place for it. */
  #handOver(session: Session): void {
    const start = async (): Promise<void> => {
      if (session.missing.length > 0)
        throw new DomainError(
          'UNAVAILABLE',
          `It needs ${session.missing.join(', ')} again, which nobody has brought since the hub was restarted. What was decided is kept; reply with a client that has it.`,
        );
      this.#checkDirectory(session);
      await session.closed();
      await this.#registry.withPlace((place) => {
        place.session = session;
        return session.handOver();
      });
    };
    start().catch((error: unknown) => {
      if (error instanceof DomainError && error.code === 'TOO_MANY_SESSIONS' && !this.#closing)
        this.#services.clock.after(HAND_OVER_AGAIN_MS, () => this.#handOver(session));
      else session.handoverFailed(error);
    });
  }

  #learnTools(tools: string[]): void {
    // A session that was given few tools must not make the others look as if they were not there.
    const known = [...new Set([...(this.#tools ?? []), ...tools])];
    if (known.length === this.#tools?.length) return;
    this.#tools = known;
    this.stream.tell({ kind: 'tools', tools: known });
  }
}

function definedOptions(options: Record<string, unknown>): SessionOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function checkFree(session: Session, { whenBusy }: ReplyRequest): void {
  if (!session.atRest && whenBusy !== 'queue') throw busy(session);
}

/**
 * Claude Code records the system prompt with the first message and from then on sends the record, whatever it is given: one
 * given for a session that has begun counts only if it is told not to. A caller that says `snapshot` itself is heard.
 */
function withFreshSystemPrompt({ systemPrompt, ...options }: SessionOptions): SessionOptions {
  if (systemPrompt === undefined) return options;
  const fresh =
    typeof systemPrompt === 'string'
      ? { type: 'custom' as const, prompt: systemPrompt, snapshot: false }
      : { snapshot: false, ...systemPrompt };
  return { ...options, systemPrompt: fresh };
}

function withOverrides(options: SessionOptions, request: ReplyRequest): SessionOptions {
  const { model, permissionMode, permissionRequestTimeoutMs, sessionInitTimeoutMs } = request;
  return {
    ...options,
    ...(model !== undefined && { model }),
    ...(permissionMode !== undefined && { permissionMode }),
    ...(permissionRequestTimeoutMs !== undefined && { permissionRequestTimeoutMs }),
    ...(sessionInitTimeoutMs !== undefined && { sessionInitTimeoutMs }),
  };
}
