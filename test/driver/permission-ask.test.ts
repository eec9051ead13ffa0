import { expect, test } from 'vitest';
import { toAsk } from '../../src/driver/permission-ask.ts';

/** `options`: as the SDK passes them on, declared or not. */
function needsPerson(toolName: string, options: Record<string, unknown>): string | undefined {
  const given = { signal: AbortSignal.timeout(1), toolUseID: 't', requestId: 'r', ...options };
  return toAsk(toolName, {}, given).needsPerson;
}

test.each([
  ['Bash', {}],
  ['Bash', { decisionReasonType: 'other' }],
  ['Write', { serverPolicyAskOnly: true }],
  ['mcp__docs__find', { serverPolicyAskOnly: true }],
])('nothing speaks against an answer by a rule: %s %j', (toolName, options) => {
  expect(needsPerson(toolName, options)).toBeUndefined();
});

test.each([
  ['Bash', { matchedAskRule: { ruleValue: 'x' } }, 'ask rule'],
  ['Bash', { decisionReasonType: 'rule' }, 'ask rule'],
  ['Bash', { decisionReasonType: 'mode' }, 'mode'],
  ['Bash', { decisionReasonType: 'hook' }, 'hook'],
  ['Bash', { decisionReasonType: 'subcommandResults' }, 'several commands'],
  ['Bash', { decisionReasonType: 'sandboxOverride' }, 'outside the sandbox'],
  ['Bash', { decisionReasonType: 'workingDir' }, 'working directories'],
  ['Bash', { decisionReasonType: 'safetyCheck' }, 'safety check'],
  ['Bash', { decisionReasonType: 'classifier' }, 'classifier'],
  ['Bash', { decisionReasonType: 'something new' }, 'not known here'],
  ['Bash', { decisionReasonType: 'constructor' }, 'not known here'],
  ['Bash', { blockedPath: '/etc' }, 'path'],
  ['Bash', { requiresUserInteraction: true }, 'a person'],
  ['Bash', { defaultToNo: true }, 'a person'],
  ['Bash', { suppressAlwaysAllowRule: true }, 'a person'],
  ['Bash', { plugin: { name: 'x' } }, 'plugin'],
  ['Bash', { serverPrompt: 'x' }, 'has to see'],
  ['Bash', { serverPolicyAskOnly: false }, 'besides the default'],
  ['Write', {}, 'besides the default'],
  ['mcp__docs__find', {}, 'besides the default'],
])('a person has to decide: %s %j', (toolName, options, why) => {
  expect(needsPerson(toolName, options)).toContain(why);
});
