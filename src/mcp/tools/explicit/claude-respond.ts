import { z } from 'zod';
import { DomainError } from '../../../errors/errors.ts';
import { carriedOut, defineTool } from '../../define-tool.ts';
import { explicitStatus } from '../../../views/status.ts';
import { answers, confirm, decision, sessionId, updatedInput } from '../fields.ts';
import { motionWaitMs, movedView, statusOutput } from './shared.ts';

export const claudeRespond = defineTool({
  name: 'claude_respond',
  title: 'Answer a request of a session',
  describe: () =>
    'Answer one of pendingInputs; with waitMs, continue to the next one or the result. A denied plan comes back revised.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: () =>
    z.strictObject({
      sessionId,
      inputId: z.string().min(1).describe('from pendingInputs').meta({ note: 'Which of `pendingInputs` to answer.' }),
      decision: decision.meta({
        note: '`allow` or `deny`. For a plan: `allow` starts the work, `deny` asks for another plan.',
      }),
      waitMs: motionWaitMs.describe('default 0, best 45000').optional(),
      reason: z
        .string()
        .describe('told to Claude with deny')
        .optional()
        .meta({ note: 'With `deny`: what Claude is told.', whenOmitted: 'a generic refusal' }),
      updatedInput: updatedInput
        .optional()
        .meta({ note: 'With `allow`: run the tool with this input in place of the whole one asked for.' }),
      answers: answers.optional(),
      confirm,
      always: z.boolean().describe('also allow what alwaysAllows says, this session only').optional().meta({
        note: 'With `allow`: also allow, for this session, what `alwaysAllows` says.',
        whenOmitted: '`false`',
      }),
    }),
  output: () => statusOutput,
  async run({ sessionId: id, inputId, reason, waitMs: wait, ...answer }, context) {
    const { decision: verdict, updatedInput: changed, answers: given, always } = answer;
    if (verdict === 'deny' && ((changed ?? given) !== undefined || always === true))
      throw new DomainError(
        'INVALID_ARGUMENT',
        'updatedInput, answers and always are only valid with decision "allow".',
      );
    const command = {
      kind: 'respond',
      sessionId: id,
      requestId: inputId,
      answer: { ...answer, message: reason },
    } as const;
    await carriedOut<'respond'>(context, command, wait);
    const moved = await movedView(id, wait, context);
    return moved ?? { sessionId: id, status: explicitStatus((await context.engine.read(id)).record) };
  },
});
