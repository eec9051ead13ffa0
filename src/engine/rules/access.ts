import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Settings } from '../../config/load-settings.ts';
import { DomainError } from '../../errors/errors.ts';
import type { CommandKind } from '../../schema/commands.ts';
import { type PrincipalKind, type Reach, type Role, ROLES } from '../../schema/enums.ts';
import { callersDecide } from '../requests/approvals.ts';
import type { SessionWorktrees } from '../session/session-worktrees.ts';
import type { ClosedPlaces } from './directories.ts';
import { notFound } from '../session/session-errors.ts';

/** An actor on the engine. A session belongs to the principal that started it. */
export interface Principal {
  readonly id: string;
  readonly name: string;
  readonly kind: PrincipalKind;
  readonly role: Role;
  /** A person uses it, so its form answers are a person's. */
  readonly attended: boolean;
}

/** The one client over stdio, and a program that uses the engine directly. */
export const LOCAL: Principal = { id: 'local', name: 'local', kind: 'local', role: 'caller', attended: true };

/** Whether it acts for the user this process runs as, whose disk and working directory these are. */
export function isThisUser({ kind }: Pick<Principal, 'kind'>): boolean {
  return kind === 'local' || kind === 'program';
}

const NESTED_PREFIX = 'nested:';

/** A client that runs inside this session. */
export function nestedIn(session: string): Principal {
  const id = `${NESTED_PREFIX}${session}`;
  return { id, name: `inside ${session}`, kind: 'nested', role: 'caller', attended: false };
}

/** The session that a principal runs inside. */
function sessionAround({ id, kind }: Pick<Principal, 'id' | 'kind'>): string | undefined {
  return kind === 'nested' ? id.slice(NESTED_PREFIX.length) : undefined;
}

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

/** Proof that the holder was given this session: the HMAC-SHA256 of its id under the operator's secret. */
export function resumeToken(secret: string, sessionId: string): string {
  return createHmac('sha256', secret).update(sessionId).digest('hex');
}

function isResumeToken(secret: string, sessionId: string, token: string): boolean {
  const expected = Buffer.from(resumeToken(secret, sessionId));
  const given = Buffer.from(token);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** Whether a caller may resume a session that exists only on disk; if not, what to set. */
export function checkMayResume(settings: Settings, sessionId: string, token: string | undefined): void {
  const { allowDiskResume, resumeSecret } = settings;
  if (!allowDiskResume) {
    throw notFound(
      sessionId,
      'It is not in this server’s memory. The operator can allow resuming from disk with CLAUDE_CODE_MCP_ALLOW_DISK_RESUME=1 and CLAUDE_CODE_MCP_RESUME_SECRET.',
    );
  }
  if (resumeSecret === undefined) {
    throw new DomainError(
      'PERMISSION_DENIED',
      'Resuming from disk requires CLAUDE_CODE_MCP_RESUME_SECRET to be set where the server is started.',
    );
  }
  if (token === undefined) {
    throw new DomainError(
      'PERMISSION_DENIED',
      'Resuming from disk requires the resumeToken returned when the session was started.',
    );
  }
  if (!isResumeToken(resumeSecret, sessionId, token)) {
    throw new DomainError('PERMISSION_DENIED', 'This resumeToken does not belong to this session.');
  }
}
