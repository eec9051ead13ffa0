import type { Settings } from '../config/load-settings.ts';
import { DomainError } from '../errors/errors.ts';
import type { ApplyOptions, ApplyOutcome } from '../workspace/apply.ts';
import type { DiffPage, PageOptions } from '../workspace/diff.ts';
import type { DiscardOutcome } from '../workspace/discard.ts';
import type { Answer } from './answer.ts';
import type { ConnectedClient, FormEnd } from './approvals.ts';
import type { Clock } from './clock.ts';
import type { Order, OrderOutcomes } from './elsewhere.ts';
import type { Engine } from './engine.ts';
import type { EngineNotice } from './notices.ts';
import type { Asked } from './own-actions.ts';
import type { ReplyRequest, StartRequest } from './start-request.ts';
import type { Policy } from './policy.ts';
import { isThisUser, RIGHTS, type Principal } from './principal.ts';
import type { OpenRequest } from './requests.ts';
import type { RewindOutcome } from './rewind.ts';
import type { AuditRecord, DiskQuery, DiskSession } from './services.ts';
import { unknownSession } from './session-errors.ts';
import type { ListedSession } from './session-listing.ts';
import type { SessionList } from './session-recall.ts';
import type { ListedWorktree } from './session-worktrees.ts';
import type { Session } from './session.ts';
import type { Role } from '../schema/enums.ts';

/**
 * The engine as one client may use it, and all that tools and forms see of it. Access is checked here and nowhere else:
 * sessions of other principals do not exist for it.
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
      (name) => !name.startsWith('mcp__') || this.sessions.some(({ tools }) => tools?.includes(name)),
    );
  }

  /** Calls back when the real list of tools is known or has changed. Returns an unsubscribe function. */
  onToolsChanged(listener: () => void): () => void {
    return this.#engine.stream.subscribe(({ kind }) => {
      if (kind === 'tools') listener();
    });
  }

  /** Everything that happens, including to sessions it cannot see. Returns an unsubscribe function. */
  onNotice(listener: (notice: EngineNotice) => void): () => void {
    return this.#engine.stream.subscribe(listener);
  }

  /** Resolves when everything so far is stored, where there is a store. Await it before reporting anything. */
  stored(): Promise<void> | undefined {
    return this.#engine.stored();
  }

  // ── sessions ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** Those loaded in this process. */
  get sessions(): Session[] {
    return [...this.#engine.sessions, ...this.#engine.fleet.elsewhere].filter((session) => this.sees(session));
  }

  /** Including those that exist only in the store. */
  async listSessions(): Promise<SessionList> {
    const owner = this.#rights.read === 'all' ? undefined : this.principal.id;
    const here = this.#engine.sessions.filter((session) => this.sees(session));
    const { sessions, unreadable } = await this.#engine.listStored(owner, MAX_LISTED);
    return { sessions: [...here, ...sessions], unreadable };
  }

  async session(id: string): Promise<Session> {
    return this.#mustSee(await this.#recall(id), id);
  }

  async start(request: Omit<StartRequest, 'by'>): Promise<Session> {
    if (this.#rights.drive === 'none') throw this.#mayNot('start sessions');
    return this.#engine.start({ ...request, by: this.#connection });
  }

  async reply(request: Omit<ReplyRequest, 'by'>): Promise<Session> {
    const known = await this.#recall(request.sessionId);
    if (known) this.#checkDrives(known);
    else this.#checkSeesDisk(() => unknownSession(request.sessionId));
    if (known?.elsewhere !== undefined) {
      const { sessionId: _id, ...order } = request;
      return this.#driven(known, { kind: 'reply', request: order });
    }
    return this.#engine.reply({ ...request, by: this.#connection });
  }

  async respond(sessionId: string, requestId: string, answer: Answer): Promise<Session> {
    const session = this.#mustSee(await this.#recall(sessionId), sessionId);
    const { id } = session;
    const { answer: right } = this.#rights;
    if (right !== 'none' && session.elsewhere !== undefined)
      return this.#driven(session, { kind: 'respond', requestId, answer });
    switch (right) {
      case 'none':
        throw this.#mayNot('answer requests');
      case 'caller':
        return this.#engine.respond(id, requestId, answer, this.#connection);
      case 'person':
        return this.#engine.respondAsPerson(id, requestId, answer, this.principal);
    }
  }

  async interrupt(sessionId: string): Promise<boolean> {
    const session = await this.#stoppable(sessionId);
    return session.elsewhere === undefined ? session.interrupt() : this.#there(session, { kind: 'interrupt' });
  }

  async cancel(sessionId: string): Promise<boolean> {
    const session = await this.#stoppable(sessionId);
    if (session.elsewhere !== undefined) return this.#there(session, { kind: 'cancel' });
    const isCaller = session.owner.id === this.principal.id;
    return session.cancel(isCaller ? 'cancelled by the caller' : `cancelled by ${this.principal.name}`, 'caller');
  }

  async rewind(sessionId: string, toUserMessage: string, dryRun: boolean): Promise<RewindOutcome | Asked> {
    const session = await this.session(sessionId);
    this.#checkDrives(session);
    if (session.elsewhere !== undefined) return this.#there(session, { kind: 'rewind', toUserMessage, dryRun });
    return this.#engine.rewind(session.id, toUserMessage, dryRun, this.#connection);
  }

  // ── their work ─────────────────────────────────────────────────────────────────────────────────────────────────

  async diff(sessionId: string, page: PageOptions): Promise<DiffPage> {
    const known = await this.#workOf(sessionId, 'read');
    if (known?.elsewhere !== undefined) return this.#there(known, { kind: 'diff', page });
    return this.#engine.work.diff(sessionId, page);
  }

  async apply(sessionId: string, options: ApplyOptions): Promise<ApplyOutcome | Asked> {
    const known = await this.#workOf(sessionId, 'drive');
    if (known?.elsewhere !== undefined) return this.#there(known, { kind: 'apply', options });
    return this.#engine.work.apply(sessionId, options, this.#connection);
  }

  async discard(sessionId: string, options: { readonly force: boolean }): Promise<DiscardOutcome | Asked> {
    const known = await this.#workOf(sessionId, 'drive');
    if (known?.elsewhere !== undefined) return this.#there(known, { kind: 'discard', options });
    return this.#engine.work.discard(sessionId, options, this.#connection);
  }

  /** Worktrees of its sessions, including dropped ones. */
  async worktrees(): Promise<ListedWorktree[]> {
    const listed = await this.#engine.work.list();
    const owners = await Promise.all(listed.map(({ sessionId }) => this.#engine.ownerOf(sessionId)));
    return listed.filter((_worktree, index) => {
      const owner = owners[index];
      return owner === undefined ? isThisUser(this.principal) : this.#seesOwnedBy(owner);
    });
  }

  /** One of its own sessions, or one of which only the worktree is left. */
  async #workOf(sessionId: string, right: 'read' | 'drive'): Promise<Session | undefined> {
    const known = await this.#recall(sessionId);
    if (!known) this.#checkSeesDisk(() => unknownSession(sessionId));
    else if (right === 'drive') this.#checkDrives(known);
    else this.#mustSee(known, sessionId);
    return known;
  }

  async listDisk(query: DiskQuery): Promise<DiskSession[]> {
    this.#checkSeesDisk(noDiskLists);
    return this.#engine.listDisk(query);
  }

  async listMachine(query: Omit<DiskQuery, 'offset'>): Promise<ListedSession[]> {
    this.#checkSeesDisk(noDiskLists);
    return this.#engine.listMachine(query, this.sessions);
  }

  resumeTokenFor(sessionId: string): string | undefined {
    return this.#engine.resumeTokenFor(sessionId);
  }

  checkSensitive(): void {
    this.#rules.policy.checkSensitive();
  }

  /** Whether lists show where sessions worked and what they were about. */
  get seesDetails(): boolean {
    return this.#rules.settings.allowSensitiveSessionDetails;
  }

  /** Whether a session may work in the folder that the client has open. */
  get followsRoots(): boolean {
    return !this.#rules.settings.denyOptions.includes('cwd');
  }

  /** Carried out by the hub that runs the session. */
  async #there<Kind extends Exclude<Order['kind'], 'start'>>(
    session: Session,
    order: Extract<Order, { kind: Kind }>,
  ): Promise<OrderOutcomes[Kind]> {
    const outcome = await this.#engine.fleet.carryOut<Kind>(session, order, this.#connection);
    // What is shown here must reflect what was done.
    await this.#engine.recall(session.id);
    return outcome;
  }

  /** Like above, for operations that return a session, which must reflect what was done. */
  async #driven(session: Session, order: Extract<Order, { kind: 'reply' | 'respond' }>): Promise<Session> {
    const { fleet } = this.#engine;
    return fleet.driven(await fleet.carryOut<'reply' | 'respond'>(session, order, this.#connection));
  }

  /** A person's answer from a form shown elsewhere. */
  async answerForm(sessionId: string, requestId: string, answer: Answer): Promise<Session> {
    const session = this.#mustSee(await this.#recall(sessionId), sessionId);
    this.#engine.approvals.checkPersonMayAnswer(this.#connection, session);
    session.respond(requestId, answer, 'human', this.principal);
    return session;
  }

  get #rights(): (typeof RIGHTS)[Role] {
    return RIGHTS[this.principal.role];
  }

  /** Its own, or those of the server. */
  get #rules(): { readonly settings: Settings; readonly policy: Policy } {
    return this.#connection.rules ?? this.#engine;
  }

  /** A principal cannot recall another's session, nor learn why it cannot be recalled. */
  async #recall(id: string): Promise<Session | undefined> {
    const owner = await this.#engine.ownerOf(id);
    if (owner !== undefined && !this.#seesOwnedBy(owner)) throw unknownSession(id);
    return this.#engine.recall(id);
  }

  #owns(session: Session): boolean {
    return session.owner.id === this.principal.id;
  }

  sees(session: Session): boolean {
    return this.#seesOwnedBy(session.owner.id);
  }

  #seesOwnedBy(owner: string): boolean {
    return this.#rights.read === 'all' || owner === this.principal.id;
  }

  /** Other principals' sessions do not exist, unless the role may read everything. */
  #mustSee(session: Session | undefined, id: string): Session {
    if (!session || !this.sees(session)) throw unknownSession(id);
    return session;
  }

  #checkDrives(session: Session): void {
    this.#mustSee(session, session.id);
    const { drive } = this.#rights;
    if (drive !== 'all' && !(drive === 'own' && this.#owns(session))) throw this.#mayNot('change sessions');
  }

  async #stoppable(id: string): Promise<Session> {
    const session = await this.session(id);
    const { stop } = this.#rights;
    if (stop !== 'all' && !(stop === 'own' && this.#owns(session))) throw this.#mayNot('stop sessions');
    return session;
  }

  #mayNot(what: string): DomainError {
    const { name, role } = this.principal;
    return new DomainError('PERMISSION_DENIED', `${name} has the role ${role}, which may not ${what}.`);
  }

  /** What Claude Code keeps on disk belongs to the user this process runs as. */
  #checkSeesDisk(refusal: () => DomainError): void {
    if (!isThisUser(this.principal)) throw refusal();
  }

  // ── people at this client ──────────────────────────────────────────────────────────────────────────────────────

  /** From its first call on; a probe never creates one. Idempotent. */
  connect(): void {
    if (!this.#engine.approvals.connect(this.#connection)) return;
    for (const session of this.sessions)
      for (const request of session.requests) this.#engine.approvals.requested(session, request);
  }

  disconnect(): void {
    this.#engine.approvals.disconnect(this.#connection);
  }

  canAsk(session: Session, request: OpenRequest): boolean {
    return this.#engine.approvals.canAsk(this.#connection, session, request);
  }

  beginForm(session: Session, request: OpenRequest): boolean {
    return this.#engine.approvals.beginForm(this.#connection, session, request);
  }

  withdrawForm(session: Session, request: OpenRequest): void {
    this.#engine.approvals.withdrawForm(this.#connection, session, request);
  }

  formEnded(session: Session, request: OpenRequest, end: FormEnd): void {
    this.#engine.approvals.formEnded(this.#connection, session, request, end);
  }

  /** Whether a waiting call should ignore the request. */
  holdsWait(session: Session, request: OpenRequest): boolean {
    return this.#engine.approvals.holdsWait(session, request, this.#connection);
  }

  record(entry: Omit<AuditRecord, 'who' | 'principal'>): void {
    this.#engine.audit.record({ ...entry, who: 'caller', principal: this.principal.id });
  }
}

/** Of sessions that only the store remembers. */
const MAX_LISTED = 100;

function noDiskLists(): DomainError {
  return new DomainError('PERMISSION_DENIED', 'Only the user this server runs as may list the sessions on disk.');
}
