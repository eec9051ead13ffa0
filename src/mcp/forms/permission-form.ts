import { z } from 'zod';
import type { Answer } from '../../engine/answer.ts';
import type { OpenRequest } from '../../engine/requests.ts';
import { oneLine } from '../../engine/tool-summary.ts';
import type { Asker, Form } from './form.ts';
import { describeRules, lastingRules, type LastingRule } from './lasting-rules.ts';
import { toolDetails } from './tool-details.ts';
import { field } from './visible-text.ts';

export const ALLOW_ONCE = 'Allow once';
export const ALWAYS_ALLOW = 'Always allow';
export const DENY = 'Deny';

/** The words of `respond_permission`, for a client whose user is a script. */
const TOOL_WORDS: ReadonlyMap<unknown, string> = new Map([
  ['allow', ALLOW_ONCE],
  ['deny', DENY],
]);

/** May this tool be used? */
export function permissionForm({ id, cwd }: Asker, { ask }: OpenRequest): Form {
  const rules = lastingRules(ask);
  const choices = rules.length > 0 ? [ALLOW_ONCE, ALWAYS_ALLOW, DENY] : [ALLOW_ONCE, DENY];
  const decision = z.preprocess((word) => TOOL_WORDS.get(word) ?? word, z.enum(choices));
  const content = z.object({ decision, message: z.string().nullish() });
  return {
    message: [
      `Claude${ask.agentId === undefined ? '' : ' (a sub-agent)'} wants to use ${oneLine(ask.toolName, 100)}.`,
      toolDetails(ask),
      ...(ask.decisionReason === undefined ? [] : [field('Asked because', oneLine(ask.decisionReason, 300))]),
      ...(ask.blockedPath === undefined ? [] : [field('Path', oneLine(ask.blockedPath, 300))]),
      field('Directory', `${oneLine(cwd ?? '', 300)} (session ${id.slice(0, 8)})`),
      ...(rules.length === 0 ? [] : [`“${ALWAYS_ALLOW}” adds: ${describeRules(rules)}`]),
    ]
      .filter((part) => part !== '')
      .join('\n'),
    // No default: nothing is approved by a stray return key.
    requestedSchema: {
      type: 'object',
      properties: {
        decision: { type: 'string', title: 'Decision', enum: choices },
        message: { type: 'string', title: 'Message', description: `With “${DENY}”: why, or what to do instead` },
      },
      required: ['decision'],
    },
    read(given) {
      const { success, data } = content.safeParse(given);
      return success ? toAnswer(data.decision, data.message ?? '', rules) : undefined;
    },
    declined: 'The user refused this.',
  };
}

function toAnswer(decision: string, message: string, rules: LastingRule[]): Answer {
  switch (decision) {
    case ALLOW_ONCE:
      return { decision: 'allow' };
    case ALWAYS_ALLOW:
      return { decision: 'allow', updatedPermissions: rules };
    default:
      return {
        decision: 'deny',
        message: message.trim() === '' ? 'The user refused this.' : `The user refused this: ${message.trim()}`,
      };
  }
}
