import type { Settings } from '../config/load-settings.ts';
import type { OfferedModel } from '../driver/agent-process.ts';
import { DomainError } from '../errors/errors.ts';
import type { Command, CommandKind, CommandOf } from '../schema/commands.ts';
import type { RequestRecord } from '../schema/events.ts';
import type { ShownRecord } from '../schema/records.ts';
import { PERMISSION_MODES, type PermissionMode } from '../schema/session-options.ts';
import type { ConnectedClient, FormEnd } from './requests/approvals.ts';
import type { Clock } from './clock.ts';
import { driven, type Outcomes, type Started } from './elsewhere/elsewhere.ts';
import type { Engine } from './engine.ts';
import type { EngineNotice } from './notices.ts';
import type { Policy } from './rules/policy.ts';
import { answersAsPerson, checkMayCommand, isThisUser, may, mayWithAll, type Principal } from './rules/access.ts';
import { precededBy, type SessionReading } from './conversation/reading.ts';
import type { RemoteSession } from './elsewhere/remote-session.ts';
import type { DiskSession } from '../transcripts/disk-sessions.ts';
import type { AuditRecord, DiskQuery } from './ports.ts';
import { recordOf } from './requests/requests.ts';
import { examined } from './session/session-answers.ts';
import { unknownSession } from './session/session-errors.ts';
import type { ListedSession } from './session/session-listing.ts';
import type { Located, SessionList } from './elsewhere/session-recall.ts';
import type { ListedWorktree } from './session/session-worktrees.ts';
import { activityLine } from './session/session-record.ts';
import { Session } from './session/session.ts';

/** Of sessions that only the store remembers. */
const MAX_LISTED = 100;

export interface Writing {
  readonly text: string;
  readonly workedMs: number;
  readonly quietMs: number;
}

/**
 * The engine as one client may use it, and all that is seen of it outside: commands go in, records come out. What its
 * principal may do is decided in `rules/access.ts` and enforced here: sessions of other principals do not exist for it.
 */
export class EngineClient {
  readonly #engine: Engine;
  readonly #connection: ConnectedClient;

  constructor(engine: Engine, connection: ConnectedClient) {
    this.#engine = engine;
    this.#connection = connection;
  }

  get principal(): Principal {
    return this.#connection.principal;
  }

  get toolset(): Settings['toolset'] {
    return this.#rules.settings.toolset;
  }

  get clock(): Clock {
    return this.#engine.clock;
  }

  /** The tools that sessions reported at their start, once there was one. */
  get tools(): readonly string[] | undefined {
    // The tools of an MCP server reveal whose session uses it.
    return this.#engine.tools?.filter(
      (name) =>
        !name.startsWith('mcp__') || this.#loaded.some(({ conversation }) => conversation.setup.tools?.includes(name)),
    );
  }

  /** Calls back when the real list of tools is known or has changed. Returns an unsubscribe function. */
  onToolsChanged(listener: () => void): () => void {
    return this.#engine.stream.subscribe(({ kind }) => {
      if (kind === 'tools') listener();
    });
  }

  /** What happens to the sessions it may see. Returns an unsubscribe function. */
  onNotice(listener: (notice: Exclude<EngineNotice, { kind: 'tools' }>) => void): () => void {
    return this.#engine.stream.subscribe((notice) => {
      if (notice.kind !== 'tools' && this.#seesOwnedBy(notice.owner)) listener(notice);
    });
  }

  /** Resolves when everything so far is stored, where there is a store. Await it before reporting anything. */
  stored(): Promise<void> | undefined {
    return this.#engine.stored();
  }

  // ── commands ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** Has a command carried out, here or by the hub that runs the session. */
  async execute<Kind extends CommandKind>(command: CommandOf<Kind>): Promise<Outcomes[Kind]>;
  async execute(command: Command): Promise<Outcomes[CommandKind]> {
    if (command.kind === 'start') return this.start(command);
    const located = await this.#allowed(command);
    const { fleet } = this.#engine;
    if (located?.kind === 'elsewhere') return fleet.carryOut(located, command, this.#connection);
    const session = located?.kind === 'stored' ? await this.#engine.finder.recall(command.sessionId) : located?.session;
    const execute = (): Promise<Outcomes[CommandKind]> => this.#executeHere(command);
    return session ? session.whileInUse(execute) : execute();
  }

  /** `id`: if another hub chose it and placed the session here. */
  async start(command: CommandOf<'start'>, id?: string): Promise<Started> {
    checkMayCommand(this.principal, command.kind);
    const request = { ...command, by: this.#connection };
    if (command.attempts) {
      const attempts = (await this.#engine.startAttempts(request)).map(driven);
      return { sessionId: attempts[0]?.sessionId ?? '', warnings: [], attempts };
    }
    return id === undefined ? this.#engine.startPlaced(request) : driven(await this.#engine.start({ ...request, id }));
  }

  async #executeHere(command: Exclude<Command, { kind: 'start' }>): Promise<Outcomes[CommandKind]> {
    const { sessionId } = command;
    const engine = this.#engine;
    switch (command.kind) {
      case 'reply':
        return driven(await engine.reply({ ...command, by: this.#connection }));
      case 'respond':
        // Whoever may not answer is not told what has changed either.
        if (!answersAsPerson(this.principal))
          engine.approvals.checkCallerMayAnswer(engine.session(sessionId), this.#connection);
        await engine.session(sessionId).checkFresh(command.requestId, command.answer);
        return driven(
          answersAsPerson(this.principal)
            ? engine.respondAsPerson(sessionId, command.requestId, command.answer, this.principal)
            : engine.respond(sessionId, command.requestId, command.answer, this.#connection),
        );
      case 'form':
        return driven(await this.#answerForm(command));
      case 'rename':
        return engine.session(sessionId).rename(command.title);
      case 'withdraw':
        return engine.session(sessionId).withdraw(command.messageId, command.replacement);
      case 'archive':
        return engine.session(sessionId).archive(command.archived);
      case 'examine': {
        const { stale } = await examined(engine.session(sessionId), command.requestId);
        return stale === undefined ? {} : { stale };
      }
      case 'interrupt':
        return engine.session(sessionId).interrupt();
      case 'cancel': {
        const session = engine.session(sessionId);
        const by = session.owner.id === this.principal.id ? 'the caller' : this.principal.name;
        return session.cancel(`cancelled by ${by}`, 'caller');
      }
      case 'rewind':
        return engine.rewind(sessionId, command.toUserMessage, command.dryRun, this.#connection);
      case 'diff':
        return engine.work.diff(sessionId, command);
      case 'apply':
        return engine.work.apply(sessionId, command, this.#connection);
      case 'discard':
        return engine.work.discard(sessionId, command, this.#connection);
    }
  }

  async #answerForm({ sessionId, requestId, answer }: CommandOf<'form'>): Promise<Session> {
    const session = this.#engine.session(sessionId);
    this.#engine.approvals.checkPersonMayAnswer(this.#connection, session);
    await session.checkFresh(requestId, answer);
    session.respond(requestId, answer, 'human', this.principal);
    return session;
  }

  // ── access ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Where the session is; undefined if only a worktree or a transcript is left of it, which is this user's. */
  async #allowed({ kind, sessionId }: Exclude<Command, { kind: 'start' }>): Promise<Located | undefined> {
    const located = await this.#engine.finder.locate(sessionId);
    if (!located) {
      const isOnDisk = kind === 'reply' || kind === 'diff' || kind === 'apply' || kind === 'discard';
      if (!isOnDisk || !isThisUser(this.principal)) throw unknownSession(sessionId, this.toolset);
      return undefined;
    }
    const { owner } = located;
    if (!this.#seesOwnedBy(owner)) throw unknownSession(sessionId, this.toolset);
    checkMayCommand(this.principal, kind, owner);
    return located;
  }

  /** Its own, or those of the server. */
  get #rules(): { readonly settings: Settings; readonly policy: Policy } {
    return this.#connection.rules ?? this.#engine;
  }

  #seesOwnedBy(owner: string): boolean {
    return may(this.principal, 'read', owner);
  }

  // ── what is read ───────────────────────────────────────────────────────────────────────────────────────────────

  /** `from`: the first event that is wanted, if any are. Those that are no longer in memory come from the store. */
  async read(sessionId: string, from?: number): Promise<SessionReading> {
    const session = await this.#found(sessionId);
    const isInMemory = from === undefined || from > session.read().log.droppedThrough;
    const earlier = isInMemory ? undefined : await this.#engine.storedEvents(sessionId, from - 1);
    const reading = this.#readingOf(session);
    return earlier && earlier.events.length > 0 ? { ...reading, log: precededBy(earlier, reading.log) } : reading;
  }

  #readingOf(session: Session | RemoteSession): SessionReading {
    const { approvals } = this.#engine;
    const isLeftToPerson = (id: string): boolean =>
      session.requests.some((one) => one.id === id && approvals.holdsWait(session, one, this.#connection));
    return { ...session.read(), isLeftToPerson };
  }

  /** One that is loaded in this process, without looking any further. */
  peek(sessionId: string): ShownRecord | undefined {
    return this.#find(sessionId)?.read().record;
  }

  /** Including those that exist only in the store. */
  async list(): Promise<SessionList> {
    const owner = mayWithAll(this.principal, 'read') ? undefined : this.principal.id;
    const here = this.#loaded.map((session) => session.read().record);
    const { sessions, unreadable } = await this.#engine.finder.list(owner, MAX_LISTED);
    return { sessions: [...here, ...sessions], unreadable };
  }

  /** Worktrees of its sessions, including dropped ones; or that of one of them. */
  async worktrees(sessionId?: string): Promise<ListedWorktree[]> {
    const listed = await this.#engine.work.list(sessionId);
    const owners = await Promise.all(listed.map(({ sessionId }) => this.#engine.ownerOf(sessionId)));
    return listed.filter((_worktree, index) => {
      const owner = owners[index];
      return owner === undefined ? isThisUser(this.principal) : this.#seesOwnedBy(owner);
    });
  }

  async listDisk(query: DiskQuery): Promise<DiskSession[]> {
    this.#checkSeesDisk();
    return this.#engine.listDisk(query);
  }

  async listMachine(query: Omit<DiskQuery, 'offset'>): Promise<ListedSession[]> {
    this.#checkSeesDisk();
    return this.#engine.listMachine(query, this.#loaded);
  }

  resumeTokenFor(sessionId: string): string | undefined {
    return this.#engine.resumeTokenFor(sessionId);
  }

  checkSensitive(): void {
    this.#rules.policy.checkSensitive();
  }

  /** The directories below one, for someone who chooses where a session is to work. */
  async browse(directory: string): Promise<string[]> {
    checkMayCommand(this.principal, 'start');
    return this.#rules.policy.directories.below(directory);
  }

  /** Where sessions may work, if the operator limits it. */
  get allowedDirectories(): readonly string[] | undefined {
    return this.#rules.policy.directories.roots;
  }

  /** The models that Claude Code offered when a session last started; none before that. */
  async offeredModels(): Promise<readonly OfferedModel[]> {
    return this.#engine.models;
  }

  /** The modes that it may start sessions in. */
  get permittedModes(): PermissionMode[] {
    return PERMISSION_MODES.filter((mode) => {
      try {
        this.#rules.policy.check({ permissionMode: mode });
        return true;
      } catch {
        return false;
      }
    });
  }

  /** Whether lists show where sessions worked and what they were about. */
  get seesDetails(): boolean {
    return this.#rules.settings.allowSensitiveSessionDetails;
  }

  /** Whether a session may work in the folder that the client has open. */
  get followsRoots(): boolean {
    return !this.#rules.settings.denyOptions.includes('cwd');
  }

  /** What Claude Code keeps on disk belongs to the user this process runs as. */
  #checkSeesDisk(): void {
    if (!isThisUser(this.principal))
      throw new DomainError('PERMISSION_DENIED', 'Only the user this server runs as may list the sessions on disk.');
  }

  /** Those loaded in this process. */
  get #loaded(): Session[] {
    return this.#engine.sessions.filter(({ owner }) => this.#seesOwnedBy(owner.id));
  }

  #find(sessionId: string): Session | RemoteSession | undefined {
    const session = this.#engine.find(sessionId) ?? this.#engine.finder.peekElsewhere(sessionId);
    return session && this.#seesOwnedBy(session.owner.id) ? session : undefined;
  }

  /** Loaded from the store if necessary; one that another hub runs is followed from then on. */
  async #found(sessionId: string): Promise<Session | RemoteSession> {
    const located = await this.#engine.finder.locate(sessionId);
    if (!located || !this.#seesOwnedBy(located.owner)) throw unknownSession(sessionId, this.toolset);
    if (located.kind === 'here') return located.session;
    const elsewhere = await this.#engine.finder.findElsewhere(sessionId);
    const session = elsewhere ?? (await this.#engine.finder.recall(sessionId));
    if (!session) throw unknownSession(sessionId, this.toolset);
    return session;
  }

  // ── waiting ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Whether it still has to be looked up: it was never read here, or another hub has it now. */
  hasLeft(sessionId: string): boolean {
    return this.#find(sessionId)?.hasLeft !== false;
  }

  /** Resolves once the session is at rest or asks something, or the signal is aborted, with what it is then. */
  async untilAttention(sessionId: string, signal?: AbortSignal): Promise<SessionReading> {
    const session = await this.#found(sessionId);
    const isOver = (): boolean => session.atRest || session.requests.length > 0 || signal?.aborted === true;
    if (!isOver())
      await new Promise<void>((resolve) => {
        const look = (): void => {
          if (!isOver()) return;
          unsubscribe();
          signal?.removeEventListener('abort', look);
          resolve();
        };
        const unsubscribe = session.notices.subscribe(look);
        signal?.addEventListener('abort', look);
      });
    return this.#readingOf(session);
  }

  /** Calls back whenever something may have happened that a call waits for. Returns an unsubscribe function. */
  watch(sessionId: string, listener: () => void): () => void {
    return this.#find(sessionId)?.notices.subscribe(listener) ?? ((): void => undefined);
  }

  /** One line on what it is doing. */
  activity(sessionId: string): string {
    const session = this.#find(sessionId);
    return session instanceof Session ? activityLine(session) : (session?.record.activity ?? '');
  }

  /** What Claude is writing, for how long it has been working, and for how long it was silent; only while it works. */
  writing(sessionId: string): Writing | undefined {
    const session = this.#find(sessionId);
    if (!(session instanceof Session) || session.atRest) return undefined;
    const { unfinishedText: text, times } = session.conversation;
    return { text, workedMs: Math.round(times.workedMs), quietMs: times.quietMs };
  }

  /**
   * What a waiting call finds: a request that its caller should answer, or a session at rest. `carriesForms`: the call
   * can show forms to the person itself.
   */
  standing(sessionId: string, carriesForms: boolean): 'asks' | 'rests' | 'works' {
    const session = this.#find(sessionId);
    if (!session || session.atRest || session.hasLeft) return 'rests';
    const { approvals } = this.#engine;
    const asks = session.requests.some(
      (request) =>
        (carriesForms && approvals.canAsk(this.#connection, session, request)) ||
        !approvals.holdsWait(session, request, this.#connection),
    );
    return asks ? 'asks' : 'works';
  }

  // ── people at this client ──────────────────────────────────────────────────────────────────────────────────────

  /** From its first call on; a probe never creates one. Idempotent. */
  connect(): void {
    const { approvals, finder } = this.#engine;
    if (!approvals.connect(this.#connection)) return;
    const remote = finder.elsewhere.filter(({ owner }) => this.#seesOwnedBy(owner.id));
    for (const session of [...this.#loaded, ...remote])
      for (const request of session.requests) approvals.requested(session, request);
  }

  disconnect(): void {
    this.#engine.approvals.disconnect(this.#connection);
  }

  /** Claims the open requests whose forms this client may show now; it shows them from now on. */
  beginForms(sessionId: string): RequestRecord[] {
    const session = this.#find(sessionId);
    const { approvals } = this.#engine;
    return session?.requests.filter((one) => approvals.beginForm(this.#connection, session, one)).map(recordOf) ?? [];
  }

  /** The form was never sent: this client may ask again. */
  withdrawForm(sessionId: string, requestId: string): void {
    this.#withRequest(sessionId, requestId, (session, request) =>
      this.#engine.approvals.withdrawForm(this.#connection, session, request),
    );
  }

  /** Resolves when the answer has counted, or has been refused. */
  async formEnded(sessionId: string, requestId: string, end: FormEnd): Promise<void> {
    await this.#withRequest(sessionId, requestId, (session, request) =>
      this.#engine.approvals.formEnded(this.#connection, session, request, end),
    );
  }

  #withRequest<T>(
    sessionId: string,
    requestId: string,
    use: (session: Session | RemoteSession, request: NonNullable<ReturnType<Session['findRequest']>>) => T,
  ): T | undefined {
    const session = this.#find(sessionId);
    const request = session?.findRequest(requestId);
    return session && request ? use(session, request) : undefined;
  }

  record(entry: Omit<AuditRecord, 'who' | 'principal' | 'name'>): void {
    this.#engine.audit.record({ ...entry, who: 'caller', principal: this.principal.id, name: this.principal.name });
  }
}
