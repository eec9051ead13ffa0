import { z } from 'zod';
import { describeRewind } from '../../../engine/rewind.ts';
import type { OpenRequest } from '../../../engine/requests.ts';
import type { Session } from '../../../engine/session.ts';
import { DomainError } from '../../../errors/errors.ts';
import { defineTool, type ToolContext } from '../../define-tool.ts';
import type { ListedWorktree } from '../../../engine/session-worktrees.ts';
import { unlisted } from '../../list-schema.ts';
import { compactStatus, type SessionShown, type SessionsAnswer } from '../../../schema/results.ts';
import { DEFAULT_WAIT_MS, waitForSession } from '../../wait.ts';
import { diskSessionView, sessionView } from '../../views/session-view.ts';
import { appliedMessage, discardedMessage, worktreeView } from '../../views/workspace-view.ts';

const DIFF_BYTES = 24_000;

const input = z.strictObject({
  action: z
    .enum(['list', 'get', 'cancel', 'interrupt', 'rewind', 'diff', 'apply', 'discard'])
    .describe(
      'interrupt: stop its turn, it accepts replies; cancel: end it permanently; rewind: restore files (needs enableFileCheckpointing); diff: its work; for a worktree: apply to its base, discard',
    ),
  sessionId: z.string().min(1).describe('for all but list').optional(),
  includeSensitive: z.boolean().describe('also cwd, systemPrompt, agents').optional(),
  scope: z.enum(['server', 'disk']).describe('for list; disk: all on this machine').optional(),
  projectDirectory: unlisted(z.string().min(1).optional()),
  limit: unlisted(z.int().positive().max(10_000).optional()),
  offset: z.int().min(0).describe('for list or diff').optional(),
  toUserMessage: z.string().min(1).describe('uuid to rewind to').optional(),
  maxBytes: unlisted(z.int().min(1).max(1_000_000).optional()),
  mode: z.enum(['merge', 'squash', 'patch']).describe('for apply; default merge').optional(),
  message: unlisted(z.string().min(1).max(10_000).optional()),
  force: z.boolean().describe('discard unmerged work').optional(),
  dryRun: z.boolean().describe('for rewind; default true').optional(),
});

type Input = z.infer<typeof input>;

export const claudeCodeSession = defineTool({
  name: 'claude_code_session',
  title: 'Manage sessions and their work',
  describe: () => 'List the sessions of this server or this machine; inspect, stop or rewind one; apply its work.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
  input: () => input,
  output: () =>
    z.looseObject({
      sessions: z.array(z.looseObject({ sessionId: z.string() })),
      message: z.string().optional(),
      diff: z.looseObject({ diff: z.string() }).optional(),
      status: compactStatus.optional(),
      isError: z.boolean().optional(),
      error: z.string().optional(),
    }),
  failure: (error) => ({ sessions: [], isError: true, error, message: error }),
  async run(args, context): Promise<SessionsAnswer> {
    if (args.includeSensitive === true) context.engine.checkSensitive();
    switch (args.action) {
      case 'list':
        return list(args, context);
      case 'get':
        return { sessions: await known(args, context) };
      case 'cancel': {
        const cancelled = await context.engine.cancel(idOf(args));
        return {
          sessions: [await view(args, context)],
          message: cancelled ? 'Cancelled.' : 'It was already cancelled.',
        };
      }
      case 'interrupt': {
        const interrupted = await context.engine.interrupt(idOf(args));
        return {
          sessions: [await view(args, context)],
          message: interrupted ? 'Interrupted; it accepts replies.' : 'Nothing was running.',
        };
      }
      case 'rewind':
        return rewind(args, context);
      case 'diff': {
        const page = { maxBytes: args.maxBytes ?? DIFF_BYTES, offset: args.offset ?? 0 };
        await context.turn?.take(context.signal);
        const diff = await context.engine.diff(idOf(args), page);
        return { sessions: await known(args, context), diff };
      }
      case 'apply': {
        const options = { mode: args.mode ?? 'merge', message: args.message };
        return decided(args, context, () => context.engine.apply(idOf(args), options), appliedMessage);
      }
      case 'discard': {
        const options = { force: args.force === true };
        return decided(args, context, () => context.engine.discard(idOf(args), options), discardedMessage);
      }
    }
  },
});

async function list(args: Input, { engine }: ToolContext): Promise<SessionsAnswer> {
  const sensitive = args.includeSensitive === true;
  if (args.scope !== 'disk') {
    const worktrees = await engine.worktrees();
    const { sessions: listed, unreadable } = await engine.listSessions();
    const others = worktrees.filter(({ sessionId }) => !listed.some(({ id }) => id === sessionId));
    return {
      sessions: listed.map((session) => viewWith(session, worktrees, sensitive)),
      // Their sessions are gone; their work is not.
      ...(others.length > 0 && {
        worktrees: others.map((one) => ({ sessionId: one.sessionId, ...worktreeView(one, sensitive) })),
      }),
      ...(unreadable.length > 0 && {
        message: `Left out, since what is stored of them cannot be read: ${unreadable.join(', ')}. Nothing was deleted; the hub's log says more.`,
      }),
    };
  }
  const found = await engine.listDisk({
    projectDirectory: args.projectDirectory,
    limit: args.limit ?? 50,
    offset: args.offset ?? 0,
  });
  const { seesDetails } = engine;
  return { sessions: found.map((session) => diskSessionView(session, engine.sessions, seesDetails)) };
}

async function rewind(args: Input, context: ToolContext): Promise<SessionsAnswer> {
  const session = await context.engine.session(idOf(args));
  if (args.toUserMessage === undefined)
    throw new DomainError(
      'INVALID_ARGUMENT',
      'rewind requires toUserMessage, the uuid of a message: see user_message_uuids in the result events of a poll with responseMode "full".',
    );
  const again = context.forms?.session && session.lastRewind;
  const rewinding = again ?? context.engine.rewind(session.id, args.toUserMessage, args.dryRun ?? true);
  await settledOrAsked(rewinding, session);
  if (ownRequest(session)) await waitForSession(session, DEFAULT_WAIT_MS, context);
  const open = ownRequest(session);
  const message = open
    ? `A person is being asked (request ${open.id}); the files are restored when they allow it. Wait for that with claude_code_check.`
    : describeRewind(await rewinding);
  return { sessions: [await view(args, context)], message };
}

/** Kept so that a call repeated with a form's answer can learn about it. */
const underWay = new WeakMap<Session, Promise<unknown>>();

/** An action that may need a person's approval first; the call waits for them as long as a wait does. */
async function decided<T>(
  args: Input,
  context: ToolContext,
  begin: () => Promise<T>,
  describe: (outcome: T) => string,
): Promise<SessionsAnswer> {
  const session = context.engine.sessions.find(({ id }) => id === args.sessionId);
  if (!session) return { sessions: [], message: describe(await begin()) };
  const again = context.forms?.session && (underWay.get(session) as Promise<T> | undefined);
  const acting = again ?? begin();
  underWay.set(session, acting);
  await settledOrAsked(acting, session);
  if (ownRequest(session)) await waitForSession(session, DEFAULT_WAIT_MS, context);
  const open = ownRequest(session);
  const message = open
    ? `A person is being asked (request ${open.id}); it is done when they allow it. Wait for that with claude_code_check.`
    : describe(await acting);
  return { sessions: await known(args, context), message };
}

/** One of the server's own requests: a session at rest has no other. */
function ownRequest(session: Session): OpenRequest | undefined {
  return session.requests.find(({ own }) => own !== undefined);
}

/** Resolves when the rewind has finished, or someone has to be asked first. */
function settledOrAsked(rewinding: Promise<unknown>, session: Session): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      unsubscribe();
      resolve();
    };
    const unsubscribe = session.notices.subscribe(() => {
      if (ownRequest(session)) done();
    });
    rewinding.then(done, done);
    if (ownRequest(session)) done();
  });
}

function idOf({ sessionId, action }: Input): string {
  if (sessionId === undefined) throw new DomainError('INVALID_ARGUMENT', `${action} requires sessionId.`);
  return sessionId;
}

/** Undefined if only its worktree is left. */
async function known(args: Input, context: ToolContext): Promise<SessionShown[]> {
  const isKnown = args.action === 'get' || context.engine.sessions.some(({ id }) => id === idOf(args));
  return isKnown ? [await view(args, context)] : [];
}

/** The session with its worktree. */
async function view(args: Input, { engine }: ToolContext): Promise<SessionShown> {
  const session = await engine.session(idOf(args));
  return viewWith(session, session.worktree ? await engine.worktrees() : [], args.includeSensitive === true);
}

function viewWith(session: Session, worktrees: readonly ListedWorktree[], sensitive: boolean): SessionShown {
  const own = worktrees.find(({ sessionId }) => sessionId === session.id);
  const workspace = own ? worktreeView(own, sensitive) : session.worktree && { state: 'removed' };
  return { ...sessionView(session, sensitive), ...(workspace && { workspace }) };
}
