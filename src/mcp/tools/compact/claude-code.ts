import { z } from 'zod';
import { ADVANCED_OPTION_NAMES, commonOptions } from '../../../schema/session-options.ts';
import { defineTool } from '../../define-tool.ts';
import { listedAs } from '../../list-schema.ts';
import { USUAL_TOOLS } from '../../views/tool-catalogue.ts';
import { defined, prompt, waitMs } from '../fields.ts';
import { advanced, checkOutput, flatOptions, nestAdvanced } from './shared.ts';
import { startedView } from './started-view.ts';

/** A long list of MCP tools would cost every caller; `includeTools` of a check shows it whole. */
const MOST_TOOLS_NAMED = 60;

export const claudeCode = defineTool({
  name: 'claude_code',
  title: 'Start a Claude Code session',
  describe: (knownTools) =>
    'Start Claude Code, an autonomous coding agent, on a task. Returns a sessionId at once, or with waitMs also the answer. ' +
    'Then claude_code_check with action "wait" until status is idle (result) or waiting_permission (answer actions with respond_permission), ' +
    `and claude_code_reply to talk on. Tools for allowedTools/disallowedTools: ${toolNames(knownTools ?? USUAL_TOOLS)}.`,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: () =>
    z.strictObject({
      prompt,
      ...z.strictObject(commonOptions).partial().shape,
      systemPrompt: listedAs(commonOptions.systemPrompt.optional(), {
        anyOf: [{ type: 'string' }, { type: 'object' }],
        description: 'replaces; or {type:"preset", preset:"claude_code", append}',
      }),
      waitMs: waitMs.optional(),
      advanced: advanced.optional(),
    }),
  output: () => checkOutput,
  flatNames: ADVANCED_OPTION_NAMES,
  normalize: nestAdvanced,
  directoryParameter: 'cwd',
  failure: (error) => ({ sessionId: '', status: 'error', isError: true, error }),
  async run({ prompt: text, waitMs: wait, ...options }, context) {
    if (context.forms?.session) return startedView(context.forms.session, wait, context);
    const session = await context.engine.start({
      prompt: text,
      by: context.client,
      options: flatOptions(options),
      defaults: defined({ permissionMode: 'default' as const, cwd: context.defaultDirectory }),
    });
    return startedView(session, wait, context);
  },
});

function toolNames(names: readonly string[]): string {
  const shown = names.slice(0, MOST_TOOLS_NAMED).join(', ');
  return names.length > MOST_TOOLS_NAMED ? `${shown} and ${String(names.length - MOST_TOOLS_NAMED)} more` : shown;
}
