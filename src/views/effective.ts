import { oneLine } from '../engine/conversation/tool-summary.ts';
import type { SessionRecord } from '../schema/records.ts';

const RULES_CHARS = 300;

/** One line on what a session actually runs under, for a caller that relied on defaults. */
export function effectiveLine({ options, permissionMode }: SessionRecord): string {
  const { cwd, allowedTools = [], disallowedTools = [] } = options;
  return [
    `permissionMode ${permissionMode ?? 'default'}`,
    ...(cwd === undefined ? [] : [`cwd ${cwd}`]),
    ...(allowedTools.length === 0 ? [] : [`allowed ${oneLine(allowedTools.join(', '), RULES_CHARS)}`]),
    ...(disallowedTools.length === 0 ? [] : [`disallowed ${oneLine(disallowedTools.join(', '), RULES_CHARS)}`]),
  ].join('; ');
}
