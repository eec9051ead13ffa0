import path from 'node:path';
import type { PermissionUpdate } from '../../driver/permission-ask.ts';
import { DomainError } from '../../errors/errors.ts';
import { callersDecide } from './approvals.ts';
import { liesIn } from '../rules/directories.ts';
import type { Grant } from './grants.ts';
import type { Session } from '../session/session.ts';

/**
 * Whether an earlier permission could still be granted: the hub may have been restarted with narrower rules between the
 * decision and the call. Claude Code confines what it asks for itself, but not input that the decision changed.
 */
export function stillHolds(grant: Grant, session: Pick<Session, 'rules' | 'options' | 'worktree'>): boolean {
  const { rules, options } = session;
  const by = grant.source === 'human' ? 'person' : 'caller';
  if (by === 'caller' && !callersDecide(rules.settings.approvals)) return false;
  try {
    rules.policy.grantable((grant.updatedPermissions ?? []) as PermissionUpdate[], options.cwd ?? '', by);
    checkChangedInput(grant.updatedInput, grant.cwd, session);
    return true;
  } catch (error) {
    if (error instanceof DomainError) return false;
    throw error;
  }
}

/** Throws if changed input names a file outside what the operator allows. */
export function checkChangedInput(
  input: Record<string, unknown> | undefined,
  cwd: string,
  session: Pick<Session, 'rules' | 'options' | 'worktree'>,
): void {
  for (const name of ['file_path', 'notebook_path', 'path']) {
    const named = input?.[name];
    if (typeof named === 'string') checkPlace(path.resolve(cwd, named), session);
  }
}

function checkPlace(file: string, { rules, options, worktree }: Pick<Session, 'rules' | 'options' | 'worktree'>): void {
  // The session's directories were admitted with it, including its worktree.
  if (worktree && options.cwd !== undefined && liesIn([rules.policy.directories.realPath(options.cwd)], file)) return;
  rules.policy.directories.checkInside(file, 'updatedInput');
}
