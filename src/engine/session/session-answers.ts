/** What becomes of a session's requests: who may still be answered with what, and when Claude Code hears of it. */

import path from 'node:path';
import type { Decision, PermissionAsk, PermissionUpdate } from '../../driver/permission-ask.ts';
import { DomainError, messageOf } from '../../errors/errors.ts';
import type { Answer } from '../../schema/commands.ts';
import type { Stale } from '../../schema/results.ts';
import { callersDecide } from '../requests/approvals.ts';
import { checkConfirmed, examine } from '../requests/call-target.ts';
import { callNote } from '../requests/decided-away.ts';
import type { Grant } from '../requests/grants.ts';
import type { OpenRequest, Source } from '../requests/requests.ts';
import type { Principal } from '../rules/access.ts';
import { liesIn } from '../rules/directories.ts';
import { PATH_FIELDS } from '../rules/tool-rules.ts';
import { sendNote } from './delivery.ts';
import { requestNotFound } from './session-errors.ts';
import type { Session } from './session.ts';

/** A request, what it is about now, and why allowing it needs a second look, if it does. */
interface Examined {
  readonly request: OpenRequest;
  readonly target: string | undefined;
  readonly stale: Stale | undefined;
}

export async function examined({ conversation, services, rules }: Session, requestId: string): Promise<Examined> {
  const request = conversation.requests.find(requestId);
  if (!request) throw requestNotFound(requestId);
  const present = { now: services.clock.wallTime(), staleAfterMs: rules.settings.staleAfter };
  return { request, ...(await examine(request, present)) };
}

/** Throws if the answer allows a request that has to be looked at again first. */
export async function checkFresh(session: Session, requestId: string, answer: Answer): Promise<void> {
  if (answer.decision === 'deny') return;
  const { request, target, stale } = await examined(session, requestId);
  checkConfirmed(stale, answer);
  // Allowed as it is now.
  request.target = target;
}

/** Settles one request with someone's decision. */
export function respond(
  session: Session,
  requestId: string,
  answer: Answer,
  source: Source,
  by: Principal | undefined,
): OpenRequest {
  const { requests, requestRules, decidedAway } = session.conversation;
  const { request, decision } = requestRules.decisionFor(requestId, answer, source);
  // Claude Code confines what it asks for itself, not what an answer puts in its place.
  if (decision.behavior === 'allow')
    checkChangedInput(request.ask.toolName, decision.updatedInput, request.cwd ?? session.directory ?? '', session);
  const note = callNote(request, answer.message, decision, source);
  if (note !== undefined && requests.isDetached(requestId)) decidedAway.note(note);
  session.decide(requestId, decision, source, by);
  if (note !== undefined && session.process.live)
    sendNote(session, note).catch((error: unknown) => session.services.debug(`note on a call: ${messageOf(error)}`));
  if (answer.always === true)
    requestRules.allowAlways(request, decision, { source, ...(by && { by: by.id, byName: by.name }) });
  return request;
}

/** Claude Code acts on a decision at once, so it gets one that a crash cannot undo. Stopping never waits for a store. */
export async function decisionOn(session: Session, ask: PermissionAsk): Promise<Decision> {
  const decision = (await earlierDecision(session, ask)) ?? (await session.conversation.asked(ask));
  if (decision.behavior === 'deny' && decision.interrupt === true) return decision;
  await session.services.gate.passed(ask.withdrawn);
  if (!ask.withdrawn.aborted && !session.hasLeft) return decision;
  return { behavior: 'deny', message: 'The turn was stopped before the decision was stored.', interrupt: true };
}

/** A process that an earlier server started may not have heard what that server had decided and stored. */
async function earlierDecision(
  session: Session,
  { requestId, toolUseId }: PermissionAsk,
): Promise<Decision | undefined> {
  if (!session.launches.isAdopted || session.conversation.requests.has(requestId)) return undefined;
  return session.services.decisionOn?.(allowedBefore(session, toolUseId) ?? requestId);
}

/** The request by which a repeated call was allowed, if this is one. */
function allowedBefore({ conversation }: Session, toolUseId: string): string | undefined {
  for (const { body } of conversation.log.newestFirst())
    if (body.kind === 'repeated' && body.toolUseId === toolUseId) return body.requestId;
  return undefined;
}

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
function checkChangedInput(
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
