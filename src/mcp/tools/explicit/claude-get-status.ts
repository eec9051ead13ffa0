import { z } from 'zod';
import { requestNotFound } from '../../../engine/session-errors.ts';
import { defineTool } from '../../define-tool.ts';
import { explicitStatusView } from '../../views/explicit-status-view.ts';
import { MAX_WAIT_MS, waitForSession } from '../../wait.ts';
import { sessionId, waitMs } from '../fields.ts';
import { errorFields, status } from './shared.ts';

const DEFAULT_OUTPUT_LINES = 50;

export const claudeGetStatus = defineTool({
  name: 'claude_get_status',
  title: 'Look at a session',
  describe: () =>
    'What a session does, says and asks. With waitMs (best: 45000) it answers as soon as the session is at rest or asks something; ' +
    'call it again while status is "running". Answer pendingInputs with claude_respond.',
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: () =>
    z.strictObject({
      sessionId,
      outputLines: z.int().min(0).max(10_000).describe('lines of recentOutput, default 50').optional(),
      waitMs: waitMs.max(MAX_WAIT_MS).optional(),
      inputId: z.string().min(1).describe('show this request whole').optional(),
    }),
  output: () =>
    z.looseObject({
      sessionId: z.string(),
      status: status.optional(),
      result: z.string().optional(),
      recentOutput: z.array(z.string()).optional(),
      pendingInputs: z
        .array(
          z.looseObject({
            inputId: z.string(),
            type: z.enum(['permission', 'plan_review', 'user_question']),
            toolName: z.string(),
            toolInput: z.looseObject({}),
            description: z.string(),
            inputTruncated: z.boolean().optional(),
            inputChars: z.number().optional(),
            expiresAt: z.string().optional(),
          }),
        )
        .optional(),
      toolUseEvents: z
        .array(z.looseObject({ toolName: z.string(), status: z.enum(['running', 'completed', 'denied', 'failed']) }))
        .optional(),
      costUsd: z.number().optional(),
      turnCount: z.number().optional(),
      ...errorFields,
    }),
  async run(args, context) {
    const session = context.engine.session(args.sessionId);
    if (args.inputId !== undefined && !session.findRequest(args.inputId)) throw requestNotFound(args.inputId);
    await waitForSession(session, args.waitMs ?? 0, context);
    return explicitStatusView(session, args.outputLines ?? DEFAULT_OUTPUT_LINES, args.inputId);
  },
});
