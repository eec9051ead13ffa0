import type { Settings } from '../../config/load-settings.ts';
import { DomainError } from '../../errors/errors.ts';
import type { CommandKind } from '../../schema/commands.ts';
import { ROLES, type Reach, type Role } from '../../schema/enums.ts';
import { callersDecide } from '../requests/approvals.ts';
import type { Principal } from './principal.ts';

/** What a role may do with sessions. `own`: only with its own. */
interface Rights {
  readonly read: Exclude<Reach, 'none'>;
  /** Start, reply, fork, rewind, apply, discard. */
  readonly drive: Reach;
  readonly stop: Reach;
  /** `own`: where the operator lets callers decide. `all`: as a person, always. */
  readonly answer: Reach;
}

export type Right = keyof Rights;

type Who = Pick<Principal, 'id' | 'role'>;

const RIGHTS: Readonly<Record<Role, Rights>> = {
  viewer: { read: 'all', drive: 'none', stop: 'none', answer: 'none' },
  caller: { read: 'own', drive: 'own', stop: 'own', answer: 'own' },
  approver: { read: 'all', drive: 'none', stop: 'all', answer: 'all' },
  admin: { read: 'all', drive: 'all', stop: 'all', answer: 'all' },
};

/** What a principal must be allowed to do to have a command carried out. */
const NEEDED: Readonly<Record<CommandKind, Right>> = {
  start: 'drive',
  reply: 'drive',
  respond: 'answer',
  form: 'read',
  examine: 'read',
  interrupt: 'stop',
  rename: 'drive',
  archive: 'drive',
  withdraw: 'drive',
  cancel: 'stop',
  rewind: 'drive',
  diff: 'read',
  apply: 'drive',
  discard: 'drive',
};

const DOING: Readonly<Record<Right, string>> = {
  read: 'read sessions',
  drive: 'change sessions',
  answer: 'answer requests',
  stop: 'stop sessions',
};

/** Whether it may do this with the sessions of `owner`. Those it may not read do not exist for it. */
export function may({ id, role }: Who, right: Right, owner: string): boolean {
  const reach = RIGHTS[role][right];
  return reach === 'all' || (reach === 'own' && owner === id);
}

/** Whether it may do this with every session. */
export function mayWithAll({ role }: Pick<Who, 'role'>, right: Right): boolean {
  return RIGHTS[role][right] === 'all';
}

/** The roles that may do this with some sessions at least. */
export function rolesThatMay(right: Right): readonly Role[] {
  return ROLES.filter((role) => RIGHTS[role][right] !== 'none');
}

/** Its answers are a person's, whatever the operator leaves to callers. */
export function answersAsPerson(principal: Pick<Who, 'role'>): boolean {
  return mayWithAll(principal, 'answer');
}

/** Whether it may answer the requests of a session of `owner` that was started under these rules. */
export function mayAnswer(principal: Who, owner: string, approvals: Settings['approvals']): boolean {
  return answersAsPerson(principal) || (callersDecide(approvals) && may(principal, 'answer', owner));
}

/** Throws if its role does not let it give such a command for a session of `owner`, or for its own. */
export function checkMayCommand(principal: Principal, kind: CommandKind, owner = principal.id): void {
  const { name, role } = principal;
  if (may(principal, NEEDED[kind], owner)) return;
  const what = kind === 'start' ? 'start sessions' : DOING[NEEDED[kind]];
  throw new DomainError('PERMISSION_DENIED', `${name} has the role ${role}, which may not ${what}.`);
}
