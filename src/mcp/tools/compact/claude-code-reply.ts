import { z } from 'zod';
import { ADVANCED_OPTION_NAMES, commonOptions } from '../../../schema/session-options.ts';
import { nestFlat, type Arguments } from '../../arguments.ts';
import { defineTool } from '../../define-tool.ts';
import { listedAs, unlisted } from '../../list-schema.ts';
import { prompt, sessionId, waitMs } from '../fields.ts';
import { advanced, checkOutput, flatOptions, nestAdvanced } from './shared.ts';
import { startedView } from './started-view.ts';

const diskResumeConfig = z.strictObject({ ...commonOptions, advanced, resumeSessionAt: z.string().min(1) }).partial();

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
      sessionId,
      prompt: prompt.describe('the next message'),
      waitMs: waitMs.describe('as in claude_code').optional(),
      forkSession: z.boolean().describe('continue in a copy with a new id').optional(),
      whenBusy: z.enum(['reject', 'queue']).describe('default reject').optional(),
      model: commonOptions.model.describe('from this turn on').optional(),
      permissionMode: listedAs(commonOptions.permissionMode.optional(), {
        type: 'string',
        description: 'as in claude_code, from this turn on',
      }),
      permissionRequestTimeoutMs: unlisted(commonOptions.permissionRequestTimeoutMs.optional()),
      sessionInitTimeoutMs: unlisted(z.int().positive().max(2_147_483_647).optional()),
      resumeToken: z.string().min(1).describe('from the start, for a session only on disk').optional(),
      diskResumeConfig: listedAs(diskResumeConfig.optional(), {
        type: 'object',
        description: 'for a session only on disk: options of claude_code, resumeSessionAt',
      }),
    }),
  output: () => checkOutput,
  flatNames: DISK_NAMES,
  normalize,
  failure: (error, args) => ({
    sessionId: typeof args['sessionId'] === 'string' ? args['sessionId'].slice(0, 200) : '',
    status: 'error',
    isError: true,
    error,
  }),
  async run(args, context) {
    if (context.forms?.session) return startedView(context.forms.session, args.waitMs, context);
    const { resumeSessionAt, ...options } = args.diskResumeConfig ?? {};
    const session = await context.engine.reply({
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
    });
    return startedView(session, args.waitMs, context);
  },
});

function normalize(args: Arguments): Arguments {
  const nested = nestFlat(args, 'diskResumeConfig', DISK_NAMES);
  const config = nested['diskResumeConfig'];
  if (typeof config !== 'object' || config === null || Array.isArray(config)) return nested;
  return { ...nested, diskResumeConfig: nestAdvanced(config as Arguments) };
}
