import { z } from 'zod';
import type { Asked } from '../../../engine/requests/own-actions.ts';
import { describeRewind } from '../../../engine/session/rewind.ts';
import type { SessionRecord } from '../../../schema/records.ts';
import { describeApply, describeDiscard } from '../../../engine/session/work-words.ts';
import { DomainError } from '../../../errors/errors.ts';
import { defineTool, type ToolContext } from '../../define-tool.ts';
import type { ListedWorktree } from '../../../engine/session/session-worktrees.ts';
import { listedAs, unlisted } from '../../list-schema.ts';
import { APPLY_MODES } from '../../../schema/enums.ts';
import { sessionsAnswer, type SessionShown, type SessionsAnswer } from '../../../schema/listed-sessions.ts';
import { diskSessionView, sessionView, worktreeView } from '../../../views/session-view.ts';
import { errorText } from './shared.ts';

const DIFF_BYTES = 24_000;

const input = z.strictObject({
  action: z
    .enum(['list', 'get', 'cancel', 'interrupt', 'rewind', 'diff', 'apply', 'discard'])
    .describe(
      'interrupt: stop its turn, it accepts replies; cancel: end it permanently; rewind: restore files (needs enableFileCheckpointing); diff: its work; for a worktree: apply to its base, discard',
    )
    .meta({
      note: '`list` sessions, `get` one, `interrupt` its turn (it accepts replies afterwards), `cancel` it permanently, or `rewind` its files. `diff` shows its work: against the base of its worktree, or since the session started. `apply` brings the work of its worktree to the base, or changes nothing and says what is in the way. `discard` removes its worktree. With `APPROVALS=human`, `apply`, a forced `discard` and a real `rewind` are requests to the person: the call returns `waiting_permission` and the `requestId` at once, what they were shown is done when they allow it, and `lastAction` says how it went.',
    }),
  sessionId: z
    .string()
    .min(1)
    .describe('for all but list')
    .optional()
    .meta({ note: 'The session; required for everything except `list`.', whenOmitted: 'none' }),
  includeSensitive: z.boolean().describe('also cwd, systemPrompt, agents').optional().meta({
    note: 'Also show directory, system prompt, agents and additional directories. The operator can forbid it.',
    whenOmitted: '`false`',
  }),
  scope: z.enum(['server', 'disk']).describe('for list; disk: all on this machine').optional().meta({
    note: 'For `list`: the sessions this server knows, or all Claude Code sessions on this machine, newest first.',
    whenOmitted: '`server`',
  }),
  projectDirectory: unlisted(z.string().min(1).optional()).meta({
    note: 'For `list` with `disk`: only sessions in this directory.',
    whenOmitted: 'all',
  }),
  limit: unlisted(z.int().positive().max(10_000).optional()).meta({
    note: 'For `list` with `disk`: maximum number of sessions.',
    whenOmitted: '50',
  }),
  offset: z.int().min(0).describe('for list or diff').optional().meta({
    note: 'For `list` with `disk`: how many to skip. For `diff`: `nextOffset` from the previous page.',
    whenOmitted: '0',
  }),
  toUserMessage: z.string().min(1).describe('uuid to rewind to').optional().meta({
    note: 'For `rewind`: uuid of the user message to go back to. Required there.',
    whenOmitted: 'none',
  }),
  maxBytes: unlisted(z.int().min(1).max(1_000_000).optional()).meta({
    note: 'For `diff`: approximate maximum size of a page.',
    whenOmitted: '24000',
  }),
  mode: z.enum(APPLY_MODES).describe('for apply; default merge').optional().meta({
    note: 'For `apply`: `merge` the branch into its base, `squash` it into one commit there, or apply it as a `patch`: uncommitted changes in the original checkout. Uncommitted changes in the worktree are committed to its branch first.',
    whenOmitted: '`merge`',
  }),
  message: unlisted(z.string().min(1).max(10_000).optional()).meta({
    note: 'For `apply`: message of the commits it creates.',
    whenOmitted: 'names the session',
  }),
  force: z.boolean().describe('discard unmerged work').optional().meta({
    note: 'For `discard`: even with unmerged work; it is committed, and the branch is kept and named.',
    whenOmitted: '`false`',
  }),
  dryRun: z.boolean().describe('for rewind; default true').optional().meta({
    note: 'For `rewind`: only report what would be restored. Files that someone else or a command has changed since are listed and left alone, and so are files that this server did not see the session write.',
    whenOmitted: '`true`',
  }),
});

type Input = z.infer<typeof input>;

export const claudeCodeSession = defineTool({
  name: 'claude_code_session',
  title: 'Manage sessions and their work',
  describe: () => 'List the sessions of this server or this machine; inspect, stop or rewind one; apply its work.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
  isRead: ({ action }) => action === 'list' || action === 'get' || action === 'diff',
  input: () => input,
  output: () =>
    z.looseObject({
      sessions: listedAs(sessionsAnswer.shape.sessions, { type: 'array', items: listedObject('sessionId') }),
      worktrees: unlisted(sessionsAnswer.shape.worktrees),
      message: sessionsAnswer.shape.message,
      diff: listedAs(sessionsAnswer.shape.diff, listedObject('diff')),
      status: sessionsAnswer.shape.status,
      requestId: sessionsAnswer.shape.requestId,
      isError: z.boolean().optional().meta({ note: '`true` if the call failed.' }),
      error: errorText,
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
        const cancelled = await context.engine.execute<'cancel'>({ kind: 'cancel', sessionId: idOf(args) });
        return {
          sessions: [await view(args, context)],
          message: cancelled ? 'Cancelled.' : 'It was already cancelled.',
        };
      }
      case 'interrupt': {
        const interrupted = await context.engine.execute<'interrupt'>({ kind: 'interrupt', sessionId: idOf(args) });
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
        const diff = await context.engine.execute<'diff'>({ kind: 'diff', sessionId: idOf(args), ...page });
        return { sessions: await known(args, context), diff };
      }
      case 'apply': {
        const { mode = 'merge', message } = args;
        const command = { kind: 'apply', sessionId: idOf(args), mode, message } as const;
        return acted(args, context, await context.engine.execute<'apply'>(command), (done) => describeApply(done));
      }
      case 'discard': {
        const command = { kind: 'discard', sessionId: idOf(args), force: args.force === true } as const;
        return acted(args, context, await context.engine.execute<'discard'>(command), describeDiscard);
      }
    }
  },
});

/** An object of which only this text is listed. */
function listedObject(name: string): Record<string, unknown> {
  return { type: 'object', properties: { [name]: { type: 'string' } }, required: [name] };
}

async function list(args: Input, { engine }: ToolContext): Promise<SessionsAnswer> {
  const sensitive = args.includeSensitive === true;
  if (args.scope !== 'disk') {
    const worktrees = await engine.worktrees();
    const { sessions: listed, unreadable } = await engine.list();
    const others = worktrees.filter(({ sessionId }) => !listed.some(({ id }) => id === sessionId));
    return {
      sessions: listed.map((record) => viewWith(record, worktrees, sensitive)),
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
  return { sessions: found.map((disk) => diskSessionView(disk, engine.peek(disk.sessionId), seesDetails)) };
}

async function rewind(args: Input, context: ToolContext): Promise<SessionsAnswer> {
  const { record } = await context.engine.read(idOf(args));
  if (args.toUserMessage === undefined)
    throw new DomainError(
      'INVALID_ARGUMENT',
      'rewind requires toUserMessage, the uuid of a message: see user_message_uuids in the result events of a poll with responseMode "full".',
    );
  const { toUserMessage, dryRun = true } = args;
  const command = { kind: 'rewind', sessionId: record.id, toUserMessage, dryRun } as const;
  return acted(args, context, await context.engine.execute<'rewind'>(command), describeRewind);
}

/** What was done, or that a person must allow it first: the call does not wait for them. */
async function acted<T extends object>(
  args: Input,
  context: ToolContext,
  outcome: T | Asked,
  describe: (outcome: T) => string,
): Promise<SessionsAnswer> {
  const sessions = await known(args, context);
  if (!('asked' in outcome)) return { sessions, message: describe(outcome) };
  const { asked: requestId } = outcome;
  const message = `A person must allow it first (request ${requestId}); it is done when they do. Wait for that with claude_code_check: lastAction says how it went.`;
  return { sessions, status: 'waiting_permission', requestId, message };
}

function idOf({ sessionId, action }: Input): string {
  if (sessionId === undefined) throw new DomainError('INVALID_ARGUMENT', `${action} requires sessionId.`);
  return sessionId;
}

/** Undefined if only its worktree is left. */
async function known(args: Input, context: ToolContext): Promise<SessionShown[]> {
  const isKnown = args.action === 'get' || context.engine.peek(idOf(args)) !== undefined;
  return isKnown ? [await view(args, context)] : [];
}

/** The session with its worktree. */
async function view(args: Input, { engine }: ToolContext): Promise<SessionShown> {
  const { record } = await engine.read(idOf(args));
  const worktrees = record.workspace.type === 'worktree' ? await engine.worktrees() : [];
  return viewWith(record, worktrees, args.includeSensitive === true);
}

function viewWith(record: SessionRecord, worktrees: readonly ListedWorktree[], sensitive: boolean): SessionShown {
  const own = worktrees.find(({ sessionId }) => sessionId === record.id);
  const isGone = !own && record.workspace.type === 'worktree';
  const workspace = own ? worktreeView(own, sensitive) : isGone && { state: 'removed' };
  return { ...sessionView(record, sensitive), ...(workspace && { workspace }) };
}
