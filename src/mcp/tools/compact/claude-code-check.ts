import { z } from 'zod';
import type { Answer } from '../../../engine/answer.ts';
import type { Session } from '../../../engine/session.ts';
import { DomainError } from '../../../errors/errors.ts';
import type { CheckAnswer } from '../../../schema/results.ts';
import { permissionUpdate } from '../../../schema/permission-update.ts';
import { nestFlat } from '../../arguments.ts';
import { defineTool, type ToolContext } from '../../define-tool.ts';
import { unlisted } from '../../list-schema.ts';
import { checkView } from '../../views/check-view.ts';
import { DEFAULT_WAIT_MS, MAX_WAIT_MS, waitForSession } from '../../wait.ts';
import { answers, decision, sessionId, updatedInput, waitMs } from '../fields.ts';
import { checkOutput } from './shared.ts';
import { takeWarnings } from '../warnings.ts';
import { POLL_OPTION_NAMES, pollOptions, viewOptions } from './view-options.ts';

const permissionOptions = z
  .strictObject({
    updatedInput,
    updatedPermissions: unlisted(z.array(permissionUpdate)),
    always: z.boolean().describe('also allow what alwaysAllows lists, this session only'),
    answers,
  })
  .partial();

const PERMISSION_OPTION_NAMES = Object.keys(permissionOptions.shape);

const input = z.strictObject({
  action: z
    .enum(['poll', 'wait', 'respond_permission'])
    .describe(
      'respond_permission: answer one of actions; with waitMs, continue to the next request or the result; wait: until it finishes, asks, or waitMs is up, repeat while running; poll: immediate, with events',
    ),
  sessionId,
  requestId: z.string().min(1).describe('from actions, to respond').optional(),
  decision: decision.optional(),
  denyMessage: z.string().describe('with deny: told to Claude').optional(),
  interrupt: z.boolean().describe('with deny: also stop the turn').optional(),
  permissionOptions: permissionOptions.describe('with allow').optional(),
  waitMs: waitMs.max(MAX_WAIT_MS).describe('default 45000 for wait, 0 for respond_permission (give 45000)').optional(),
  cursor: z.int().min(0).describe('events from here: the last nextCursor').optional(),
  responseMode: z.enum(['minimal', 'full']).describe('full: raw events, inputs in full; default minimal').optional(),
  maxEvents: unlisted(z.int().positive().optional()),
  pollOptions: pollOptions.describe('what the answer includes').optional(),
});

type Input = z.infer<typeof input>;

export const claudeCodeCheck = defineTool({
  name: 'claude_code_check',
  title: 'Watch a session and answer its requests',
  describe: () =>
    "Answer a session's requests and wait for what comes next, in one call. At rest, result.result is Claude's claim, " +
    'result.work the evidence: work.problems lists failed and denied tool calls.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: () => input,
  output: () => checkOutput,
  flatNames: [...POLL_OPTION_NAMES, ...PERMISSION_OPTION_NAMES],
  normalize: (args) =>
    nestFlat(nestFlat(args, 'pollOptions', POLL_OPTION_NAMES), 'permissionOptions', PERMISSION_OPTION_NAMES),
  async run(args, context) {
    checkFits(args);
    const session = await context.engine.session(args.sessionId);
    switch (args.action) {
      case 'poll':
        return checkView(await waitForSession(session, 0, context), viewOptions('poll', args));
      case 'wait':
        return waitView(session, args, context);
      case 'respond_permission':
        // Repeated with the answers to its forms, it has already given its own answer.
        if (!context.forms?.session) await context.engine.respond(args.sessionId, args.requestId ?? '', answerOf(args));
        return {
          ...checkView(
            await waitForSession(session, args.waitMs ?? 0, context),
            viewOptions('respond_permission', args),
          ),
          ...takeWarnings(session),
        };
    }
  },
});

async function waitView(session: Session, args: Input, context: ToolContext): Promise<CheckAnswer> {
  const waited = await waitForSession(session, args.waitMs ?? DEFAULT_WAIT_MS, context);
  return checkView(waited, viewOptions('wait', args));
}

function checkFits(args: Input): void {
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

function answerOf(args: Input): Answer {
  return {
    decision: args.decision ?? 'deny',
    message: args.denyMessage,
    interrupt: args.interrupt,
    ...args.permissionOptions,
  };
}
