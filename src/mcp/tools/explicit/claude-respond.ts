import { z } from 'zod';
import { DomainError } from '../../../errors/errors.ts';
import { defineTool } from '../../define-tool.ts';
import { explicitStatus } from '../../views/status.ts';
import { answers, decision, sessionId, updatedInput } from '../fields.ts';
import { statusOutput } from './shared.ts';

export const claudeRespond = defineTool({
  name: 'claude_respond',
  title: 'Answer what a session asks',
  describe: () =>
    'Answer one of pendingInputs. A permission or a plan: allow, or deny with a reason (a denied plan comes back changed). ' +
    'A question: allow with answers {"<question>": "<label or text>"}.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: () =>
    z.strictObject({
      sessionId,
      inputId: z.string().min(1),
      decision,
      reason: z.string().describe('told to Claude with deny').optional(),
      updatedInput: updatedInput.describe('run the tool with this input instead').optional(),
      answers: answers.optional(),
    }),
  output: () => statusOutput,
  async run({ sessionId: id, inputId, reason, ...answer }, { engine }) {
    if (answer.decision === 'deny' && (answer.updatedInput ?? answer.answers) !== undefined)
      throw new DomainError('INVALID_ARGUMENT', 'updatedInput and answers go with decision "allow".');
    const { session } = engine.respond(id, inputId, { ...answer, message: reason });
    return { sessionId: session.id, status: explicitStatus(session) };
  },
});
