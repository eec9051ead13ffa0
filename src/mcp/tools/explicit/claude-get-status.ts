import { z } from 'zod';
import { requestNotFound } from '../../../engine/session-errors.ts';
import { defineTool } from '../../define-tool.ts';
import { unlisted } from '../../list-schema.ts';
import { explicitStatusView } from '../../views/explicit-status-view.ts';
import { MAX_WAIT_MS, waitForSession } from '../../wait.ts';
import { sessionId, waitMs } from '../fields.ts';
import { DEFAULT_OUTPUT_LINES, statusOutput } from './shared.ts';

export const claudeGetStatus = defineTool({
  name: 'claude_get_status',
  title: 'Get the status of a session',
  describe: () => "What a session says, does and asks. result is Claude's claim, work.problems the evidence.",
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: () =>
    z.strictObject({
      sessionId,
      waitMs: waitMs.max(MAX_WAIT_MS).describe('default 0, best 45000').optional(),
      inputId: z.string().min(1).describe('show this request in full').optional(),
      turn: z.enum(['last', 'all']).describe('output since the last message (default), or all').optional(),
      outputLines: unlisted(z.int().min(0).max(10_000).optional()),
    }),
  output: () => statusOutput,
  async run(args, context) {
    const asked = await context.engine.session(args.sessionId);
    if (args.inputId !== undefined && !asked.findRequest(args.inputId)) throw requestNotFound(args.inputId);
    const session = await waitForSession(asked, args.waitMs ?? 0, context);
    return explicitStatusView(session, {
      outputLines: args.outputLines ?? DEFAULT_OUTPUT_LINES,
      turn: args.turn ?? 'last',
      wholeInputId: args.inputId,
    });
  },
});
