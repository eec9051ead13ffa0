import { z } from 'zod';
import { ADVANCED_OPTION_NAMES, commonOptions } from '../../../schema/session-options.ts';
import { defineTool, repeated } from '../../define-tool.ts';
import { listedAs } from '../../list-schema.ts';
import { USUAL_TOOLS } from '../../../views/tool-names.ts';
import { defined, prompt } from '../fields.ts';
import { advanced, checkOutput, flatOptions, nestAdvanced, startWaitMs } from './shared.ts';
import { startedView } from './view-options.ts';

/** A long list of MCP tools would cost every caller; `includeTools` of a check shows it in full. */
const MAX_TOOLS_NAMED = 60;

const describedOptions = {
  ...commonOptions,
  cwd: commonOptions.cwd.describe("existing directory; default: the server's"),
  allowedTools: commonOptions.allowedTools.describe('auto-approved: Read, Bash(npm test *), mcp__server__tool'),
  disallowedTools: commonOptions.disallowedTools.describe(
    'always refused, even if approved: WebFetch, Bash(curl *), Edit(src/**). Bash rules match command prefixes; a script that calls curl gets past them, but not past the sandbox',
  ),
  permissionMode: commonOptions.permissionMode.describe(
    'default: asks before risky tools; acceptEdits: allows edits; plan: plans, then asks to start; dontAsk: denies what is not allowed; auto: a model decides; bypassPermissions: never asks (operator must allow)',
  ),
  maxTurns: commonOptions.maxTurns.describe('of the model'),
  model: commonOptions.model.describe('or alias'),
  systemPrompt: listedAs(commonOptions.systemPrompt, {
    anyOf: [{ type: 'string' }, { type: 'object' }],
    description: 'replaces; {type: "preset", preset: "claude_code", append} adds',
  }),
  permissionRequestTimeoutMs: commonOptions.permissionRequestTimeoutMs.describe('deny requests after this; 0: never'),
};

export const claudeCode = defineTool({
  name: 'claude_code',
  title: 'Start a Claude Code session',
  describe: (knownTools) =>
    'Start Claude Code, an autonomous coding agent, on a task. Returns a sessionId immediately; with waitMs it returns what claude_code_check does with "wait". ' +
    `Continue with claude_code_reply. Tools for allowedTools/disallowedTools: ${toolNames(knownTools ?? USUAL_TOOLS)}.`,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: () =>
    z.strictObject({
      prompt: prompt.describe('the task').meta({ note: 'The task. Not blank.' }),
      waitMs: startWaitMs.describe('return when it rests, asks or time is up; default 0, best 45000').optional(),
      ...z.strictObject(describedOptions).partial().shape,
      advanced: advanced.optional(),
    }),
  output: () => checkOutput,
  flatNames: ADVANCED_OPTION_NAMES,
  normalize: nestAdvanced,
  directoryParameter: 'cwd',
  failure: (error) => ({ sessionId: '', status: 'error', isError: true, error }),
  async run({ prompt: text, waitMs: wait, ...options }, context) {
    const command = {
      kind: 'start' as const,
      prompt: text,
      options: flatOptions(options),
      defaults: defined({ permissionMode: 'default' as const, cwd: context.defaultDirectory }),
    };
    const started = repeated(context) ?? (await context.engine.execute<'start'>(command));
    return startedView(started, wait, context);
  },
});

function toolNames(names: readonly string[]): string {
  const shown = names.slice(0, MAX_TOOLS_NAMED).join(', ');
  return names.length > MAX_TOOLS_NAMED ? `${shown} and ${String(names.length - MAX_TOOLS_NAMED)} more` : shown;
}
