import { z } from 'zod';
import { DomainError } from '../../../errors/errors.ts';
import { advancedOptions, commonOptions, type SessionOptions } from '../../../schema/session-options.ts';
import { carriedOut, defineTool, shownWarnings } from '../../define-tool.ts';
import { effectiveLine } from '../../../views/session-view.ts';
import { defined } from '../../../schema/json.ts';
import { prompt } from '../fields.ts';
import { motionWaitMs, movedView, statusOutput } from './shared.ts';

const { cwd, model, allowedTools, disallowedTools, maxTurns } = commonOptions;

const options = z
  .strictObject({
    workingDirectory: cwd
      .describe("default: the client's root, else the server's")
      .meta({ note: 'Directory to work in; it must exist.' }),
    model: model.describe('name or alias'),
    permissionMode: z
      .enum(['default', 'acceptEdits', 'plan', 'bypassPermissions'])
      .describe(
        'default asks before risky tools; acceptEdits allows edits; plan plans, then asks to start; bypassPermissions never asks, if permitted. Omitted: as configured',
      )
      .meta({
        note:
          '`default` asks before anything risky; `acceptEdits` allows file edits; `plan` only plans and asks before it starts; ' +
          '`bypassPermissions` never asks and requires the operator’s `ALLOW_BYPASS`.',
        whenOmitted: 'from the user’s Claude Code settings',
      }),
    allowedTools: allowedTools.describe('run without asking, e.g. Read, Bash(git diff *)'),
    disallowedTools: disallowedTools.describe(
      'always refused: WebFetch, Bash(curl *), Edit(src/**); a script that runs curl gets past',
    ),
    maxTurns: maxTurns.describe('maximum model turns'),
    maxBudgetUsd: advancedOptions.maxBudgetUsd.describe('stop at this cost'),
    systemPrompt: z
      .string()
      .min(1)
      .describe("appended to Claude Code's")
      .meta({ note: 'Added to Claude Code’s own system prompt.', whenOmitted: 'nothing added' }),
    dangerouslySkipPermissions: z.boolean().describe('as bypassPermissions').meta({
      note: 'The same as `permissionMode` `bypassPermissions`; requires the operator’s `ALLOW_BYPASS`.',
      whenOmitted: '`false`',
    }),
  })
  .partial();

type Given = z.infer<typeof options>;

export const claudeCreateSession = defineTool({
  name: 'claude_create_session',
  title: 'Start a Claude Code session',
  describe: () =>
    'Start Claude Code, an autonomous coding agent, on a task. Returns a sessionId immediately; with waitMs it returns what claude_get_status does.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: () =>
    z.strictObject({
      prompt: prompt.describe('the task').meta({ note: 'The task. Not blank.' }),
      waitMs: motionWaitMs
        .describe('return when it finishes, asks, or time is up; default 0, recommended 45000')
        .optional(),
      ...options.shape,
    }),
  output: () => statusOutput,
  directoryParameter: 'workingDirectory',
  failure: (error) => ({ sessionId: '', status: 'error', isError: true, error }),
  async run({ prompt: text, waitMs: wait, ...given }, context) {
    const { sessionId, warnings } = await carriedOut<'start'>(
      context,
      {
        kind: 'start',
        prompt: text,
        options: sessionOptions(given),
        defaults: defined({ cwd: context.defaultDirectory }),
        streamsText: true,
      },
      wait,
    );
    const view = (await movedView(sessionId, wait, context)) ?? { sessionId, status: 'running' };
    const { record } = await context.engine.read(sessionId);
    return { ...view, effective: effectiveLine(record), ...shownWarnings(warnings) };
  },
});

function sessionOptions(given: Given): SessionOptions {
  const { workingDirectory, systemPrompt, dangerouslySkipPermissions, permissionMode, ...same } = given;
  const skips = dangerouslySkipPermissions === true;
  if (skips && permissionMode !== undefined && permissionMode !== 'bypassPermissions') {
    throw new DomainError(
      'INVALID_ARGUMENT',
      `dangerouslySkipPermissions and permissionMode "${permissionMode}" contradict each other; give one of them.`,
    );
  }
  return defined({
    ...same,
    cwd: workingDirectory,
    permissionMode: skips ? 'bypassPermissions' : permissionMode,
    ...(systemPrompt !== undefined && {
      systemPrompt: { type: 'preset' as const, preset: 'claude_code' as const, append: systemPrompt },
    }),
  });
}
