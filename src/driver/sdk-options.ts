import type { Options } from '@anthropic-ai/claude-agent-sdk';
import type { SessionOptions } from '../schema/session-options.ts';
import { EXPOSED_OPTIONS } from './options-table.ts';

/** A question needs an answer, not a permission: were it approved in advance, it would answer itself with nothing. */
const NEVER_APPROVED_IN_ADVANCE = new Set(['AskUserQuestion']);

/** What a caller set, as the SDK takes it. An option not given is an option not passed. */
export function sdkOptions(given: SessionOptions): Options {
  const options: Record<string, unknown> = {};
  for (const name of EXPOSED_OPTIONS) if (given[name] !== undefined) options[name] = given[name];
  if (given.allowedTools) {
    options['allowedTools'] = given.allowedTools.filter((tool) => !NEVER_APPROVED_IN_ADVANCE.has(tool));
  }
  if (given.permissionMode === 'bypassPermissions') options['allowDangerouslySkipPermissions'] = true;
  return options;
}
