import type { Settings } from '../../config/load-settings.ts';
import {
  answersAsPerson,
  may,
  mayAnswer,
  mayWithAll,
  type Principal,
  rolesThatMay,
} from '../../engine/rules/access.ts';
import { DomainError } from '../../errors/errors.ts';
import { ROLES, STATES_AT_REST, type Role } from '../../schema/enums.ts';
import type { ApiMe, ApiSession } from '../../schema/api.ts';
import type { StoredRequest, StoredSession } from '../../schema/store.ts';
import type { Store } from '../../store/contract.ts';

/*
 * What a principal sees of what is stored, and which controls are worth showing to it. What its role allows is decided in
 * `engine/rules/access.ts`.
 */

export const EVERY_ROLE: readonly Role[] = ROLES;
/** Roles that read everything. */
export const READERS: readonly Role[] = EVERY_ROLE.filter((role) => readsAll({ role }));
export const DRIVERS = rolesThatMay('drive');
export const STOPPERS = rolesThatMay('stop');
export const DECIDERS = rolesThatMay('answer');

export function readsAll(principal: Pick<Principal, 'role'>): boolean {
  return mayWithAll(principal, 'read');
}

export function sees(principal: Principal, row: Pick<StoredSession, 'principal'>): boolean {
  return may(principal, 'read', row.principal);
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

export function mayOf(principal: Principal, approvals: Settings['approvals']): ApiMe['may'] {
  return {
    start: may(principal, 'drive', principal.id),
    answer: answersAsPerson(principal) ? 'all' : mayAnswer(principal, principal.id, approvals) ? 'own' : 'none',
    readAll: readsAll(principal),
    readAudit: readsAll(principal),
    manageTokens: principal.role === 'admin',
  };
}

/** The controls that currently have an effect. */
export function controlsOf(principal: Principal, session: StoredSession): ApiSession['may'] {
  const drives = may(principal, 'drive', session.principal);
  const stops = may(principal, 'stop', session.principal);
  const { tag } = session.state;
  const isResting = (STATES_AT_REST as readonly string[]).includes(tag);
  const isCancelled = tag === 'cancelled';
  const hasWorktree = session.workspace.type === 'worktree';
  const hasCheckpoints = session.options['enableFileCheckpointing'] === true;
  const offered: Record<ApiSession['may'][number], boolean> = {
    message: drives && !isCancelled,
    fork: drives && !isCancelled && session.options['persistSession'] !== false,
    interrupt: stops && !isResting,
    cancel: stops && !isCancelled,
    rewind: drives && !isCancelled && hasCheckpoints,
    apply: drives && hasWorktree,
    discard: drives && hasWorktree,
    archive: drives && isResting,
  };
  return (Object.keys(offered) as ApiSession['may']).filter((control) => offered[control]);
}
