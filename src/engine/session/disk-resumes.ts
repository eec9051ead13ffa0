import { randomUUID } from 'node:crypto';
import { DomainError } from '../../errors/errors.ts';
import { checkMayResume } from '../rules/resume-token.ts';
import { notFound } from './session-errors.ts';
import type { EngineParts, SessionHost } from './session-host.ts';
import type { OpenedWorkspace } from './session-work.ts';
import { inCheckout, isInside } from './session-worktrees.ts';
import type { Session } from './session.ts';
import { withFreshSystemPrompt, withOverrides, type ReplyRequest } from './start-request.ts';

/** Replies to sessions that this server does not know, but Claude Code has on disk. */
export class DiskResumes {
  readonly #parts: EngineParts;
  readonly #host: SessionHost;
  readonly #underWay = new Map<string, Promise<Session>>();

  constructor(parts: EngineParts, host: SessionHost) {
    this.#parts = parts;
    this.#host = host;
  }

  /**
   * Of concurrent replies, one starts the process. The others wait for it and get `undefined`: the session is known by
   * then.
   */
  async reply(request: ReplyRequest): Promise<Session | undefined> {
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
    const rules = request.by?.rules ?? this.#parts.rules;
    const admitted = await rules.policy.admit(withOverrides(disk.options, request), { ...disk.defaults, ...recorded });
    rules.policy.checkDepth();
    const fork = request.fork === true;
    if (!fork) await this.#host.transcripts.checkNotHeld(sessionId);
    const at = disk.kind === 'token' ? disk.resumeSessionAt : undefined;
    const spent = await services.transcripts.lastCostUsd(sessionId);
    const unwritten = await services.transcripts.hasUnwrittenCost(sessionId);
    return this.#host.launch(
      {
        id: fork ? randomUUID() : sessionId,
        rules,
        options: withFreshSystemPrompt(admitted),
        worktree: worktree && (async (id) => (fork ? worktrees.fork(id, worktree.workspace) : worktree)),
        origin: fork ? { kind: 'fork', of: sessionId, at } : { kind: 'resume', at },
        inherited: { turns: 0, costUsd: spent, ...(unwritten && { costUnknown: true }) },
        client: request.by,
        streamsText: request.streamsText,
      },
      request.prompt,
    );
  }

  async #worktreeOf(sessionId: string, directory: string | undefined): Promise<OpenedWorkspace | undefined> {
    const { settings, worktrees } = this.#parts;
    const isWorktree = directory !== undefined && isInside(settings.worktreesDir, directory);
    return isWorktree ? worktrees.find(sessionId) : undefined;
  }
}
