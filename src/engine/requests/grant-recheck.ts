import path from 'node:path';
import type { PermissionUpdate } from '../../driver/permission-ask.ts';
import { DomainError } from '../../errors/errors.ts';
import { callersDecide } from './approvals.ts';
import { liesIn } from '../rules/directories.ts';
import { PATH_FIELDS } from '../rules/tool-rules.ts';
import type { Grant } from './grants.ts';
import type { Session } from '../session/session.ts';

type Checked = Pick<Session, 'rules' | 'options' | 'worktree' | 'standing'>;

/**
 * Whether an earlier permission could still be granted: the hub may have been restarted with narrower rules between the
 * decision and the call. Claude Code confines what it asks for itself, but not input that the decision changed.
 */
export function stillHolds(grant: Grant, session: Checked): boolean {
  const { rules, options } = session;
  const by = grant.source === 'human' ? 'person' : 'caller';
  if (by === 'caller' && !callersDecide(rules.settings.approvals)) return false;
  try {
    rules.policy.grantable((grant.updatedPermissions ?? []) as PermissionUpdate[], options.cwd ?? '', by);
    checkChangedInput(grant.tool, grant.updatedInput, grant.cwd, session);
    return true;
  } catch (error) {
    if (error instanceof DomainError) return false;
    throw error;
  }
}

/** Fields of Claude Code's own tools that name files; those of the file tools come first. */
const FILE_FIELDS = [...PATH_FIELDS, 'local_path', 'file_paths', 'scriptPath'];

/**
 * Throws if changed input is what a standing rule denies, or names a file outside what the operator allows. Claude Code
 * checks neither again.
 */
export function checkChangedInput(
  toolName: string,
  input: Record<string, unknown> | undefined,
  cwd: string,
  session: Checked,
): void {
  if (!input) return;
  const refusal = session.standing?.refusalOf(toolName, input);
  if (refusal?.by === 'rule')
    throw new DomainError('PERMISSION_DENIED', `updatedInput is refused by a standing rule (${refusal.rule.id}).`);
  const files = FILE_FIELDS.flatMap((name) => input[name]);
  const named = toolName === 'Glob' ? [...files, ...globPlaces(input['pattern'])] : files;
  for (const file of named) if (typeof file === 'string') checkPlace(file, cwd, session);
}

/** Where a glob could lead besides the directory that it is searched in. */
function globPlaces(pattern: unknown): string[] {
  if (typeof pattern !== 'string') return [];
  if (/(?:^|[/\\{,])\.\.(?:[/\\},]|$)/.test(pattern)) return [path.sep];
  return pattern.split(/[{},]/).filter((part) => path.isAbsolute(part) || part.startsWith('~'));
}

function checkPlace(named: string, cwd: string, { rules, options, worktree }: Checked): void {
  const { directories } = rules.policy;
  const file = directories.plain(named, 'updatedInput', cwd);
  // The session's directories were admitted with it, including its worktree.
  if (worktree && options.cwd !== undefined && liesIn([directories.realPath(options.cwd)], file)) return;
  directories.checkInside(file, 'updatedInput');
}
