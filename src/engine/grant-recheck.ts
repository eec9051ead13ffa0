import path from 'node:path';
import type { PermissionUpdate } from '../driver/permission-ask.ts';
import { DomainError } from '../errors/errors.ts';
import { callersDecide } from './approvals.ts';
import { liesIn } from './directories.ts';
import type { Grant } from './grants.ts';
import type { Session } from './session.ts';

/**
 * Whether what was allowed could be allowed now: between the decision and the call the hub may have been started again
 * with narrower rules. What Claude Code itself asks for is confined by Claude Code; what the decision changed is not.
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

/** Throws if what somebody put in place of the input of a call names a file outside of what the operator allows. */
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
  // What the session works in was admitted with it, its worktree too.
  if (worktree && options.cwd !== undefined && liesIn([rules.policy.directories.realPath(options.cwd)], file)) return;
  rules.policy.directories.checkInside(file, 'updatedInput');
}
