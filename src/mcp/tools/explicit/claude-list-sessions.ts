import { z } from 'zod';
import { defineTool } from '../../define-tool.ts';
import { listedSessionView } from '../../../views/explicit-view.ts';
import { listedSession } from '../../../schema/listed-sessions.ts';
import { errorFields } from './shared.ts';

const DEFAULT_LIMIT = 50;

export const claudeListSessions = defineTool({
  name: 'claude_list_sessions',
  title: 'List all sessions on this machine',
  describe: () => 'All Claude Code sessions on this machine, newest first.',
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: () =>
    z.strictObject({
      projectDirectory: z
        .string()
        .min(1)
        .describe('only its sessions')
        .optional()
        .meta({ note: 'Only sessions in this directory.', whenOmitted: 'all' }),
      limit: z
        .int()
        .positive()
        .max(10_000)
        .describe('default 50')
        .optional()
        .meta({ note: 'Maximum number of sessions, newest first.', whenOmitted: '50' }),
    }),
  output: () =>
    z.looseObject({
      sessions: z.array(listedSession).meta({ note: 'All Claude Code sessions on this machine.' }),
      ...errorFields,
    }),
  failure: (error) => ({ sessions: [], isError: true, error }),
  async run({ projectDirectory, limit = DEFAULT_LIMIT }, { engine }) {
    const sessions = await engine.listMachine({ projectDirectory, limit });
    const { seesDetails } = engine;
    return { sessions: sessions.map((session) => listedSessionView(session, seesDetails)) };
  },
});
