import { z } from 'zod';
import { WHEN_BUSY } from '../../../schema/enums.ts';
import { ADVANCED_OPTION_NAMES, advancedOptions, commonOptions } from '../../../schema/session-options.ts';
import { nestFlat, type Arguments } from '../../arguments.ts';
import { carriedOut, defineTool, sessionIdOf } from '../../define-tool.ts';
import { listedAs, unlisted } from '../../list-schema.ts';
import { prompt, sessionId } from '../fields.ts';
import { advanced, checkOutput, flatOptions, nestAdvanced, startWaitMs } from './shared.ts';
import { startedView } from './view-options.ts';

const NOT_CHANGED = 'not changed';

const diskResumeConfig = z
  .strictObject({
    ...commonOptions,
    advanced,
    resumeSessionAt: z
      .string()
      .min(1)
      .meta({ note: 'Uuid of the message after which the history is dropped.', whenOmitted: 'the whole history' }),
  })
  .partial()
  .meta({
    note: 'For a session that exists only on disk: every option of `claude_code` except `prompt` and `waitMs`. Each may also be given at top level.',
    whenOmitted: 'the session’s own directory, everything else as for a new session',
    describedWith: 'claude_code',
  });

/** Those that mean something else at the top level of a reply stay there. */
const OWN_NAMES = new Set(['model', 'permissionMode', 'permissionRequestTimeoutMs', 'sessionInitTimeoutMs']);
const DISK_NAMES = [...Object.keys(commonOptions), ...ADVANCED_OPTION_NAMES, 'advanced', 'resumeSessionAt'].filter(
  (name) => !OWN_NAMES.has(name),
);

export const claudeCodeReply = defineTool({
  name: 'claude_code_reply',
  title: 'Continue a session',
  describe: () =>
    'Send the next message to an idle session; whenBusy "queue" queues it for a working one. Returns like claude_code.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: () =>
    z.strictObject({
      sessionId: sessionId.meta({ note: 'The session to continue.' }),
      prompt: prompt.describe('the next message').meta({ note: 'The next message. Not blank.' }),
      waitMs: startWaitMs.describe('as in claude_code').optional(),
      forkSession: z.boolean().describe('continue in a copy with a new id').optional().meta({
        note: 'Continue in a new session that starts with this one’s history; the original is unchanged.',
        whenOmitted: '`false`',
      }),
      whenBusy: z.enum(WHEN_BUSY).describe('default reject').optional().meta({
        note: 'What to do while the session is working: reject with `SESSION_BUSY`, or queue the message until the turn can take it.',
        whenOmitted: '`reject`',
      }),
      model: commonOptions.model
        .describe('from this turn on')
        .optional()
        .meta({ note: 'Switch the model from this turn on.', whenOmitted: NOT_CHANGED }),
      permissionMode: listedAs(commonOptions.permissionMode.optional(), {
        type: 'string',
        description: 'as in claude_code, from this turn on',
      }).meta({ note: 'Switch the permission mode from this turn on.', whenOmitted: NOT_CHANGED }),
      permissionRequestTimeoutMs: unlisted(commonOptions.permissionRequestTimeoutMs.optional()).meta({
        note: 'A different request timeout from now on.',
        whenOmitted: NOT_CHANGED,
      }),
      sessionInitTimeoutMs: unlisted(advancedOptions.sessionInitTimeoutMs.optional()).meta({
        note: 'A different start timeout, if a process has to be started.',
        whenOmitted: NOT_CHANGED,
      }),
      resumeToken: z.string().min(1).describe('from the start, for a session only on disk').optional().meta({
        note: 'The token returned when this session was started; for a session that exists only on disk.',
        whenOmitted: 'none',
      }),
      diskResumeConfig: listedAs(diskResumeConfig.optional(), {
        type: 'object',
        description: 'for a session only on disk: options of claude_code, resumeSessionAt',
      }),
    }),
  output: () => checkOutput,
  flatNames: DISK_NAMES,
  normalize,
  failure: (error, args) => ({ sessionId: sessionIdOf(args), status: 'error', isError: true, error }),
  async run(args, context) {
    const { resumeSessionAt, ...options } = args.diskResumeConfig ?? {};
    const command = {
      kind: 'reply',
      sessionId: args.sessionId,
      prompt: args.prompt,
      fork: args.forkSession ?? false,
      whenBusy: args.whenBusy ?? 'reject',
      model: args.model,
      permissionMode: args.permissionMode,
      permissionRequestTimeoutMs: args.permissionRequestTimeoutMs,
      sessionInitTimeoutMs: args.sessionInitTimeoutMs,
      disk: {
        kind: 'token',
        token: args.resumeToken,
        options: flatOptions(options),
        defaults: { permissionMode: 'default' },
        resumeSessionAt,
      },
    } as const;
    return startedView(await carriedOut<'reply'>(context, command, args.waitMs), args.waitMs, context);
  },
});

function normalize(args: Arguments): Arguments {
  const nested = nestFlat(args, 'diskResumeConfig', DISK_NAMES);
  const config = nested['diskResumeConfig'];
  if (typeof config !== 'object' || config === null || Array.isArray(config)) return nested;
  return { ...nested, diskResumeConfig: nestAdvanced(config as Arguments) };
}
