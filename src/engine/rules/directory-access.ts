import type { ClosedPlaces } from './directories.ts';
import { isThisUser, sessionAround, type Principal } from './principal.ts';
import type { SessionWorktrees } from '../session/session-worktrees.ts';

/**
 * On whose behalf sessions are started. Everyone but the user this process runs as may not work where private files
 * are: the server's, Claude Code's, those of other processes. `except`: open to them nevertheless.
 */
export type DirectoryAccess =
  { readonly of: 'user' } | { readonly of: 'others'; readonly except?: readonly string[] | undefined };

export const USER_ACCESS: DirectoryAccess = { of: 'user' };
export const OTHERS_ACCESS: DirectoryAccess = { of: 'others' };

/** Where a system shows the environment and memory of every process, and its devices. */
const SYSTEM_PLACES = ['/proc', '/sys', '/dev'];

/** `rulesFile`: whoever can write it decides what sessions may do. */
export function closedPlaces(
  access: DirectoryAccess,
  privatePlaces: readonly string[],
  rulesFile?: string,
): ClosedPlaces {
  const rules = rulesFile === undefined ? [] : [rulesFile];
  if (access.of === 'user') return rulesFile === undefined ? {} : { around: rules };
  return { around: [...privatePlaces, ...rules, ...SYSTEM_PLACES], except: access.except };
}

/** A client inside a session may work in the worktree of that session. */
export async function accessOf(
  principal: Principal,
  worktrees: Pick<SessionWorktrees, 'find'>,
): Promise<DirectoryAccess> {
  if (isThisUser(principal)) return USER_ACCESS;
  const around = sessionAround(principal);
  const opened = around === undefined ? undefined : await worktrees.find(around);
  const worktree = opened?.workspace.worktree;
  return worktree ? { of: 'others', except: [worktree.path] } : OTHERS_ACCESS;
}
