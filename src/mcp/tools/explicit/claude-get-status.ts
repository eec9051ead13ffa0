import { z } from 'zod';
import { STATUS_SPANS } from '../../../schema/enums.ts';
import { requestNotFound } from '../../../engine/session/session-errors.ts';
import { defineTool } from '../../define-tool.ts';
import { explicitStatusView } from '../../../views/explicit-view.ts';
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
      waitMs: waitMs.max(MAX_WAIT_MS).describe('default 0, best 45000').optional().meta({
        note: 'Wait up to this long for the session to finish or ask something. The wait continues while a person has a form open.',
      }),
      inputId: z.string().min(1).describe('show this request in full').optional().meta({
        note: 'Show this one of `pendingInputs` in full, however long it is.',
        whenOmitted: 'up to 32,000 characters of each',
      }),
      turn: z.enum(STATUS_SPANS).describe('output since the last message (default), or all').optional().meta({
        note: '`last`: `recentOutput` and `toolUseEvents` since the last message; `all`: from the oldest event kept.',
        whenOmitted: '`last`',
      }),
      outputLines: z.int().min(0).max(10_000).describe('default 50').optional().meta({
        note: 'How many lines of `recentOutput` to return.',
        whenOmitted: '50',
      }),
    }),
  output: () => statusOutput,
  async run(args, context) {
    const { engine } = context;
    const { requests } = await engine.read(args.sessionId);
    if (args.inputId !== undefined && !requests.some(({ id }) => id === args.inputId))
      throw requestNotFound(args.inputId);
    await waitForSession(args.sessionId, args.waitMs ?? 0, context);
    return explicitStatusView(await engine.read(args.sessionId), {
      outputLines: args.outputLines ?? DEFAULT_OUTPUT_LINES,
      turn: args.turn ?? 'last',
      wholeInputId: args.inputId,
      once: false,
    });
  },
});
