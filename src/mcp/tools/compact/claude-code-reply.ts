import { z } from 'zod';
import { ADVANCED_OPTION_NAMES, commonOptions } from '../../../schema/session-options.ts';
import { nestFlat, type Arguments } from '../../arguments.ts';
import { defineTool } from '../../define-tool.ts';
import { listedAs } from '../../list-schema.ts';
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
    'Send the next message to a session at rest (its process is started again if it has gone). Returns like claude_code. ' +
    'forkSession answers in a new session and leaves the original alone; whenBusy "queue" hands the message to a working session.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: () =>
    z.strictObject({
      sessionId,
      prompt,
      waitMs: waitMs.optional(),
      forkSession: z.boolean().optional(),
      whenBusy: z.enum(['reject', 'queue']).optional(),
      model: commonOptions.model.optional(),
      permissionMode: commonOptions.permissionMode.optional(),
      permissionRequestTimeoutMs: commonOptions.permissionRequestTimeoutMs.optional(),
      sessionInitTimeoutMs: z.int().positive().max(2_147_483_647).optional(),
      resumeToken: z.string().min(1).optional(),
      diskResumeConfig: listedAs(diskResumeConfig.optional(), {
        type: 'object',
        description: 'For a session only the disk remembers: cwd, resumeSessionAt and the options of claude_code',
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
      by: context.client,
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
