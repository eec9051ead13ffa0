import type { Options } from '@anthropic-ai/claude-agent-sdk';
import type { SessionOptions } from '../schema/session-options.ts';
import { onlyBundledProgram } from './bundled-claude-code.ts';
import { EXPOSED_OPTIONS } from './options-table.ts';

/** A question needs an answer, not a permission: approved in advance, it would get an empty answer. */
const NEVER_APPROVED_IN_ADVANCE = new Set(['AskUserQuestion']);

/**
 * Without it the SDK sends an empty prompt instead of Claude Code's own, and what runs is no longer the user's Claude
 * Code; with it, nothing is sent.
 */
const OWN_SYSTEM_PROMPT = { type: 'preset', preset: 'claude_code' } as const;

/** What a caller set, in the SDK's form. An omitted option is not passed to Claude Code. */
export function sdkOptions(given: SessionOptions): Options {
  const options: Record<string, unknown> = { systemPrompt: OWN_SYSTEM_PROMPT };
  for (const name of EXPOSED_OPTIONS) if (given[name] !== undefined) options[name] = given[name];
  if (given.allowedTools) {
    options['allowedTools'] = given.allowedTools.filter((tool) => !NEVER_APPROVED_IN_ADVANCE.has(tool));
  }
  if (given.permissionMode === 'bypassPermissions') options['allowDangerouslySkipPermissions'] = true;
  return options;
}

/** Like above, for a process that is about to be started. */
export function launchOptions(given: SessionOptions, managedSettings?: Options['managedSettings']): Options {
  const program = onlyBundledProgram();
  return {
    ...(program !== undefined && { pathToClaudeCodeExecutable: program }),
    ...sdkOptions(given),
    ...(managedSettings && { managedSettings }),
  };
}
