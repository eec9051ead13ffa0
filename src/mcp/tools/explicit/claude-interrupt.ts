import { z } from 'zod';
import { defineTool } from '../../define-tool.ts';
import { explicitStatus } from '../../views/status.ts';
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
    const session = await engine.session(id);
    await engine.interrupt(session.id);
    return { sessionId: session.id, status: explicitStatus(session) };
  },
});
