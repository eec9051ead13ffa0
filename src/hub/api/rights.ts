import type { Settings } from '../../config/load-settings.ts';
import { callersDecide } from '../../engine/requests/approvals.ts';
import { RIGHTS, type Principal } from '../../engine/rules/principal.ts';
import { DomainError } from '../../errors/errors.ts';
import { ROLES, STATES_AT_REST, type Reach, type Role } from '../../schema/enums.ts';
import type { ApiMe, ApiSession } from '../../schema/api.ts';
import type { StoredRequest, StoredSession } from '../../schema/store.ts';
import type { Store } from '../../store/contract.ts';

/*
 * What a principal sees of what is stored, and which controls are worth showing to it. Whether it may change something is
 * decided by the engine's client.
 */

export const EVERY_ROLE: readonly Role[] = ROLES;
/** Roles that read everything. */
export const READERS: readonly Role[] = EVERY_ROLE.filter((role) => RIGHTS[role].read === 'all');
export const DRIVERS: readonly Role[] = EVERY_ROLE.filter((role) => RIGHTS[role].drive !== 'none');
export const STOPPERS: readonly Role[] = EVERY_ROLE.filter((role) => RIGHTS[role].stop !== 'none');
export const DECIDERS: readonly Role[] = EVERY_ROLE.filter((role) => RIGHTS[role].answer !== 'none');

export function readsAll({ role }: Principal): boolean {
  return RIGHTS[role].read === 'all';
}

export function sees(principal: Principal, row: Pick<StoredSession, 'principal'>): boolean {
  return readsAll(principal) || row.principal === principal.id;
}

/** Other principals' sessions do not exist. */
export async function visibleSession(
  store: Pick<Store, 'session'>,
  principal: Principal,
  id: string,
): Promise<StoredSession> {
  const row = await store.session(id);
  if (!row || !sees(principal, row))
    throw new DomainError('SESSION_NOT_FOUND', `There is no session ${id.slice(0, 200)} here that you may see.`);
  return row;
}

export async function visibleRequest(
  store: Pick<Store, 'session' | 'request'>,
  principal: Principal,
  id: string,
): Promise<{ request: StoredRequest; session: StoredSession }> {
  const request = await store.request(id);
  const session = request && (await store.session(request.sessionId));
  if (!request || !session || !sees(principal, session))
    throw new DomainError(
      'PERMISSION_REQUEST_NOT_FOUND',
      `There is no request ${id.slice(0, 200)} here that you may see.`,
    );
  return { request, session };
}

export function mayAnswer(
  principal: Principal,
  session: Pick<StoredSession, 'principal'>,
  approvals: Settings['approvals'],
): boolean {
  const { answer } = RIGHTS[principal.role];
  if (answer === 'person') return true;
  return answer === 'caller' && callersDecide(approvals) && session.principal === principal.id;
}

export function mayOf({ role }: Principal, approvals: Settings['approvals']): ApiMe['may'] {
  const { read, drive, answer } = RIGHTS[role];
  return {
    start: drive !== 'none',
    answer: answer === 'person' ? 'all' : answer === 'caller' && callersDecide(approvals) ? 'own' : 'none',
    readAll: read === 'all',
    readAudit: read === 'all',
    manageTokens: role === 'admin',
  };
}

/** The controls that currently have an effect. */
export function controlsOf(principal: Principal, session: StoredSession): ApiSession['may'] {
  const { drive, stop } = RIGHTS[principal.role];
  const reaches = (right: Reach): boolean => right === 'all' || (right === 'own' && session.principal === principal.id);
  const { tag } = session.state;
  const isResting = (STATES_AT_REST as readonly string[]).includes(tag);
  const isCancelled = tag === 'cancelled';
  const hasWorktree = session.workspace.type === 'worktree';
  const hasCheckpoints = session.options['enableFileCheckpointing'] === true;
  const offered: Record<ApiSession['may'][number], boolean> = {
    message: reaches(drive) && !isCancelled,
    fork: reaches(drive) && !isCancelled && session.options['persistSession'] !== false,
    interrupt: reaches(stop) && !isResting,
    cancel: reaches(stop) && !isCancelled,
    rewind: reaches(drive) && !isCancelled && hasCheckpoints,
    apply: reaches(drive) && hasWorktree,
    discard: reaches(drive) && hasWorktree,
  };
  return (Object.keys(offered) as ApiSession['may']).filter((control) => offered[control]);
}
