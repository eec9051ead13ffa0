import { z } from 'zod';
import { attemptList, attemptsOption } from '../../../schema/commands.ts';
import { ADVANCED_OPTION_NAMES, commonOptions } from '../../../schema/session-options.ts';
import { carriedOut, defineTool } from '../../define-tool.ts';
import { listedAs } from '../../list-schema.ts';
import { TOOLS_FOR_RULES } from '../../../views/tool-names.ts';
import { defined } from '../../../schema/json.ts';
import { prompt } from '../fields.ts';
import { advanced, flatOptions, nestAdvanced, startOutput, startWaitMs } from './shared.ts';
import { startedView } from './view-options.ts';

const describedOptions = {
  ...commonOptions,
  cwd: commonOptions.cwd.describe("existing directory; default: the client's root, else the server's"),
  allowedTools: commonOptions.allowedTools.describe('auto-approved: Read, Bash(npm test *), mcp__server__tool'),
  disallowedTools: commonOptions.disallowedTools.describe(
    'always refused: WebFetch, Bash(curl *), Edit(src/**). Bash rules match prefixes; a script that calls curl gets past them, but not past the sandbox',
  ),
  permissionMode: commonOptions.permissionMode.describe(
    'default asks before risky tools; acceptEdits allows edits; plan plans, then asks to start; dontAsk denies what is not allowed; auto: a model decides; bypassPermissions never asks, if permitted',
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
    'Start Claude Code, an autonomous coding agent, on a task. Returns a sessionId at once; with waitMs, what claude_code_check does with "wait". ' +
    `Tools for the lists: ${toolNames(knownTools)}.`,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: () =>
    z.strictObject({
      prompt: prompt.describe('the task').meta({ note: 'The task. Not blank.' }),
      waitMs: startWaitMs.describe('return when it rests, asks or time is up; default 0, best 45000').optional(),
      attempts: listedAs(attemptsOption.optional(), {
        anyOf: [{ type: 'integer' }, { type: 'array', items: { type: 'object' } }],
        description: '2-8, or [{prompt?, model?, effort?}]: try the task so often, each in its own worktree',
      }).meta({
        note: 'Try the task several times side by side: how many times (2 to 8), or a list of what differs (`prompt`, `model`, `effort`). Each attempt gets its own worktree of the repository of `cwd`, all from one commit, and all are started before any is waited for. `maxBudgetUsd` applies to each. Not together with `workspace.branch`.',
        whenOmitted: 'one session',
      }),
      ...z.strictObject(describedOptions).partial().shape,
      advanced: advanced.optional(),
    }),
  output: () => startOutput,
  flatNames: ADVANCED_OPTION_NAMES,
  normalize: nestAdvanced,
  directoryParameter: 'cwd',
  failure: (error) => ({ sessionId: '', status: 'error', isError: true, error }),
  async run({ prompt: text, waitMs: wait, attempts, ...options }, context) {
    const command = {
      kind: 'start' as const,
      prompt: text,
      options: flatOptions(options),
      ...(attempts !== undefined && { attempts: attemptList(attempts) }),
      defaults: defined({ permissionMode: 'default' as const, cwd: context.defaultDirectory }),
    };
    const started = await carriedOut<'start'>(context, command, wait);
    return startedView(started, wait, context);
  },
});

/** Once a session has started, those that it really has. */
function toolNames(known: readonly string[] = TOOLS_FOR_RULES): string {
  const shown = TOOLS_FOR_RULES.filter((name) => known.includes(name));
  const more = known.length - shown.length;
  return `${shown.join(', ')}${more > 0 ? ` and ${String(more)} more (includeTools)` : ''}`;
}
