import { z } from 'zod';
import { defineTool } from '../../define-tool.ts';
import { explicitStatus } from '../../../views/status.ts';
import { sessionId } from '../fields.ts';
import { briefOutput } from './shared.ts';

export const claudeInterrupt = defineTool({
  name: 'claude_interrupt',
  title: 'Interrupt a session',
  describe: () => 'Stop what a session is doing, like Escape. It still accepts messages.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  input: () => z.strictObject({ sessionId }),
  output: () => briefOutput,
  async run({ sessionId: id }, { engine }) {
    await engine.execute<'interrupt'>({ kind: 'interrupt', sessionId: id });
    return { sessionId: id, status: explicitStatus((await engine.read(id)).record) };
  },
});
