import type { Settings } from '../../config/load-settings.ts';
import { DomainError, messageOf } from '../../errors/errors.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { SessionRecord, ShownRecord } from '../../schema/records.ts';
import type { ConnectedClient } from '../requests/approvals.ts';
import { accessOf, isThisUser } from '../rules/access.ts';
import { eventLimits } from '../conversation/event-log.ts';
import { canMove } from '../session/mobility.ts';
import { isWithin, strictest, type RuleSettings } from '../rules/rule-intersection.ts';
import type { RemoteSession } from './remote-session.ts';
import { RemoteSessions } from './remote-sessions.ts';
import { Rules } from '../rules/rules.ts';
import type { AdoptableRun, RecalledSession, SessionArchive } from '../ports.ts';
import type { EngineParts, SessionHost } from '../session/session-host.ts';
import type { RestoredSession } from '../session/session-types.ts';
import type { Session } from '../session/session.ts';

/** Where a session is and whose it is. `stored`: this process may load it. */
export type Located =
  | { readonly kind: 'here'; readonly owner: string; readonly session: Session }
  | { readonly kind: 'stored'; readonly owner: string }
  | { readonly kind: 'elsewhere'; readonly owner: string; readonly hub: string };

export interface SessionList {
  readonly sessions: readonly ShownRecord[];
  /** Ids of sessions that are stored, but cannot be read. */
  readonly unreadable: readonly string[];
}

/** Finds sessions wherever they are, and loads those that exist only in the store. */
export class SessionRecall {
  readonly #parts: EngineParts;
  readonly #host: SessionHost;
  readonly #underWay = new Map<string, Promise<Session | undefined>>();

  readonly #remote: RemoteSessions | undefined;

  constructor(parts: EngineParts, host: SessionHost) {
    this.#parts = parts;
    this.#host = host;
    const { settings, services, approvals } = parts;
    const { clock, others, log } = services;
    this.#remote =
      others &&
      new RemoteSessions({
        clock,
        others,
        approvals,
        eventLimits: eventLimits(settings),
        settingsFor: (record) => this.#settingsFor(record),
        canRun: (record) => this.#canRun(record),
        debug: (line) => log('debug', line),
      });
  }

  /** Those that other hubs run and that were asked for here. */
  get elsewhere(): RemoteSession[] {
    return this.#remote?.all ?? [];
  }

  /** One that another hub runs, as it was at the last look. */
  peekElsewhere(id: string): RemoteSession | undefined {
    return this.#remote?.peek(id);
  }

  close(): void {
    this.#remote?.close();
  }

  /** One that another hub runs, as it is stored now. */
  async findElsewhere(id: string): Promise<RemoteSession | undefined> {
    return this.#parts.registry.find(id) ? undefined : this.#remote?.find(id);
  }

  /** Where a session is, before anything of it is loaded. */
  async locate(id: string): Promise<Located | undefined> {
    const session = this.#parts.registry.find(id);
    if (session) return { kind: 'here', owner: session.owner.id, session };
    const { archive, others } = this.#parts.services;
    if (!archive) return undefined;
    if (!others) {
      const owner = await archive.ownerOf(id);
      return owner === undefined ? undefined : { kind: 'stored', owner };
    }
    const found = await others.locate(id, (record) => this.#canRun(record));
    if (found?.hub === undefined) return found && { kind: 'stored', owner: found.owner };
    return { kind: 'elsewhere', owner: found.owner, hub: found.hub };
  }

  #canRun(record: SessionRecord): Promise<boolean> {
    return this.checkCanRun(record).then(
      () => true,
      () => false,
    );
  }

  /** The session, loaded from the store if necessary. */
  async recall(id: string): Promise<Session | undefined> {
    const known = this.#parts.registry.find(id);
    const { archive } = this.#parts.services;
    if (known || !archive) return known;
    const underWay = this.#underWay.get(id);
    if (underWay) return underWay;
    const recalling = this.#recall(id, archive).finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, recalling);
    return recalling;
  }

  async #recall(id: string, archive: SessionArchive): Promise<Session | undefined> {
    const { registry, approvals } = this.#parts;
    await registry.departed(id);
    const recalled = await archive.recall(id);
    if (!recalled) return undefined;
    const session = await this.#revived(recalled);
    this.#host.register(session);
    await this.#takeUp(session, recalled);
    for (const request of session.requests) approvals.requested(session, request);
    return session;
  }

  /** With its process, if an earlier server started one and it may go on. */
  async #takeUp(session: Session, { record, ranElsewhere }: RecalledSession): Promise<void> {
    const { kept, log } = this.#parts.services;
    const run = kept?.find(session.id);
    if (!kept || !run) return session.takeUp();
    const { position } = record.continuity;
    const after = position?.run === run.run ? position.line : 0;
    const refusal = ranElsewhere ? '' : this.#refusal(session, run);
    if (refusal === undefined) {
      try {
        return await session.continueWith({ ...run, after }, record);
      } catch (error) {
        log('error', `session ${session.id} lost its process: ${messageOf(error)}`);
      }
    } else if (refusal !== '') {
      log('warn', `the process of session ${session.id} is ended: ${refusal}`);
      this.#parts.trail.processRefused(session, refusal);
    }
    await kept.end(run);
    await session.takeUp();
  }

  /** Why a process is not continued; empty if there is nothing to say about it. */
  #refusal(session: Session, { rules, hasEnded, deaths }: AdoptableRun): string | undefined {
    if (session.state === 'cancelled' || (session.atRest && hasEnded)) return '';
    if (deaths > 1) return `${String(deaths)} hubs died on the same line of its output, which is set aside`;
    // What Claude Code was told when it started cannot be taken back.
    if (!isWithin(rules, session.rules.settings)) return 'it was started under wider rules than those of this hub';
    return undefined;
  }

  /** Those that are only in the store. */
  async list(principal: string | undefined, limit: number): Promise<SessionList> {
    const { services, registry } = this.#parts;
    const stored = await services.archive?.list({ limit, ...(principal !== undefined && { principal }) });
    if (!stored) return { sessions: [], unreadable: [] };
    return { ...stored, sessions: stored.sessions.filter(({ id }) => !registry.find(id)) };
  }

  /** Throws if a session of another hub could not be continued here, or if this hub's rules forbid it. */
  async checkCanRun(record: SessionRecord): Promise<void> {
    const { settings, rules: own } = this.#parts;
    const { id, workspace } = record;
    const rules = await this.#rulesFor(record);
    const options = withinCeilings(record.options, rules.settings);
    const worktree = workspace.type === 'worktree' ? await this.#parts.worktrees.find(id) : undefined;
    const session = { id, rules, options, worktree: worktree?.workspace };
    own.checkMayDrive(session);
    this.#host.checkDirectories(session);
    const { movable } = record.continuity;
    if (!canMove({ ...session, restored: { movable } }, settings.sharedWorkspace))
      throw new DomainError('UNAVAILABLE', `Session ${id} works in a directory that is not shared with this hub.`);
  }

  /** Delivers decisions on sessions that lacked their variables, if this connection of their owner has them. */
  async handOverWaiting({ principal, rules }: ConnectedClient): Promise<void> {
    const { services, registry, connections } = this.#parts;
    if (!services.archive || !rules) return;
    const own = registry.all.filter(
      ({ owner, conversation }) => owner.id === principal.id && conversation.decidedAway.lines.length > 0,
    );
    const stored = await services.archive.list({ principal: principal.id, limit: MAX_CANDIDATES });
    const forgotten = stored.sessions.filter(
      ({ id, continuity }) => !registry.find(id) && continuity.handover.length > 0,
    );
    await Promise.all(forgotten.map(({ id }) => this.recall(id).catch(() => undefined)));
    // A session that runs on another hub is that hub's to continue.
    const recalled = forgotten.flatMap(({ id }) => registry.find(id) ?? []);
    for (const session of [...own, ...recalled])
      if (session.atRest && connections.rulesFor(session)) this.#host.handOver(session);
  }

  async #revived(recalled: RecalledSession): Promise<Session> {
    const { record } = recalled;
    const rules = await this.#rulesFor(record);
    const worktree = record.workspace.type === 'worktree' ? await this.#parts.worktrees.find(record.id) : undefined;
    return this.#host.create({
      id: record.id,
      owner: record.owner,
      rules,
      options: withinCeilings(record.options, rules.settings),
      origin: record.continuity.origin ?? { kind: 'resume' },
      permissionTimeoutMs: record.continuity.permissionTimeoutMs,
      initTimeoutMs: record.continuity.startTimeoutMs,
      streamsText: record.continuity.streamsText,
      worktree,
      attempts: record.attempts,
      restored: restoredSession(recalled, this.#parts.services.baseEnv),
    });
  }

  async #rulesFor(record: SessionRecord): Promise<Rules> {
    const { services, rules: operator } = this.#parts;
    // All others named theirs, or used that of a connection that is gone.
    const cwd = isThisUser(record.owner) ? operator.policy.directories.own : undefined;
    const access = await accessOf(record.owner, this.#parts.worktrees);
    return new Rules({ settings: this.#settingsFor(record), cwd, access }, services);
  }

  #settingsFor({ continuity }: SessionRecord): Settings {
    const { settings: own } = this.#parts;
    return { ...own, ...presentRules(own, continuity.rules) };
  }
}

const MAX_CANDIDATES = 100;

/** What an earlier process left of it. `env`: what this process could provide. */
function restoredSession(recalled: RecalledSession, env: NodeJS.ProcessEnv): RestoredSession {
  const { record, events, lastEventId, droppedThrough, requests, messages, grants } = recalled;
  const { totals, lastMessageAt, model, permissionMode, tools, continuity } = record;
  return {
    state: continuity.reporting ?? record.state,
    lacksReport: continuity.reporting !== undefined,
    result: record.turn,
    cancellation: record.cancellation,
    reports: { events, lastEventId, droppedThrough, lastMessageAt, totals, model, permissionMode, tools },
    createdAt: record.createdAt,
    lastActiveAt: record.lastActiveAt,
    archivedAt: record.archivedAt,
    topic: record.title,
    requests,
    grants,
    handover: continuity.handover,
    actionUnderWay: continuity.actionUnderWay,
    lastAction: record.lastAction,
    undelivered: messages,
    hasAnswered: continuity.hasAnswered,
    work: record.work,
    movable: continuity.movable,
    arrivedAt: continuity.arrivedAt,
    missing: [...continuity.secretNames, ...continuity.environment.filter((name) => env[name] === undefined)],
  };
}

/** Its original rules and the current ones: the operator may have added limits since. */
export function presentRules(own: Settings, stored: Partial<Settings>): RuleSettings {
  // Unset values are not stored.
  return strictest(own, { ...own, allowedDirs: undefined, maxTurns: undefined, maxBudgetUsd: undefined, ...stored });
}

function withinCeilings(options: SessionOptions, { maxTurns, maxBudgetUsd }: Settings): SessionOptions {
  return {
    ...options,
    ...(maxTurns !== undefined && { maxTurns: Math.min(maxTurns, options.maxTurns ?? maxTurns) }),
    ...(maxBudgetUsd !== undefined && { maxBudgetUsd: Math.min(maxBudgetUsd, options.maxBudgetUsd ?? maxBudgetUsd) }),
  };
}
