import { z } from 'zod';
import type { Asked } from '../../../engine/requests/own-actions.ts';
import { describeRewind } from '../../../engine/session/session-rewinds.ts';
import type { ShownRecord } from '../../../schema/records.ts';
import { describeApply, describeDiscard, type AppliedWork } from '../../../engine/session/work-words.ts';
import type { EngineClient } from '../../../engine/client.ts';
import type { SessionReading } from '../../../engine/conversation/reading.ts';
import { DomainError, formatError } from '../../../errors/errors.ts';
import { nestFlat } from '../../arguments.ts';
import { defineTool, type ToolContext } from '../../define-tool.ts';
import type { ListedWorktree } from '../../../engine/session/session-worktrees.ts';
import { listedAs, unlisted } from '../../list-schema.ts';
import { APPLY_MODES } from '../../../schema/enums.ts';
import {
  sessionsAnswer,
  type BriefSession,
  type ComparedSession,
  type SessionShown,
  type SessionsAnswer,
  type WorktreeShown,
} from '../../../schema/listed-sessions.ts';
import {
  appliedView,
  comparedSession,
  diskSessionView,
  sessionView,
  worktreeView,
} from '../../../views/session-view.ts';
import { errorText } from './shared.ts';

/** Of a page of a diff, or of all diffs of a comparison. */
const DIFF_BYTES = 24_000;

const MAX_SESSIONS = 20;

/** What only one or two actions take. */
const options = z
  .strictObject({
    scope: z.enum(['server', 'disk']).meta({
      note: 'For `list`: the sessions this server knows, or all Claude Code sessions on this machine, newest first.',
      whenOmitted: '`server`',
    }),
    projectDirectory: z.string().min(1).meta({
      note: 'For `list` with `disk`: only sessions in this directory.',
      whenOmitted: 'all',
    }),
    limit: z.int().positive().max(10_000).meta({
      note: 'For `list` with `disk`: maximum number of sessions.',
      whenOmitted: '50',
    }),
    offset: z.int().min(0).meta({
      note: 'For `list` with `disk`: how many to skip. For `diff`: `nextOffset` from the previous page.',
      whenOmitted: '0',
    }),
    toUserMessage: z.string().min(1).meta({
      note: 'For `rewind`: uuid of the user message to go back to. Required there.',
      whenOmitted: 'none',
    }),
    dryRun: z.boolean().meta({
      note: 'For `rewind`: only report what would be restored. Files that someone else or a command has changed since are listed and left alone, and so are files that this server did not see the session write.',
      whenOmitted: '`true`',
    }),
    maxBytes: z.int().min(1).max(1_000_000).meta({
      note: 'For `diff`: approximate maximum size of a page. For `compare`: of all diffs together; each session gets an equal share.',
      whenOmitted: '24000',
    }),
    mode: z.enum(APPLY_MODES).meta({
      note: 'For `apply`: `merge` the branch into its base, `squash` it into one commit there, or apply it as a `patch`: uncommitted changes in the original checkout. Uncommitted changes in the worktree are committed to its branch first.',
      whenOmitted: '`merge`',
    }),
    message: z.string().min(1).max(10_000).meta({
      note: 'For `apply`: message of the commits it creates.',
      whenOmitted: 'names the session',
    }),
    discardOthers: z.boolean().meta({
      note: 'For `apply`: also discard the other attempts of the same start, even with unmerged work; their branches are kept. One that is working is left and named.',
      whenOmitted: '`false`',
    }),
    force: z.boolean().meta({
      note: 'For `discard`: even with unmerged work; it is committed, and the branch is kept and named.',
      whenOmitted: '`false`',
    }),
    deleteBranch: z.boolean().meta({
      note: 'For `discard` with `force`: also delete the branch, unless somebody else has moved it. Its last commit is named and kept under `refs/claude/discarded/<session>` for `RETAIN_DAYS`.',
      whenOmitted: '`false`',
    }),
  })
  .partial();

const OPTION_NAMES = Object.keys(options.shape);

const input = z.strictObject({
  action: z
    .enum(['list', 'get', 'cancel', 'interrupt', 'rewind', 'diff', 'compare', 'apply', 'discard'])
    .describe(
      'interrupt: stop its turn, it accepts replies; cancel: end it permanently; rewind: restore files; diff: its work; compare: claim, work and diff of several attempts; for a worktree: apply to its base, discard',
    )
    .meta({
      note: '`list` sessions, `get` one, `interrupt` its turn (it accepts replies afterwards), `cancel` it permanently, or `rewind` its files. `diff` shows its work: against the base of its worktree, or since the session started. `compare` shows several sessions side by side: the first line of what each claims, the evidence, and the diff. `apply` brings the work of its worktree to the base, or changes nothing and says what is in the way. `discard` removes its worktree. With `APPROVALS=human`, `apply`, a forced `discard` and a real `rewind` are requests to the person: the call returns `waiting_permission` and the `requestId` at once, what they were shown is done when they allow it, and `lastAction` says how it went.',
    }),
  sessionId: z.string().min(1).describe('for all but list; compare: any of the attempts').optional().meta({
    note: 'The session; required for everything except `list`. For `compare`: any of the attempts of one start.',
    whenOmitted: 'none',
  }),
  sessionIds: z
    .array(z.string().min(1))
    .min(1)
    .max(MAX_SESSIONS)
    .describe('for compare, cancel, discard')
    .optional()
    .meta({
      note: 'For `compare`, `cancel` and `discard`: several sessions, at most 20, with an outcome each.',
      whenOmitted: 'one session',
    }),
  includeSensitive: z.boolean().describe('also cwd, systemPrompt, agents').optional().meta({
    note: 'Also show directory, system prompt, agents and additional directories. The operator can forbid it.',
    whenOmitted: '`false`',
  }),
  options: listedAs(options.optional(), {
    type: 'object',
    description:
      'list: scope "disk" (all on this machine), offset; diff: offset; rewind: toUserMessage (uuid), dryRun (default true); apply: mode merge (default), squash or patch, discardOthers; discard: force (unmerged work), deleteBranch',
  }).meta({
    note: 'What only one action takes. Each may also be given at top level.',
    whenOmitted: 'see each one',
  }),
});

type Input = z.infer<typeof input>;

const READS: ReadonlySet<unknown> = new Set<Input['action']>(['list', 'get', 'diff', 'compare']);

export const claudeCodeSession = defineTool({
  name: 'claude_code_session',
  title: 'Manage sessions and their work',
  describe: () =>
    'List the sessions of this server or this machine; inspect, stop or rewind one; compare and apply work.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
  isRead: ({ action }) => READS.has(action),
  input: () => input,
  output: () =>
    z.looseObject({
      sessions: listedAs(sessionsAnswer.shape.sessions, { type: 'array', items: listedObject('sessionId') }),
      worktrees: unlisted(sessionsAnswer.shape.worktrees),
      message: sessionsAnswer.shape.message,
      diff: listedAs(sessionsAnswer.shape.diff, listedObject('diff')),
      applied: unlisted(sessionsAnswer.shape.applied),
      status: sessionsAnswer.shape.status,
      requestId: sessionsAnswer.shape.requestId,
      isError: z.boolean().optional().meta({ note: '`true` if the call failed.' }),
      error: errorText,
    }),
  flatNames: OPTION_NAMES,
  normalize: (args) => nestFlat(args, 'options', OPTION_NAMES),
  failure: (error) => ({ sessions: [], isError: true, error, message: error }),
  async run(args, context): Promise<SessionsAnswer> {
    if (args.includeSensitive === true) context.engine.checkSensitive();
    const { engine } = context;
    const asked = args.options ?? {};
    checkFits(args);
    if (args.sessionIds) return several(args.sessionIds, args, context);
    switch (args.action) {
      case 'list':
        return list(args, context);
      case 'get':
        return { sessions: [await view(args, context)] };
      case 'cancel': {
        const message = await cancel(idOf(args), context);
        return { sessions: [await view(args, context)], message };
      }
      case 'interrupt': {
        const interrupted = await engine.execute<'interrupt'>({ kind: 'interrupt', sessionId: idOf(args) });
        return {
          sessions: [await view(args, context)],
          message: interrupted ? 'Interrupted; it accepts replies.' : 'Nothing was running.',
        };
      }
      case 'rewind':
        return rewind(args, context);
      case 'diff': {
        const page = { maxBytes: asked.maxBytes ?? DIFF_BYTES, offset: asked.offset ?? 0 };
        await context.turn?.take(context.signal);
        const diff = await engine.execute<'diff'>({ kind: 'diff', sessionId: idOf(args), ...page });
        return { sessions: [await brief(idOf(args), args, context)], diff };
      }
      case 'compare': {
        const { attempts } = (await engine.read(idOf(args))).record;
        if (!attempts)
          throw new DomainError(
            'INVALID_ARGUMENT',
            `Session ${idOf(args)} is not one of several attempts; name the sessions to compare with sessionIds.`,
          );
        return several(attempts, args, context);
      }
      case 'apply': {
        const { mode = 'merge', message, discardOthers } = asked;
        const sessionId = idOf(args);
        const outcome = await engine.execute<'apply'>({ kind: 'apply', sessionId, mode, message, discardOthers });
        const describe = (done: AppliedWork): string =>
          // What became of the others stands in `applied`.
          describeApply(done.outcome === 'applied' ? { ...done, others: [] } : done);
        const answer = answerOf(await acted(sessionId, args, context, outcome, describe));
        if ('asked' in outcome || outcome.outcome === 'nothing-to-apply') return answer;
        const remove = (id: string): string => `claude_code_session {action: "discard", sessionId: "${id}"}`;
        return { ...answer, applied: appliedView(outcome, remove) };
      }
      case 'discard':
        return answerOf(await discard(idOf(args), args, context));
    }
  },
});

const ONLY_FOR: Readonly<Partial<Record<keyof NonNullable<Input['options']>, Input['action']>>> = {
  toUserMessage: 'rewind',
  dryRun: 'rewind',
  mode: 'apply',
  message: 'apply',
  discardOthers: 'apply',
  force: 'discard',
  deleteBranch: 'discard',
};

/** A `discard` with `dryRun` must not be a real one. Values that ask for nothing may come from clients that fill in every field. */
function checkFits({ action, options: given = {} }: Input): void {
  if (READS.has(action)) return;
  for (const [name, only] of Object.entries(ONLY_FOR)) {
    const value = given[name as keyof typeof ONLY_FOR];
    if (value !== undefined && value !== false && value !== 'merge' && only !== action)
      throw new DomainError('INVALID_ARGUMENT', `${name} is only valid with action "${only}".`);
  }
}

/** Each has an outcome of its own: what is wrong with one does not concern the others. */
async function several(ids: readonly string[], args: Input, context: ToolContext): Promise<SessionsAnswer> {
  const { action } = args;
  if (args.sessionId !== undefined && args.sessionIds)
    throw new DomainError('INVALID_ARGUMENT', 'Give either sessionId or sessionIds.');
  if (action !== 'compare' && action !== 'cancel' && action !== 'discard')
    throw new DomainError(
      'INVALID_ARGUMENT',
      `${action} takes one sessionId; sessionIds are for compare, cancel and discard.`,
    );
  const unique = [...new Set(ids)];
  const maxBytes = Math.max(1, Math.floor((args.options?.maxBytes ?? DIFF_BYTES) / unique.length));
  if (action === 'compare') await context.turn?.take(context.signal);
  const one = {
    compare: (id: string) => compared(id, maxBytes, context),
    cancel: async (id: string) => {
      const message = await cancel(id, context);
      return { sessionId: id, status: 'cancelled' as const, message };
    },
    discard: (id: string) => discard(id, args, context),
  }[action];
  const sessions: SessionsAnswer['sessions'] = [];
  // In turn: git locks its references.
  for (const id of unique)
    sessions.push(
      await one(id).catch((error: unknown) => ({
        sessionId: id.slice(0, 200),
        isError: true,
        error: formatError(error),
      })),
    );
  return { sessions };
}

/** What one session claims, the evidence, and its work. Of one that the server no longer knows only the work is left. */
async function compared(id: string, maxBytes: number, { engine }: ToolContext): Promise<ComparedSession> {
  const reading = await engine.read(id).catch((error: unknown) => error);
  const page = await engine
    .execute<'diff'>({ kind: 'diff', sessionId: id, maxBytes, offset: 0 })
    .catch((error: unknown) => {
      // One that was discarded can still be read.
      if (reading instanceof Error) throw reading;
      return { diff: '', diffError: formatError(error) };
    });
  const record = reading instanceof Error ? undefined : (reading as SessionReading).record;
  return comparedSession(id, record, page);
}

async function cancel(sessionId: string, { engine }: ToolContext): Promise<string> {
  const cancelled = await engine.execute<'cancel'>({ kind: 'cancel', sessionId });
  return cancelled ? 'Cancelled.' : 'It was already cancelled.';
}

async function discard(sessionId: string, args: Input, context: ToolContext): Promise<BriefSession> {
  const { force = false, deleteBranch } = args.options ?? {};
  const outcome = await context.engine.execute<'discard'>({ kind: 'discard', sessionId, force, deleteBranch });
  return acted(sessionId, args, context, outcome, describeDiscard);
}

/** An object of which only this text is listed. */
function listedObject(name: string): Record<string, unknown> {
  return { type: 'object', properties: { [name]: { type: 'string' } }, required: [name] };
}

async function list(args: Input, { engine }: ToolContext): Promise<SessionsAnswer> {
  const sensitive = args.includeSensitive === true;
  const { scope, projectDirectory, limit = 50, offset = 0 } = args.options ?? {};
  if (scope !== 'disk') {
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
  const found = await engine.listDisk({ projectDirectory, limit, offset });
  const { seesDetails } = engine;
  return { sessions: found.map((disk) => diskSessionView(disk, engine.peek(disk.sessionId), seesDetails)) };
}

async function rewind(args: Input, context: ToolContext): Promise<SessionsAnswer> {
  const { record } = await context.engine.read(idOf(args));
  const { toUserMessage, dryRun = true } = args.options ?? {};
  if (toUserMessage === undefined)
    throw new DomainError(
      'INVALID_ARGUMENT',
      'rewind requires toUserMessage, the uuid of a message: see user_message_uuids in the result events of a poll with responseMode "full".',
    );
  const command = { kind: 'rewind', sessionId: record.id, toUserMessage, dryRun } as const;
  const outcome = await context.engine.execute<'rewind'>(command);
  const answer = answerOf(await acted(record.id, args, context, outcome, describeRewind));
  return { ...answer, sessions: [await view(args, context)] };
}

/** What was done, or that a person must allow it first: the call does not wait for them. */
async function acted<T extends object>(
  sessionId: string,
  args: Input,
  context: ToolContext,
  outcome: T | Asked,
  describe: (outcome: T) => string,
): Promise<BriefSession> {
  const session = await brief(sessionId, args, context);
  if (!('asked' in outcome)) return { ...session, message: describe(outcome) };
  const { asked: requestId } = outcome;
  const message = `A person must allow it first (request ${requestId}); it is done when they do. Wait for that with claude_code_check: lastAction says how it went.`;
  return { ...session, status: 'waiting_permission', requestId, message };
}

/** The answer about one session says what was done at its top level. */
function answerOf({ message, status, requestId, ...session }: BriefSession): SessionsAnswer {
  return {
    sessions: [session],
    ...(message !== undefined && { message }),
    ...(status && { status }),
    ...(requestId !== undefined && { requestId }),
  };
}

function idOf({ sessionId, action }: Input): string {
  if (sessionId === undefined) throw new DomainError('INVALID_ARGUMENT', `${action} requires sessionId.`);
  return sessionId;
}

/** What an answer about its work says about the session; one that only left a worktree is not known otherwise. */
async function brief(sessionId: string, args: Input, { engine }: ToolContext): Promise<BriefSession> {
  const workspace = await workspaceOf(sessionId, args, engine);
  return { sessionId, ...(workspace && { workspace }) };
}

async function workspaceOf(id: string, args: Input, engine: EngineClient): Promise<WorktreeShown | undefined> {
  const [own] = await engine.worktrees(id);
  if (own) return worktreeView(own, args.includeSensitive === true);
  return engine.peek(id)?.workspace.type === 'worktree' ? { state: 'removed' } : undefined;
}

/** The session with its worktree. */
async function view(args: Input, { engine }: ToolContext): Promise<SessionShown> {
  const { record } = await engine.read(idOf(args));
  const worktrees = record.workspace.type === 'worktree' ? await engine.worktrees(record.id) : [];
  return viewWith(record, worktrees, args.includeSensitive === true);
}

function viewWith(record: ShownRecord, worktrees: readonly ListedWorktree[], sensitive: boolean): SessionShown {
  const own = worktrees.find(({ sessionId }) => sessionId === record.id);
  const isGone = !own && record.workspace.type === 'worktree';
  const workspace = own ? worktreeView(own, sensitive) : isGone && { state: 'removed' };
  return { ...sessionView(record, sensitive), ...(workspace && { workspace }) };
}
