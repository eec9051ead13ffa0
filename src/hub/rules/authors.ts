import { LOCAL } from '../../engine/rules/access.ts';
import type { Role } from '../../schema/enums.ts';
import type { StandingRule } from '../../schema/standing-rules.ts';
import type { Store } from '../../store/contract.ts';

/** The person at this machine: in the dashboard, and over the hub's socket at an interactive terminal. */
export const PERSON = 'person';
const PEOPLE_HERE: ReadonlySet<string> = new Set([PERSON, LOCAL.id]);

type Scope = Pick<StandingRule, 'directory'>;

/** An approver makes rules for a repository; wider ones are an admin's. */
export function mayDecideOn(role: Role, { directory }: Scope): boolean {
  return role === 'admin' || (role === 'approver' && directory !== undefined);
}

/**
 * Whether the author of a rule still has the role for it. An OAuth subject has none that could be looked up: when it comes
 * with a lesser one, its rules are disabled.
 */
export async function authorHasRole(
  rule: Pick<StandingRule, 'createdBy' | 'directory'>,
  tokens: Pick<Store, 'token'>,
  now: number,
): Promise<boolean> {
  const { createdBy } = rule;
  if (PEOPLE_HERE.has(createdBy) || createdBy.startsWith('oauth:')) return true;
  if (!createdBy.startsWith('token:')) return false;
  const token = await tokens.token(createdBy.slice('token:'.length));
  if (!token || token.revokedAt !== undefined || (token.expiresAt ?? Infinity) <= now) return false;
  return mayDecideOn(token.role, rule);
}
