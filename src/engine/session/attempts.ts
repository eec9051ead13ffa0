import { randomUUID } from 'node:crypto';
import { DomainError, messageOf } from '../../errors/errors.ts';
import type { Attempt } from '../../schema/commands.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { Place } from './registry.ts';
import type { EngineParts, NewSession, SessionHost } from './session-host.ts';
import type { OpenedWorkspace } from './session-work.ts';
import type { Session } from './session.ts';
import { someOf } from './work-words.ts';

/** The options of one of several attempts: each works in its own worktree. */
export function optionsOfAttempt(options: SessionOptions, { model, effort }: Attempt): SessionOptions {
  if (options.workspace?.branch !== undefined)
    throw new DomainError(
      'INVALID_ARGUMENT',
      'workspace.branch cannot be given with attempts: each attempt gets a branch of its own. Omit it; base is allowed.',
    );
  return {
    ...options,
    workspace: { ...options.workspace, type: 'worktree' },
    ...(model !== undefined && { model }),
    ...(effort !== undefined && { effort }),
  };
}

export interface AttemptStart {
  readonly seed: NewSession;
  readonly prompt: string;
}

/**
 * Starts sessions that try the same task. Slots and worktrees are reserved before any prompt is sent, so that a start
 * that cannot have them all leaves nothing behind.
 */
export function launchAttempts(
  parts: EngineParts,
  host: SessionHost,
  starts: readonly AttemptStart[],
): Promise<Session[]> {
  const [first] = starts;
  if (!first) return Promise.resolve([]);
  const reserved = starts.map((start) => ({ ...start, id: randomUUID(), place: freePlace() }));
  const ids = reserved.map(({ id }) => id);
  const places = reserved.map(({ place }) => place);
  return parts.registry.withPlaces(places, async () => {
    const worktrees = await openWorktrees(parts, ids, first.seed);
    const launched = await Promise.allSettled(
      reserved.map(({ seed, prompt, id, place }) =>
        host.launchIn(place, { ...seed, id, attempts: ids, worktree: worktrees.of }, prompt),
      ),
    );
    const sessions = launched.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const failed = launched.find((one) => one.status === 'rejected');
    if (failed) throw await withdrawn(failed.reason, sessions);
    const changes = await worktrees.uncommitted();
    if (changes.length > 0) {
      const left = `Uncommitted changes in the checkout are in none of the attempts: ${someOf(changes)}.`;
      for (const { warnings } of sessions) warnings.push(left);
    }
    return sessions;
  });
}

function freePlace(): Place {
  return { session: undefined };
}

interface OpenedWorktrees {
  readonly of: (id: string) => Promise<OpenedWorkspace>;
  /** Changes in the checkout, which none of them has. */
  uncommitted(): Promise<readonly string[]>;
}

/** All from the commit that the first one starts at, wherever its base moves meanwhile. */
async function openWorktrees(
  { worktrees, services }: EngineParts,
  [first = '', ...others]: readonly string[],
  { options, rules: { launches } }: Pick<NewSession, 'options' | 'rules'>,
): Promise<OpenedWorktrees> {
  const opened = await worktrees.create(first, options, launches);
  const copies = new Map(others.map((id) => [id, worktrees.fork(id, opened.workspace)]));
  const settled = await Promise.allSettled(copies.values());
  const failed = settled.find((one) => one.status === 'rejected');
  if (!failed)
    return {
      of: async (id) => copies.get(id) ?? opened,
      uncommitted: () => opened.workspace.uncommittedInOrigin().catch(() => []),
    };
  const left = [opened, ...settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))];
  for (const { workspace } of left)
    await workspace.discard().catch((error: unknown) => services.log('warn', messageOf(error)));
  throw failed.reason;
}

/** Ends the attempts that did start; a worktree in which something was changed stays. Returns the error to report. */
async function withdrawn(reason: unknown, sessions: readonly Session[]): Promise<DomainError> {
  const kept = await Promise.all(
    sessions.map(async (session) => {
      await session.cancel('another attempt of the same start failed to start', 'cleanup');
      const workspace = await session.work.workspace();
      try {
        await workspace.discard();
        return [];
      } catch {
        return [`${workspace.cwd} (branch ${workspace.worktree?.branch ?? ''}, session ${session.id})`];
      }
    }),
  );
  const others = sessions.length === 0 ? '' : ' The attempts that had started were cancelled.';
  const left = kept.flat();
  const stay = left.length === 0 ? '' : ` Worktrees with changes stay: ${left.join('; ')}.`;
  const code = reason instanceof DomainError ? reason.code : 'INTERNAL';
  const why = messageOf(reason);
  const end = /[.!?]$/.test(why) ? '' : '.';
  return new DomainError(code, `${why}${end}${others}${stay}`, { cause: reason });
}
