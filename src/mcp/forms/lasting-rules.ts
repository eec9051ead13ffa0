import type { PermissionAsk } from '../../driver/permission-ask.ts';
import { suggestedRules, type LastingRule } from '../../engine/answer.ts';
import { oneLine } from '../../engine/tool-summary.ts';

/** Lasting grants must be readable in full too: rules longer than this are not offered. */
const MAX_RULES_LENGTH = 2_000;

/** What a form offers as "always allow". */
export function lastingRules(ask: Pick<PermissionAsk, 'suggestions' | 'onceOnly'>): LastingRule[] {
  const rules = suggestedRules(ask);
  return describeRules(rules).length < MAX_RULES_LENGTH ? rules : [];
}

const PLACES: Record<LastingRule['destination'], string> = {
  userSettings: 'your settings for all projects',
  projectSettings: 'the shared settings of this project',
  localSettings: 'your own settings for this project',
  session: 'this session only',
  cliArg: 'this session only',
};

export function describeRules(updates: LastingRule[]): string {
  return updates
    .map(({ rules, destination }) => {
      return `${ruleNames(rules).join(', ')} (${PLACES[destination]})`;
    })
    .join('; ');
}

/** Without the destinations that Claude Code suggests for them. */
export function describeRuleNames(updates: LastingRule[]): string {
  return updates.flatMap(({ rules }) => ruleNames(rules)).join(', ');
}

function ruleNames(rules: LastingRule['rules']): string[] {
  return rules.map(({ toolName, ruleContent }) =>
    oneLine(ruleContent === undefined ? toolName : `${toolName}(${ruleContent})`, MAX_RULES_LENGTH),
  );
}
