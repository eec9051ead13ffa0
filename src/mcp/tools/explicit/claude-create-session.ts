import { z } from 'zod';
import { DomainError } from '../../../errors/errors.ts';
import { advancedOptions, commonOptions, type SessionOptions } from '../../../schema/session-options.ts';
import { defineTool } from '../../define-tool.ts';
import { defined, prompt } from '../fields.ts';
import { startWarnings } from '../start-warnings.ts';
import { startedOutput } from './shared.ts';

const { cwd, model, allowedTools, disallowedTools, maxTurns } = commonOptions;

const options = z
  .strictObject({
    workingDirectory: cwd.describe('default: that of the server'),
    model,
    permissionMode: z
      .enum(['default', 'acceptEdits', 'plan', 'bypassPermissions'])
      .describe('default: as Claude Code is configured'),
    allowedTools: allowedTools.describe('approved in advance, e.g. Read, Bash(git diff *)'),
    disallowedTools: disallowedTools.describe('always refused'),
    maxTurns,
    maxBudgetUsd: advancedOptions.maxBudgetUsd,
    systemPrompt: z.string().min(1).describe('appended to that of Claude Code'),
    dangerouslySkipPermissions: z.boolean().describe('asks nothing; only where the operator allows it'),
  })
  .partial();

type Given = z.infer<typeof options>;

export const claudeCreateSession = defineTool({
  name: 'claude_create_session',
  title: 'Start a Claude Code session',
  describe: () =>
    'Start Claude Code, an autonomous coding agent, on a task. Returns a sessionId at once; follow the work with claude_get_status.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  input: () => z.strictObject({ prompt, ...options.shape }),
  output: () => startedOutput,
  directoryParameter: 'workingDirectory',
  async run({ prompt: text, ...given }, { engine, client, defaultDirectory }) {
    const session = await engine.start({
      prompt: text,
      options: sessionOptions(given),
      defaults: defined({ cwd: defaultDirectory }),
      streamsText: true,
      by: client,
    });
    return { sessionId: session.id, status: 'running', ...startWarnings(session) };
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
