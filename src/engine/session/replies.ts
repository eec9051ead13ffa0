import { randomUUID } from 'node:crypto';
import { DomainError } from '../../errors/errors.ts';
import type { CommandOf } from '../../schema/commands.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import { bringMissing } from '../process/missing-values.ts';
import type { ConnectedClient } from '../requests/approvals.ts';
import { checkMayResume } from '../rules/access.ts';
import type { Rules } from '../rules/rules.ts';
import { sendPrompt } from './delivery.ts';
import { busy, notFound } from './session-errors.ts';
import type { EngineParts, SessionHost } from './session-host.ts';
import type { OpenedWorkspace } from './session-work.ts';
import { inCheckout, isInside } from './session-worktrees.ts';
import type { Session } from './session.ts';

/** A reply, and who asks for it: the owner of a session that it creates, a fork or one from disk. */
export interface ReplyRequest extends Omit<CommandOf<'reply'>, 'kind'> {
  by?: ConnectedClient | undefined;
}

/** Messages to sessions: known ones go on or are forked, others are resumed from what Claude Code has on disk. */
export class Replies {
  readonly #parts: EngineParts;
  readonly #host: SessionHost;
  readonly #underWay = new Map<string, Promise<Session>>();

  constructor(parts: EngineParts, host: SessionHost) {
    this.#parts = parts;
    this.#host = host;
  }

  /** Undefined if the session has come to be known in the meantime, and has to be asked again. */
  async reply(request: ReplyRequest): Promise<Session | undefined> {
    // Includes what only a resume from disk would use: options a caller may not set are refused, not ignored.
    const rules = this.#rulesOf(request.by);
    rules.policy.check(withOverrides(request.disk.options, request));
    const known = this.#parts.registry.find(request.sessionId);
    if (!known) return this.#fromDisk(request);
    // Before its rights: those of a session without its worktree say nothing about what is wrong.
    if (known.atRest && known.state !== 'cancelled') this.#host.checkNotDiscarded(known);
    rules.checkMayDrive(known);
    known.rules.policy.check(withOverrides({}, request));
    await known.process.exitReported();
    if (known.state === 'cancelled')
      throw new DomainError('CANCELLED', `Session ${known.id} was cancelled; start a new one.`);
    if (Object.keys(request.disk.options).length > 0)
      known.warnings.push('diskResumeConfig was ignored: the session is in memory and keeps its options.');
    if (request.fork === true) return this.#fork(known, request);
    checkFree(known, request);
    await known.oneReplyAtATime(async () => {
      // Another reply may have been faster.
      checkFree(known, request);
      await this.#continue(known, request);
    });
    return known;
  }

  async #continue(session: Session, request: ReplyRequest): Promise<void> {
    await session.switchTo({
      model: request.model,
      permissionMode: request.permissionMode,
      permissionTimeoutMs: request.permissionRequestTimeoutMs,
    });
    // Another reply may have been faster.
    checkFree(session, request);
    if (request.sessionInitTimeoutMs !== undefined) session.launches.setInitTimeout(request.sessionInitTimeoutMs);
    if (session.hasProcess || !session.atRest) {
      await sendPrompt(session, request.prompt);
      return;
    }
    if (!session.persists) {
      throw new DomainError(
        'SESSION_NOT_FOUND',
        'The process of this session has ended and it has no transcript (persistSession:false).',
      );
    }
    this.#rulesOf(request.by).policy.checkDepth();
    this.#host.checkDirectories(session);
    await bringMissing(session, this.#rulesOf(request.by), request.disk.options, this.#parts.services);
    // A closing process is still registered, and would look like someone else's.
    await session.process.closed();
    await this.#host.transcripts.checkNotHeld(session.id);
    await session.launches.checkAffordable(session.options, session.mobility.portable);
    await this.#parts.registry.withPlace((place) => {
      place.session = session;
      return sendPrompt(session, request.prompt);
    });
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
    const rules = parent.rules.narrowedTo(this.#rulesOf(request.by), this.#parts.services);
    this.#host.checkDirectories({ options, worktree: original, rules });
    return this.#host.launch(
      {
        id: randomUUID(),
        rules,
        options,
        worktree: original && ((id) => this.#parts.worktrees.fork(id, original)),
        origin: { kind: 'fork', of: parent.id, through: parent.conversation.log.nextId - 1 },
        inherited: parent.conversation.totals.session,
        client: request.by,
        streamsText: request.streamsText ?? this.#parts.services.archive !== undefined,
      },
      request.prompt,
    );
  }

  /**
   * Of concurrent replies, one starts the process. The others wait for it and get `undefined`: the session is known by
   * then.
   */
  async #fromDisk(request: ReplyRequest): Promise<Session | undefined> {
    const { sessionId, fork = false } = request;
    if (fork) return this.#resume(request);
    const underWay = this.#underWay.get(sessionId);
    if (underWay) {
      await underWay.catch(() => undefined);
      return undefined;
    }
    const session = this.#resume(request);
    this.#underWay.set(sessionId, session);
    try {
      return await session;
    } finally {
      this.#underWay.delete(sessionId);
    }
  }

  async #resume(request: ReplyRequest): Promise<Session> {
    const { settings, services, registry, worktrees } = this.#parts;
    const { disk, sessionId } = request;
    if (disk.kind === 'token') checkMayResume(settings, sessionId, disk.token);
    await registry.departed(sessionId);
    const found = await services.transcripts.find(sessionId);
    if (!found) throw notFound(sessionId, 'Claude Code has no session with this id on this machine.');
    if (disk.options.cwd === undefined && found.cwd === undefined)
      throw new DomainError(
        'INVALID_ARGUMENT',
        'The transcript does not contain the session’s directory: pass cwd if the tool accepts it, or start a new session there.',
      );
    const worktree = disk.options.cwd === undefined ? await this.#worktreeOf(sessionId, found.cwd) : undefined;
    // It is the checkout that must be allowed; the worktree belongs to the session.
    const directory = worktree ? inCheckout(worktree.workspace) : found.cwd;
    const recorded = directory === undefined ? {} : { cwd: directory };
    const rules = this.#rulesOf(request.by);
    const admitted = await rules.policy.admit(withOverrides(disk.options, request), { ...disk.defaults, ...recorded });
    rules.policy.checkDepth();
    const fork = request.fork === true;
    if (!fork) await this.#host.transcripts.checkNotHeld(sessionId);
    const at = disk.kind === 'token' ? disk.resumeSessionAt : undefined;
    const spent = await services.transcripts.lastCostUsd(sessionId);
    const { turns, hasUnwrittenCost } = await services.transcripts.tally(sessionId);
    return this.#host.launch(
      {
        id: fork ? randomUUID() : sessionId,
        rules,
        options: withFreshSystemPrompt(admitted),
        worktree: worktree && (async (id) => (fork ? worktrees.fork(id, worktree.workspace) : worktree)),
        origin: fork ? { kind: 'fork', of: sessionId, at } : { kind: 'resume', at },
        inherited: { turns, costUsd: spent, ...(hasUnwrittenCost && { costUnknown: true }) },
        client: request.by,
        streamsText: request.streamsText ?? this.#parts.services.archive !== undefined,
      },
      request.prompt,
    );
  }

  async #worktreeOf(sessionId: string, directory: string | undefined): Promise<OpenedWorkspace | undefined> {
    const { settings, worktrees } = this.#parts;
    const isWorktree = directory !== undefined && isInside(settings.worktreesDir, directory);
    return isWorktree ? worktrees.find(sessionId) : undefined;
  }

  #rulesOf(client: ConnectedClient | undefined): Rules {
    return client?.rules ?? this.#parts.rules;
  }
}

/**
 * One that waits, without a process, for answers or to be told about them: a message must not start another process.
 */
function checkFree(session: Session, { whenBusy }: ReplyRequest): void {
  const takesMore = (session.hasProcess || session.process.starting) && !session.conversation.awaitsAction;
  if (session.atRest || (whenBusy === 'queue' && takesMore)) return;
  throw busy(session, takesMore ? ', or queue the message' : '');
}

/** The options with the reply's values replacing theirs. */
export function withOverrides(options: SessionOptions, request: ReplyRequest): SessionOptions {
  const { model, permissionMode, permissionRequestTimeoutMs, sessionInitTimeoutMs } = request;
  return {
    ...options,
    ...(model !== undefined && { model }),
    ...(permissionMode !== undefined && { permissionMode }),
    ...(permissionRequestTimeoutMs !== undefined && { permissionRequestTimeoutMs }),
    ...(sessionInitTimeoutMs !== undefined && { sessionInitTimeoutMs }),
  };
}

/**
 * Claude Code records the system prompt with the first message and sends that record from then on, whatever it is
 * given. A prompt given for an existing session takes effect only with `snapshot: false`, unless the caller sets
 * `snapshot` itself.
 */
export function withFreshSystemPrompt({ systemPrompt, ...options }: SessionOptions): SessionOptions {
  if (systemPrompt === undefined) return options;
  const fresh =
    typeof systemPrompt === 'string'
      ? { type: 'custom' as const, prompt: systemPrompt, snapshot: false }
      : { snapshot: false, ...systemPrompt };
  return { ...options, systemPrompt: fresh };
}
