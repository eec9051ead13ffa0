import { z } from 'zod';
import { defineTool } from '../../define-tool.ts';
import { prompt, sessionId } from '../fields.ts';
import { startWarnings } from '../start-warnings.ts';
import { startedOutput } from './shared.ts';

export const claudeSendMessage = defineTool({
  name: 'claude_send_message',
  title: 'Send a message to a session',
  describe: () =>
    'Send the next message to any session of this machine (claude_list_sessions), also one made in a terminal. ' +
    'A working session takes it up as soon as it can; one at rest goes on.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: () =>
    z.strictObject({
      sessionId,
      message: prompt,
      fork: z.boolean().describe('answer in a copy with a new id').optional(),
    }),
  output: () => startedOutput,
  async run({ sessionId: id, message, fork = false }, { engine, client }) {
    const session = await engine.reply({
      sessionId: id,
      prompt: message,
      by: client,
      fork,
      whenBusy: 'queue',
      streamsText: true,
      disk: { kind: 'open', options: {} },
    });
    return { sessionId: session.id, status: 'running', ...startWarnings(session) };
  },
});
