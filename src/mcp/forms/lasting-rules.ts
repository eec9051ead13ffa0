import type { PermissionAsk, PermissionUpdate } from '../../driver/permission-ask.ts';
import { oneLine } from '../../engine/tool-summary.ts';

/** What is granted for good is read whole too: rules that take more words than this are not offered. */
const LONGEST_RULES = 2_000;

export type LastingRule = Extract<PermissionUpdate, { type: 'addRules' }>;

/**
 * What "always allow" grants: the rules Claude Code suggests that allow, and nothing else. A form can name a rule in
 * one line. The suggestions that come along with it (`setMode acceptEdits` with a mere `touch`, `addDirectories`)
 * would open far more than what was asked about, the latter also past the operator's allowed directories.
 */
export function lastingRules({
  suggestions,
  onceOnly,
}: Pick<PermissionAsk, 'suggestions' | 'onceOnly'>): LastingRule[] {
  if (onceOnly) return [];
  const rules = (suggestions ?? []).filter(
    (update): update is LastingRule =>
      update.type === 'addRules' && update.behavior === 'allow' && update.rules.length > 0,
  );
  return describeRules(rules).length < LONGEST_RULES ? rules : [];
}

const PLACES: Record<LastingRule['destination'], string> = {
  userSettings: 'your settings for all projects',
  projectSettings: 'the shared settings of this project',
  localSettings: 'your own settings of this project',
  session: 'this session only',
  cliArg: 'this session only',
};

export function describeRules(updates: LastingRule[]): string {
  return updates
    .map(({ rules, destination }) => {
      const names = rules.map(({ toolName, ruleContent }) =>
        oneLine(ruleContent === undefined ? toolName : `${toolName}(${ruleContent})`, LONGEST_RULES),
      );
      return `${names.join(', ')} (${PLACES[destination]})`;
    })
    .join('; ');
}
