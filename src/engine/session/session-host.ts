import { randomUUID } from 'node:crypto';
import type { Settings } from '../../config/load-settings.ts';
import type { LaunchLease, OfferedModel } from '../../driver/agent-process.ts';
import { DomainError, formatError, messageOf } from '../../errors/errors.ts';
import type { Approvals } from '../requests/approvals.ts';
import type { Gate } from '../gate.ts';
import { withReason } from '../process/launch-plan.ts';
import { bringMissing, type OpenConnections } from '../process/missing-values.ts';
import { handOver, handoverFailed, sendPrompt } from './delivery.ts';
import { canMove } from './mobility.ts';
import type { EngineNotice, NoticeStream } from '../notices.ts';
import type { OwnActions } from '../requests/own-actions.ts';
import { LOCAL } from '../rules/access.ts';
import { ruleSettingsOf } from '../rules/rule-intersection.ts';
import type { Place, Registry } from './registry.ts';
import { sandboxInForce } from '../rules/imposed-sandbox.ts';
import type { Rules } from '../rules/rules.ts';
import type { SessionEvent } from '../../schema/events.ts';
import { oneLine } from '../conversation/tool-summary.ts';
import type { EngineServices } from '../ports.ts';
import { outOfContact } from './session-errors.ts';
import { withPartialMessages } from '../conversation/session-setup.ts';
import type { SessionTrail } from './session-trail.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { SessionSeed, SessionServices } from './session-types.ts';
import { eventLimits } from '../conversation/event-log.ts';
import type { OpenedWorkspace } from './session-work.ts';
import { filtersIn, inWorktree, requireWorktree, type SessionWorktrees } from './session-worktrees.ts';
import { Session } from './session.ts';
import { TranscriptAccess } from '../process/transcript-check.ts';

/** How soon a handover is retried when no process slot was free. */
const HANDOVER_RETRY_MS = 2_000;

/** The parts of an engine that its sessions depend on. */
export interface EngineParts {
  readonly settings: Settings;
  readonly services: EngineServices;
  readonly registry: Registry;
  readonly approvals: Approvals;
  readonly trail: SessionTrail;
  readonly gate: Gate;
  readonly stream: NoticeStream<EngineNotice>;
  readonly rules: Rules;
  readonly worktrees: SessionWorktrees;
  readonly connections: OpenConnections;
  /** There is a session to look after. */
  wake(): void;
  isClosing(): boolean;
  /** Carries out what a person has allowed. */
  readonly actions: OwnActions;
}

export type NewSession = Pick<
  SessionSeed,
  'rules' | 'options' | 'origin' | 'inherited' | 'streamsText' | 'client' | 'attempts'
> & {
  id?: string;
  /** How the session gets its worktree, if it gets one. */
  worktree?: ((id: string) => Promise<OpenedWorkspace>) | undefined;
};

/** Creates sessions, launches them and gives them what they need from the engine. */
export class SessionHost {
  readonly transcripts: TranscriptAccess;
  readonly #parts: EngineParts;
  /** Shared by all: hundreds of sessions may be remembered. */
  #services: SessionServices | undefined;
  #tools: string[] | undefined;
  #models: readonly OfferedModel[] = [];

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.transcripts = new TranscriptAccess(parts.services, parts.registry);
    parts.services.standingRules?.subscribe(() => {
      for (const session of parts.registry.all) void this.#imposeRules(session);
    });
  }

  /** The tools that sessions reported at their start, once there was one. */
  get tools(): string[] | undefined {
    return this.#tools;
  }

  /** The models that Claude Code offered when a session last started; none before that. */
  get models(): readonly OfferedModel[] {
    return this.#models;
  }

  create(seed: SessionSeed): Session {
    return new Session(seed, this.#sessionServices());
  }

  register(session: Session): void {
    const { registry, stream } = this.#parts;
    registry.add(session);
    stream.tell({ kind: 'added', ...session.about });
    this.#parts.wake();
  }

  launch(seed: NewSession, prompt: string): Promise<Session> {
    return this.#parts.registry.withPlace((place) => this.launchIn(place, seed, prompt));
  }

  async launchIn(place: Place, seed: NewSession, prompt: string): Promise<Session> {
    const { services, registry, trail } = this.#parts;
    // A spare process already has a different directory and an id.
    const own = seed.worktree && (seed.id ?? randomUUID());
    const worktree = own === undefined ? undefined : await seed.worktree?.(own);
    const options = worktree ? inWorktree(seed.options, worktree.workspace) : seed.options;
    const launched = seed.streamsText === true ? withPartialMessages(options) : options;
    const { launches, settings } = seed.rules;
    const owner = seed.client?.principal ?? LOCAL;
    const { launch } = await launches.plan(launched, worktree?.workspace, owner.id);
    // A spare process has no mirror of its transcript.
    const movable = canMove({ ...seed, options, worktree }, this.#parts.settings.sharedWorkspace);
    const session = this.create({
      ...seed,
      options,
      worktree,
      owner,
      id: own ?? seed.id ?? (movable ? undefined : services.driver.newSessionId?.(launch)) ?? randomUUID(),
      permissionTimeoutMs: options.permissionRequestTimeoutMs ?? settings.permissionTimeoutMs,
      initTimeoutMs: options.sessionInitTimeoutMs ?? settings.startTimeoutMs,
    });
    place.session = session;
    this.register(session);
    trail.started(session, seed.origin, prompt);
    const warnings = services.startWarnings?.(launch.options).catch(() => []);
    const { missing } = launches;
    try {
      await sendPrompt(session, prompt);
      session.warnings.push(
        ...(missing === undefined ? [] : [missing]),
        ...seed.rules.warnings,
        ...((await warnings) ?? []),
        ...(worktree?.workspace.notes ?? []),
      );
      return session;
    } catch (error) {
      const gone = registry.forget(session);
      if (worktree && seed.origin.kind !== 'resume') {
        await gone;
        // Nothing was done in it; if it contains something anyway, it is kept.
        await worktree.workspace.discard().catch((left: unknown) => services.log('warn', messageOf(left)));
      }
      const failure = withReason(error, missing);
      trail.startFailed(session, formatError(failure));
      if (seed.origin.kind !== 'resume') this.#parts.stream.tell({ kind: 'start_failed', ...session.about });
      // Or the caller could list it once more. Why it cannot be stored matters less than why it did not start.
      await services.archive?.stored().catch(() => undefined);
      throw failure;
    }
  }

  /** Throws if its worktree is gone. After a restart only its options tell that it had one. */
  checkNotDiscarded({ options, worktree }: Pick<Session, 'options' | 'worktree'>): void {
    if (worktree ?? options.workspace) requireWorktree(worktree?.cwd ?? options.cwd ?? '');
  }

  /** Throws if the directory it works in is gone, or it is no longer allowed to work there or in another of its own. */
  checkDirectories(session: Pick<Session, 'options' | 'worktree' | 'rules'>): void {
    this.checkNotDiscarded(session);
    const { options, worktree, rules } = session;
    if (!worktree && options.cwd !== undefined) rules.policy.directories.existing(options.cwd, 'cwd');
    for (const directory of options.additionalDirectories ?? [])
      rules.policy.directories.checkInside(directory, 'additionalDirectories');
  }

  #sessionServices(): SessionServices {
    this.#services ??= this.#newServices();
    return this.#services;
  }

  #newServices(): SessionServices {
    const { settings, services, registry, approvals, trail, gate, stream, rules } = this.#parts;
    const { clock, driver, transcripts, archive, log, kept } = services;
    return {
      clock,
      standingRules: services.standingRules,
      eventLimits: eventLimits(settings),
      launch: async (asked, listener) => {
        const session = registry.find(asked.sessionId);
        const { launches } = session?.rules ?? rules;
        const lease = session?.mobility.lent === true ? launchLease(session, services) : undefined;
        lease?.check();
        launches.checkSandbox();
        const { launch, warnings } = await launches.plan(asked.options, session?.worktree, session?.owner.id);
        session?.warnings.push(...warnings);
        if (session) session.sandbox = sandboxInForce(launch.options.sandbox, services.baseEnv);
        if (session?.standing) session.standing.imposed = permissionsIn(launch.options);
        const mirror = session && this.transcripts.mirrorOf(session);
        return driver.launch(
          {
            ...asked,
            ...launch,
            lease,
            ...(mirror && { mirror }),
            ...(session && { rules: ruleSettingsOf(session.rules.settings) }),
          },
          listener,
        );
      },
      ...(kept && {
        adopt: async (run, asked, listener) => {
          const session = registry.find(asked.sessionId);
          const { launches } = session?.rules ?? rules;
          const lease = session?.mobility.lent === true ? launchLease(session, services) : undefined;
          const { launch } = await launches.plan(asked.options, session?.worktree);
          const mirror = session && this.transcripts.mirrorOf(session);
          // What the last hub had read of the transcript and not stored is in its file.
          void mirror?.settled();
          return kept.adopt(run, { ...asked, ...launch, lease, ...(mirror && { mirror }) }, listener);
        },
      }),
      ...(archive && { decisionOn: (requestId) => archive.decisionOn(requestId) }),
      recordedCostUsd: (id) => transcripts.lastCostUsd(id),
      gate,
      ...(archive && { stored: () => archive.stored() }),
      fetchTranscript: (id) => this.transcripts.fetch(id),
      lockTranscript: (id) => this.transcripts.lock(id),
      salvageTranscript: (id) => transcripts.salvage(id),
      isInTranscript: (id, messageId) => transcripts.mentions(id, messageId),
      isWritten: async (id, messageId, since) =>
        (await transcripts.mentions(id, messageId)) || transcripts.isProjectWrittenSince(id, since),
      onOpened: (session, request) => trail.requested(session, request),
      onRequest: (session, request) => approvals.requested(session, request),
      onSettled: (session, request, outcome) => {
        trail.settled(session, request, outcome);
        if (outcome.rule) services.standingRules?.used(outcome.rule.id);
      },
      onRuledOut: (session, use) => {
        trail.ruledOut(session, use);
        if (use.rule) services.standingRules?.used(use.rule.id);
      },
      ...this.#workServices(),
      onRest: (session, turn) => trail.rested(session, turn),
      keepsRequests: archive !== undefined,
      sharedWorkspace: settings.sharedWorkspace,
      onDecided: (session) => gate.afterStored(() => this.handOver(session)),
      onAllowed: (session, underWay, since) => this.#parts.actions.allowed(session, underWay, since),
      onGranted: (_session, grant) => archive?.grantAdded(grant),
      onGrantEnded: (session, grant, end) => {
        trail.grantEnded(session, grant, end);
        archive?.grantClosed(grant, end);
      },
      onTools: (tools, process) => {
        this.#learnTools(tools);
        process?.models().then(
          (models) => (this.#models = models),
          (error: unknown) => log('debug', `models: ${messageOf(error)}`),
        );
      },
      onNotice: (session, notice) => {
        if (stream.listenerCount > 0) stream.tell({ ...notice, ...session.about });
        if (settings.logLevel === 'debug' && notice.kind === 'event') log('debug', eventLine(session.id, notice.event));
      },
      debug: (line) => log('debug', line),
    };
  }

  /** Standing rules that deny or ask also hold in a process that was started before they were made. */
  async #imposeRules(session: Session): Promise<void> {
    const { standing } = session;
    if (!standing || !session.hasProcess) return;
    try {
      const { launch } = await session.rules.launches.plan(session.options, session.worktree, session.owner.id);
      const permissions = permissionsIn(launch.options);
      if (permissions === standing.imposed) return;
      await session.process.control((process) =>
        process.setPermissions(JSON.parse(permissions) as Record<string, unknown>),
      );
      standing.imposed = permissions;
    } catch (error) {
      this.#parts.services.log('warn', `session ${session.id} does not know the changed rules: ${messageOf(error)}`);
    }
  }

  #workServices(): Pick<SessionServices, 'openWorkspace' | 'loadWords' | 'othersWorked'> {
    const { services, registry, rules } = this.#parts;
    const load = services.workspaces;
    if (!load) return {};
    return {
      openWorkspace: async (session) => {
        const { workspaces, ...words } = await load();
        const { id, options } = session;
        const directory = options.cwd ?? rules.policy.directories.own ?? '.';
        const filters = filtersIn(await session.rules.launches.isTrusted(options));
        return { ...words, workspace: await workspaces.openDirectory(id, directory, { filters }) };
      },
      loadWords: load,
      othersWorked: (session, root, since) =>
        registry.all.some((other) => other !== session && other.work.overlaps(root, since)),
    };
  }

  /** Starts a process for a session whose requests were decided while it had none, as soon as a slot is free. */
  handOver(session: Session): void {
    const { registry, services, rules, connections } = this.#parts;
    const start = async (): Promise<void> => {
      const brought = connections.rulesFor(session);
      if (brought) await bringMissing(session, brought, {}, services);
      if (session.missing.length > 0)
        throw new DomainError(
          'UNAVAILABLE',
          `It needs ${session.missing.join(', ')} again, which no client has provided since the hub was restarted. Decisions are kept until a client that has it connects.`,
        );
      // The hub's rules may have been narrowed since it was started.
      rules.checkMayDrive(session);
      this.checkDirectories(session);
      await session.process.closed();
      await registry.withPlace((place) => {
        place.session = session;
        return handOver(session);
      });
    };
    start().catch((error: unknown) => {
      if (error instanceof DomainError && error.code === 'TOO_MANY_SESSIONS' && !this.#parts.isClosing())
        services.clock.after(HANDOVER_RETRY_MS, () => this.handOver(session));
      else handoverFailed(session, error);
    });
  }

  #learnTools(tools: string[]): void {
    // A session with few tools must not hide the others from the list.
    const known = [...new Set([...(this.#tools ?? []), ...tools])];
    if (known.length === this.#tools?.length) return;
    this.#tools = known;
    this.#parts.stream.tell({ kind: 'tools', tools: known });
  }
}

/** What a process is given as the permissions of its settings, as JSON. */
function permissionsIn({ settings }: SessionOptions): string {
  const { permissions = {} } = (typeof settings === 'string' ? JSON.parse(settings) : (settings ?? {})) as {
    permissions?: object;
  };
  return JSON.stringify(permissions);
}

function launchLease({ id }: Session, { lease }: EngineServices): LaunchLease {
  return {
    check: () => {
      if (lease?.held === false) throw outOfContact(id);
    },
  };
}

/** What happened in a session, without what was said: logs are kept and passed around more freely than transcripts. */
function eventLine(sessionId: string, { id, type, body }: SessionEvent): string {
  const calls =
    body.kind === 'message'
      ? body.blocks.map((one) => ('toolName' in one ? `${one.kind} ${one.toolName}` : one.kind))
      : [];
  return oneLine(`session ${sessionId}: event ${String(id)} ${type} ${body.kind} ${calls.join(', ')}`.trimEnd(), 200);
}
