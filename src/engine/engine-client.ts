import type { Settings } from '../config/load-settings.ts';
import { DomainError } from '../errors/errors.ts';
import type { ApplyOptions, ApplyOutcome } from '../workspace/apply.ts';
import type { DiffPage, PageOptions } from '../workspace/diff.ts';
import type { DiscardOutcome } from '../workspace/discard.ts';
import type { Answer } from './answer.ts';
import type { ConnectedClient, FormEnd } from './approvals.ts';
import type { Clock } from './clock.ts';
import type { Engine, ReplyRequest, StartRequest } from './engine.ts';
import type { Principal } from './principal.ts';
import type { OpenRequest } from './requests.ts';
import type { RewindOutcome } from './rewind.ts';
import type { AuditRecord, DiskQuery, DiskSession } from './services.ts';
import { unknownSession } from './session-errors.ts';
import type { ListedSession } from './session-listing.ts';
import type { ListedWorktree } from './session-worktrees.ts';
import type { Session } from './session.ts';

/**
 * The engine as one client may use it, and all that tools and forms see of it. Whether a principal may do something is
 * asked here and nowhere else: what belongs to another one does not exist for it.
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
    return this.#engine.settings.toolset;
  }

  get clock(): Clock {
    return this.#engine.clock;
  }

  /** The tools that sessions reported at their start, once there was one. */
  get tools(): readonly string[] | undefined {
    return this.#engine.tools;
  }

  /** Calls back when the real list of tools is known or has changed. Returns how to stop that. */
  onToolsChanged(listener: () => void): () => void {
    return this.#engine.toolsChanged.subscribe(listener);
  }

  // ── sessions ───────────────────────────────────────────────────────────────────────────────────────────────────

  get sessions(): Session[] {
    return this.#engine.sessions.filter((session) => this.#owns(session));
  }

  session(id: string): Session {
    const session = this.#engine.find(id);
    if (!session || !this.#owns(session)) throw unknownSession(id);
    return session;
  }

  start(request: Omit<StartRequest, 'by'>): Promise<Session> {
    return this.#engine.start({ ...request, by: this.#connection });
  }

  async reply(request: Omit<ReplyRequest, 'by'>): Promise<Session> {
    const known = this.#engine.find(request.sessionId);
    if (known && !this.#owns(known)) throw unknownSession(request.sessionId);
    if (!known) this.#checkSeesDisk(() => unknownSession(request.sessionId));
    return this.#engine.reply({ ...request, by: this.#connection });
  }

  respond(sessionId: string, requestId: string, answer: Answer): Session {
    return this.#engine.respond(this.session(sessionId).id, requestId, answer);
  }

  interrupt(sessionId: string): Promise<boolean> {
    return this.session(sessionId).interrupt();
  }

  cancel(sessionId: string): Promise<boolean> {
    return this.session(sessionId).cancel('cancelled by the caller', 'caller');
  }

  rewind(sessionId: string, toUserMessage: string, dryRun: boolean): Promise<RewindOutcome> {
    return this.#engine.rewind(this.session(sessionId).id, toUserMessage, dryRun);
  }

  // ── their work ─────────────────────────────────────────────────────────────────────────────────────────────────

  async diff(sessionId: string, page: PageOptions): Promise<DiffPage> {
    return this.#engine.work.diff(this.#workOf(sessionId), page);
  }

  async apply(sessionId: string, options: ApplyOptions): Promise<ApplyOutcome> {
    return this.#engine.work.apply(this.#workOf(sessionId), options);
  }

  async discard(sessionId: string, options: { readonly force: boolean }): Promise<DiscardOutcome> {
    return this.#engine.work.discard(this.#workOf(sessionId), options);
  }

  /** Worktrees of its sessions, also of those that are forgotten. */
  async worktrees(): Promise<ListedWorktree[]> {
    const listed = await this.#engine.work.list();
    return listed.filter(({ sessionId }) => {
      const session = this.#engine.find(sessionId);
      return session ? this.#owns(session) : SEES_DISK[this.principal.kind];
    });
  }

  /** A session of its own, or one that only its worktree is left of. */
  #workOf(sessionId: string): string {
    const known = this.#engine.find(sessionId);
    if (known && !this.#owns(known)) throw unknownSession(sessionId);
    if (!known) this.#checkSeesDisk(() => unknownSession(sessionId));
    return sessionId;
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
    this.#engine.policy.checkSensitive();
  }

  /** Whether lists tell where sessions were and what they were about. */
  get seesDetails(): boolean {
    return this.#engine.settings.allowSensitiveSessionDetails;
  }

  /** Whether the folder that the client has open may be where a session works. */
  get followsRoots(): boolean {
    return !this.#engine.settings.denyOptions.includes('cwd');
  }

  #owns(session: Session): boolean {
    return session.owner.id === this.principal.id;
  }

  /** What Claude Code keeps on disk belongs to the user this process runs as. */
  #checkSeesDisk(refusal: () => DomainError): void {
    if (!SEES_DISK[this.principal.kind]) throw refusal();
  }

  // ── people at this client ──────────────────────────────────────────────────────────────────────────────────────

  /** From its first call on; a probe never makes one. Idempotent. */
  connect(): void {
    this.#engine.approvals.connect(this.#connection);
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

  /** Whether a request is no reason for a waiting call to answer. */
  holdsWait(request: OpenRequest): boolean {
    return this.#engine.approvals.holdsWait(request);
  }

  record(entry: Omit<AuditRecord, 'who' | 'principal'>): void {
    this.#engine.audit.record({ ...entry, who: 'caller', principal: this.principal.id });
  }
}

const SEES_DISK: Readonly<Record<Principal['kind'], boolean>> = { local: true, program: true };

function noDiskLists(): DomainError {
  return new DomainError('PERMISSION_DENIED', 'Only the user this server runs as may list the sessions on its disk.');
}
