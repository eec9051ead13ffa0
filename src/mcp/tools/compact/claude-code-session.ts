import { z } from 'zod';
import { DomainError } from '../../../errors/errors.ts';
import { defineTool, type ToolContext } from '../../define-tool.ts';
import { compactStatuses } from './shared.ts';
import { diskSessionView, sessionView } from '../../views/session-view.ts';

const input = z.strictObject({
  action: z.enum(['list', 'get', 'cancel', 'interrupt', 'rewind']),
  sessionId: z.string().min(1).optional(),
  includeSensitive: z.boolean().optional(),
  scope: z.enum(['server', 'disk']).optional(),
  projectDirectory: z.string().min(1).optional(),
  limit: z.int().positive().max(10_000).optional(),
  offset: z.int().min(0).optional(),
  toUserMessage: z.string().min(1).optional(),
  dryRun: z.boolean().optional(),
});

type Input = z.infer<typeof input>;

export const claudeCodeSession = defineTool({
  name: 'claude_code_session',
  title: 'List, stop or rewind sessions',
  describe: () =>
    '"list" the sessions (scope "disk": all on this machine), "get" one, "interrupt" its turn (it stays and takes replies), ' +
    '"cancel" it for good, or "rewind" its files to a user message (dryRun is the default; needs enableFileCheckpointing).',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
  input: () => input,
  output: () =>
    z.looseObject({
      sessions: z.array(z.looseObject({ sessionId: z.string() })),
      message: z.string().optional(),
      status: compactStatuses.optional(),
      isError: z.boolean().optional(),
      error: z.string().optional(),
    }),
  failure: (error) => ({ sessions: [], isError: true, error, message: error }),
  async run(args, context) {
    if (args.includeSensitive === true) context.engine.policy.checkSensitive();
    switch (args.action) {
      case 'list':
        return list(args, context);
      case 'get':
        return { sessions: [view(args, context)] };
      case 'cancel': {
        const cancelled = await sessionOf(args, context).cancel('cancelled by the caller', 'caller');
        return { sessions: [view(args, context)], message: cancelled ? 'Cancelled.' : 'It was cancelled before.' };
      }
      case 'interrupt': {
        const interrupted = await sessionOf(args, context).interrupt();
        return {
          sessions: [view(args, context)],
          message: interrupted ? 'Interrupted; it takes replies.' : 'Nothing was running.',
        };
      }
      case 'rewind':
        return rewind(args, context);
    }
  },
});

async function list(args: Input, { engine }: ToolContext): Promise<object> {
  if (args.scope !== 'disk') {
    return { sessions: engine.sessions.map((session) => sessionView(session, args.includeSensitive === true)) };
  }
  const found = await engine.listDisk({
    projectDirectory: args.projectDirectory,
    limit: args.limit ?? 50,
    offset: args.offset ?? 0,
  });
  const { allowSensitiveSessionDetails } = engine.settings;
  return { sessions: found.map((session) => diskSessionView(session, engine.sessions, allowSensitiveSessionDetails)) };
}

async function rewind(args: Input, context: ToolContext): Promise<object> {
  const session = sessionOf(args, context);
  if (args.toUserMessage === undefined)
    throw new DomainError(
      'INVALID_ARGUMENT',
      'rewind needs toUserMessage, the uuid of a message: see user_message_uuids of the result events in a poll with responseMode "full".',
    );
  const dryRun = args.dryRun ?? true;
  const report = await context.engine.rewind(session.id, args.toUserMessage, dryRun);
  if (!report.canRewind)
    throw new DomainError('INVALID_ARGUMENT', `Cannot rewind: ${report.error ?? 'no reason given'}`);
  const files = report.filesChanged ?? [];
  const message = `${dryRun ? 'Would put back' : 'Put back'} ${String(files.length)} file(s): ${files.join(', ') || 'none'} (+${String(report.insertions ?? 0)} -${String(report.deletions ?? 0)}).`;
  return { sessions: [view(args, context)], message };
}

function sessionOf(
  { sessionId, action }: Input,
  { engine }: ToolContext,
): ReturnType<ToolContext['engine']['session']> {
  if (sessionId === undefined) throw new DomainError('INVALID_ARGUMENT', `${action} needs sessionId.`);
  return engine.session(sessionId);
}

function view(args: Input, context: ToolContext): object {
  return sessionView(sessionOf(args, context), args.includeSensitive === true);
}
