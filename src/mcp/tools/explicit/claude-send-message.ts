import { z } from 'zod';
import { carriedOut, defineTool, sessionIdOf, shownWarnings } from '../../define-tool.ts';
import { prompt, sessionId } from '../fields.ts';
import { motionWaitMs, movedView, statusOutput } from './shared.ts';

export const claudeSendMessage = defineTool({
  name: 'claude_send_message',
  title: 'Send a message to a session',
  describe: () =>
    'Send the next message to any session on this machine, even one started in a terminal. A working session takes it up when it can.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: () =>
    z.strictObject({
      sessionId: sessionId.meta({
        note: 'The session; may also be one that exists only on disk or was started in a terminal.',
      }),
      message: prompt
        .describe('the next message')
        .meta({ note: 'What to say. A working session takes it up when it can; an idle one continues with it.' }),
      waitMs: motionWaitMs.describe('default 0, best 45000').optional(),
      fork: z.boolean().describe('continue in a copy with a new id').optional().meta({
        note: 'The message goes to a copy of the session with a new id; the original is unchanged.',
        whenOmitted: '`false`',
      }),
    }),
  output: () => statusOutput,
  failure: (error, args) => ({ sessionId: sessionIdOf(args), status: 'error', isError: true, error }),
  async run({ sessionId: id, message, waitMs: wait, fork = false }, context) {
    const { sessionId: to, warnings } = await carriedOut<'reply'>(
      context,
      {
        kind: 'reply',
        sessionId: id,
        prompt: message,
        fork,
        whenBusy: 'queue',
        streamsText: true,
        disk: { kind: 'open', options: {} },
      },
      wait,
    );
    const view = (await movedView(to, wait, context)) ?? { sessionId: to, status: 'running' };
    return { ...view, ...shownWarnings(warnings) };
  },
});
