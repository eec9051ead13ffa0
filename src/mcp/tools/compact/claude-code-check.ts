import { z } from 'zod';
import type { SessionReading } from '../../../engine/conversation/reading.ts';
import type { Answer } from '../../../schema/commands.ts';
import { DomainError, formatError } from '../../../errors/errors.ts';
import { RESPONSE_MODES, WAIT_FOR } from '../../../schema/enums.ts';
import type { CheckAnswer, CheckedSession } from '../../../schema/results.ts';
import { permissionUpdate } from '../../../schema/session-options.ts';
import { nestFlat } from '../../arguments.ts';
import { carriedOut, defineTool, shownWarnings, type ToolContext } from '../../define-tool.ts';
import { unlisted } from '../../list-schema.ts';
import { checkView, checkViews, type CheckViewOptions } from '../../../views/check-view.ts';
import { DEFAULT_WAIT_MS, MAX_WAIT_MS, waitForSession, waitForSessions } from '../../wait.ts';
import { answers, confirmOption, decision, sessionId, updatedInput, waitMs } from '../fields.ts';
import { checkedOutput } from './shared.ts';
import { CHECK_ACTIONS, POLL_OPTION_NAMES, pollOptions, viewOptions } from './view-options.ts';

/** In one call. */
const MAX_SESSIONS = 20;

const permissionOptions = z
  .strictObject({
    updatedInput: updatedInput.meta({
      note: 'Run the tool with this input, which replaces the requested input entirely.',
    }),
    updatedPermissions: unlisted(z.array(permissionUpdate)).meta({
      note: 'Permissions to grant with it, for this session; any other destination becomes `session`, with a warning. Refused wherever the corresponding option would be.',
      whenOmitted: 'none',
    }),
    always: z.boolean().describe('also allow what alwaysAllows lists').meta({
      note: 'Also allow, for this session, what `alwaysAllows` says: harmless rules that Claude Code suggests, otherwise exactly this command; never a mode or a directory.',
      whenOmitted: '`false`',
    }),
    answers,
    message: z.string().describe('told to Claude').meta({
      note: 'Told to Claude, who reads it with the result of the call.',
      whenOmitted: 'nothing',
    }),
    confirm: confirmOption,
  })
  .partial();

const PERMISSION_OPTION_NAMES = Object.keys(permissionOptions.shape);

const input = z.strictObject({
  action: z
    .enum(CHECK_ACTIONS)
    .describe(
      'respond_permission: answer one of actions and, with waitMs, continue to the next or the result; wait: until it rests, asks or waitMs is up; poll: at once, with events',
    )
    .meta({
      note: '`wait` returns when the session finishes, asks something, or the time is up, and keeps waiting while a person has a form for the request; `poll` returns immediately; `respond_permission` answers one request.',
    }),
  sessionId: sessionId
    .optional()
    .meta({ note: 'The session; required unless `sessionIds` is given.', whenOmitted: 'none' }),
  sessionIds: z
    .array(z.string().min(1))
    .min(1)
    .max(MAX_SESSIONS)
    .describe('for wait and poll: several; answers when one asks or all rest')
    .optional()
    .meta({
      note: 'For `wait` and `poll`: several sessions at once, at most 20; the answer has `sessions`. `wait` returns when one needs an answer or all are at rest. `maxBytes` is shared: the oldest requests come first and whole, the rest as `{requestId, toolName, omitted: true}`. Not together with `cursor`, `toolUseID` or `resultOffset`.',
      whenOmitted: 'one session',
    }),
  waitFor: unlisted(z.enum(WAIT_FOR).optional()).meta({
    note: 'For `wait` with `sessionIds`: `any` also returns when one of them comes to rest during the call.',
    whenOmitted: '`all`',
  }),
  requestId: z
    .string()
    .min(1)
    .describe('from actions, to respond')
    .optional()
    .meta({ note: 'For `respond_permission`: which of `actions` to answer. Required there.', whenOmitted: 'none' }),
  decision: decision.optional().meta({ note: 'For `respond_permission`. Required there.', whenOmitted: 'none' }),
  denyMessage: z
    .string()
    .describe('with deny: told to Claude')
    .optional()
    .meta({ note: 'With `deny`: what Claude is told.', whenOmitted: '“Permission denied by caller”' }),
  interrupt: z
    .boolean()
    .describe('with deny: also stop the turn')
    .optional()
    .meta({ note: 'With `deny`: also stop the turn.', whenOmitted: '`false`' }),
  permissionOptions: permissionOptions
    .describe('with allow')
    .optional()
    .meta({ note: 'With `allow`. Each may also be given at top level.', whenOmitted: 'none' }),
  waitMs: waitMs
    .max(MAX_WAIT_MS)
    .describe('default 45000 for wait, 0 for respond_permission (give 45000)')
    .optional()
    .meta({
      note: 'For `wait` and `respond_permission`: maximum time to wait for the session to finish or ask something.',
      whenOmitted: '45000 for `wait`, 0 for `respond_permission`',
    }),
  cursor: z
    .int()
    .min(0)
    .describe('the last nextCursor')
    .optional()
    .meta({ note: 'First event to return: `nextCursor` from the last answer.', whenOmitted: 'the oldest event kept' }),
  responseMode: z.enum(RESPONSE_MODES).describe('full: everything; default minimal').optional().meta({
    note: '`minimal` is a short form for models; `full` has what Claude Code sent.',
    whenOmitted: '`minimal`',
  }),
  maxEvents: unlisted(z.int().positive().optional()).meta({
    note: 'Maximum number of events in one answer.',
    whenOmitted: '200 in `minimal`, no limit in `full`',
  }),
  pollOptions: pollOptions
    .describe('what to return')
    .optional()
    .meta({ note: 'What to include in the answer. Each may also be given at top level.', whenOmitted: 'see each one' }),
});

type Input = z.infer<typeof input>;

export const claudeCodeCheck = defineTool({
  name: 'claude_code_check',
  title: 'Watch a session and answer its requests',
  describe: () =>
    "Answer a session's requests and wait for what comes next, in one call. At rest, result.result is Claude's claim, " +
    'result.work the evidence: read result.attention first; work.problems lists what failed or was denied.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  isRead: ({ action }) => action === 'poll' || action === 'wait',
  input: () => input,
  output: () => checkedOutput,
  flatNames: [...POLL_OPTION_NAMES, ...PERMISSION_OPTION_NAMES],
  normalize: (args) =>
    nestFlat(nestFlat(args, 'pollOptions', POLL_OPTION_NAMES), 'permissionOptions', PERMISSION_OPTION_NAMES),
  async run(args, context) {
    checkFits(args);
    const { engine } = context;
    const { sessionIds, sessionId: id = '' } = args;
    if (sessionIds) return checkedSessions([...new Set(sessionIds)], args, context);
    const shownAs = async (options: CheckViewOptions): Promise<CheckAnswer> =>
      checkView(await engine.read(id, options.includeEvents ? Math.max(1, options.cursor ?? 1) : undefined), options);
    switch (args.action) {
      case 'poll':
        await waitForSession(id, 0, context);
        return shownAs(viewOptions('poll', args));
      case 'wait':
        await engine.read(id);
        await waitForSession(id, args.waitMs ?? DEFAULT_WAIT_MS, context);
        return shownAs(viewOptions('wait', args));
      case 'respond_permission': {
        const { requestId = '' } = args;
        const command = { kind: 'respond', sessionId: id, requestId, answer: answerOf(args) } as const;
        const { warnings } = await carriedOut<'respond'>(context, command, args.waitMs);
        await waitForSession(id, args.waitMs ?? 0, context);
        const view = await shownAs(viewOptions('respond_permission', args));
        return { ...view, ...shownWarnings(warnings) };
      }
    }
  },
});

/** An unknown session is reported in its place; the others are answered all the same. */
async function checkedSessions(
  ids: readonly string[],
  args: Input,
  context: ToolContext,
): Promise<{ sessions: CheckedSession[] }> {
  const { engine } = context;
  const action = args.action === 'poll' ? 'poll' : 'wait';
  const read = async (id: string): Promise<SessionReading | CheckedSession> =>
    engine.read(id).catch((error: unknown) => {
      if (!(error instanceof DomainError) || error.code !== 'SESSION_NOT_FOUND') throw error;
      return { sessionId: id.slice(0, 200), status: 'error', isError: true, error: formatError(error) };
    });
  const known = (await Promise.all(ids.map(read))).flatMap((one) => ('record' in one ? [one.record.id] : []));
  const waitMs = action === 'poll' ? 0 : (args.waitMs ?? DEFAULT_WAIT_MS);
  await waitForSessions(known, waitMs, context, args.waitFor);
  const found = await Promise.all(ids.map(read));
  const views = checkViews(
    found.filter((one) => 'record' in one),
    viewOptions(action, args),
  );
  return { sessions: found.map((one) => ('record' in one ? (views.shift() ?? { sessionId: one.record.id }) : one)) };
}

function checkFits(args: Input): void {
  if ((args.sessionId === undefined) === (args.sessionIds === undefined))
    throw new DomainError('INVALID_ARGUMENT', 'Give either sessionId or sessionIds.');
  if (args.sessionIds) checkFitsSeveral(args);
  else if (args.waitFor === 'any') throw new DomainError('INVALID_ARGUMENT', 'waitFor is only valid with sessionIds.');
  if (args.action === 'respond_permission') {
    if (args.requestId === undefined)
      throw new DomainError(
        'INVALID_ARGUMENT',
        'respond_permission requires requestId, from the actions of the session.',
      );
    if (args.decision === undefined)
      throw new DomainError('INVALID_ARGUMENT', 'respond_permission requires decision: "allow" or "deny".');
    if (args.decision === 'deny' && Object.keys(args.permissionOptions ?? {}).length > 0)
      throw new DomainError('INVALID_ARGUMENT', 'permissionOptions are only valid with decision "allow".');
    if (args.decision === 'allow' && args.interrupt === true)
      throw new DomainError('INVALID_ARGUMENT', 'interrupt is only valid with decision "deny".');
    if (args.decision === 'allow' && (args.denyMessage ?? '') !== '')
      throw new DomainError(
        'INVALID_ARGUMENT',
        'denyMessage is only valid with decision "deny"; to tell Claude something with an allow, give permissionOptions.message.',
      );
    return;
  }
  // Empty or default values decide nothing; clients that fill in every field may send them.
  const stray = (['requestId', 'decision', 'denyMessage', 'interrupt', 'permissionOptions'] as const).filter((name) => {
    const value = args[name];
    return value !== undefined && value !== false && !(typeof value === 'object' && Object.keys(value).length === 0);
  });
  if (stray.length > 0)
    throw new DomainError('INVALID_ARGUMENT', `${stray.join(', ')} is only valid with action "respond_permission".`);
}

function checkFitsSeveral({ action, cursor, pollOptions: { toolUseID, resultOffset } = {} }: Input): void {
  if (action === 'respond_permission')
    throw new DomainError(
      'INVALID_ARGUMENT',
      'respond_permission answers one request: give sessionId, not sessionIds.',
    );
  const given = Object.entries({ cursor, toolUseID, resultOffset }).filter(([, value]) => value !== undefined);
  if (given.length > 0)
    throw new DomainError(
      'INVALID_ARGUMENT',
      `${given.map(([name]) => name).join(', ')} cannot be used with sessionIds; check that session alone, with sessionId.`,
    );
}

function answerOf(args: Input): Answer {
  return {
    decision: args.decision ?? 'deny',
    message: args.decision === 'deny' ? args.denyMessage : undefined,
    interrupt: args.interrupt,
    ...args.permissionOptions,
  };
}
