import { z } from 'zod';
import type { Answer } from '../../../engine/answer.ts';
import type { Session } from '../../../engine/session.ts';
import { DomainError } from '../../../errors/errors.ts';
import { permissionUpdate } from '../../../schema/permission-update.ts';
import { nestFlat } from '../../arguments.ts';
import { defineTool, type ToolContext } from '../../define-tool.ts';
import { listedAs } from '../../list-schema.ts';
import { checkView } from '../../views/check-view.ts';
import { DEFAULT_WAIT_MS, MAX_WAIT_MS, waitForSession } from '../../wait.ts';
import { answers, decision, sessionId, updatedInput, waitMs } from '../fields.ts';
import { checkOutput } from './shared.ts';
import { POLL_OPTION_NAMES, pollOptions, viewOptions } from './view-options.ts';

const permissionOptions = z
  .strictObject({
    updatedInput,
    updatedPermissions: listedAs(z.array(permissionUpdate), { type: 'array', items: { type: 'object' } }),
    always: z.boolean(),
    answers,
  })
  .partial();

const PERMISSION_OPTION_NAMES = Object.keys(permissionOptions.shape);

const input = z.strictObject({
  action: z.enum(['poll', 'wait', 'respond_permission']),
  sessionId,
  cursor: z.int().min(0).optional(),
  responseMode: z.enum(['minimal', 'full']).optional(),
  maxEvents: z.int().positive().optional(),
  waitMs: waitMs.max(MAX_WAIT_MS).optional(),
  pollOptions: pollOptions.optional(),
  requestId: z.string().min(1).optional(),
  decision: decision.optional(),
  denyMessage: z.string().optional(),
  interrupt: z.boolean().optional(),
  permissionOptions: permissionOptions.optional(),
});

type Input = z.infer<typeof input>;

export const claudeCodeCheck = defineTool({
  name: 'claude_code_check',
  title: 'Watch a session and answer what it asks',
  describe: () =>
    'Watch a session. "wait" (best) answers when the session is at rest, asks something, or waitMs (45000) is up; call it again while status is running. ' +
    '"poll" answers at once with events from cursor on. "respond_permission" answers one of actions by requestId with decision allow or deny; ' +
    'for a question give permissionOptions.answers {"<question>": "<label or text>"}, always: true also allows what Claude Code suggests, for this session.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: () => input,
  output: () => checkOutput,
  flatNames: [...POLL_OPTION_NAMES, ...PERMISSION_OPTION_NAMES],
  normalize: (args) =>
    nestFlat(nestFlat(args, 'pollOptions', POLL_OPTION_NAMES), 'permissionOptions', PERMISSION_OPTION_NAMES),
  async run(args, context) {
    checkFits(args);
    const session = context.engine.session(args.sessionId);
    switch (args.action) {
      case 'poll':
        return checkView(session, viewOptions('poll', args));
      case 'wait':
        return waitView(session, args, context);
      case 'respond_permission': {
        const { warnings } = context.engine.respond(args.sessionId, args.requestId ?? '', answerOf(args));
        return { ...checkView(session, viewOptions('poll', args)), ...(warnings.length > 0 && { warnings }) };
      }
    }
  },
});

async function waitView(session: Session, args: Input, context: ToolContext): Promise<object> {
  await waitForSession(session, args.waitMs ?? DEFAULT_WAIT_MS, context);
  return checkView(session, viewOptions('wait', args));
}

function checkFits(args: Input): void {
  if (args.action === 'respond_permission') {
    if (args.requestId === undefined)
      throw new DomainError('INVALID_ARGUMENT', 'respond_permission needs requestId, from the actions of the session.');
    if (args.decision === undefined)
      throw new DomainError('INVALID_ARGUMENT', 'respond_permission needs decision: "allow" or "deny".');
    if (args.decision === 'deny' && Object.keys(args.permissionOptions ?? {}).length > 0)
      throw new DomainError('INVALID_ARGUMENT', 'permissionOptions go with decision "allow".');
    if (args.decision === 'allow' && args.interrupt === true)
      throw new DomainError('INVALID_ARGUMENT', 'interrupt goes with decision "deny".');
    return;
  }
  // What is empty or the default decides nothing; clients that fill in every field may send it.
  const stray = (['requestId', 'decision', 'denyMessage', 'interrupt', 'permissionOptions'] as const).filter((name) => {
    const value = args[name];
    return value !== undefined && value !== false && !(typeof value === 'object' && Object.keys(value).length === 0);
  });
  if (stray.length > 0)
    throw new DomainError('INVALID_ARGUMENT', `${stray.join(', ')} go(es) with action "respond_permission".`);
}

function answerOf(args: Input): Answer {
  return {
    decision: args.decision ?? 'deny',
    message: args.denyMessage,
    interrupt: args.interrupt,
    ...args.permissionOptions,
  };
}
