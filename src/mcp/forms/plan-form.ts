import { z } from 'zod';
import type { OpenRequest } from '../../engine/requests.ts';
import { oneLine } from '../../engine/tool-summary.ts';
import type { Asker, Form } from './form.ts';
import { barred, field, visibleText } from './visible-text.ts';

export const APPROVE = 'Approve and start the work';
export const CHANGE = 'Ask for changes';

const PLAN_CHARS = 8_000;

/** The words of `respond_permission`, for a client whose user is a script. */
const TOOL_WORDS: ReadonlyMap<unknown, string> = new Map([
  ['allow', APPROVE],
  ['deny', CHANGE],
]);

const decision = z.preprocess((word) => TOOL_WORDS.get(word) ?? word, z.enum([APPROVE, CHANGE]));
const content = z.object({ decision, changes: z.string().nullish() });

/** Is this plan good? */
export function planForm({ id, cwd }: Asker, { ask, plan = '' }: OpenRequest): Form {
  const file = ask.input['planFilePath'];
  return {
    message: [
      'Claude has a plan and asks to start the work.',
      plan.trim() === '' ? 'It did not write the plan down.' : barred(visibleText(plan.trim(), PLAN_CHARS)),
      ...(typeof file === 'string' ? [field('Plan file', oneLine(file, 300))] : []),
      field('Directory', `${oneLine(cwd ?? '', 300)} (session ${id.slice(0, 8)})`),
    ].join('\n'),
    requestedSchema: {
      type: 'object',
      properties: {
        decision: { type: 'string', title: 'Decision', enum: [APPROVE, CHANGE] },
        changes: {
          type: 'string',
          title: 'Changes',
          description: `With “${CHANGE}”: what the plan should say instead`,
        },
      },
      required: ['decision'],
    },
    read(given) {
      const { success, data } = content.safeParse(given);
      if (!success) return undefined;
      return data.decision === APPROVE
        ? { decision: 'allow' }
        : { decision: 'deny', message: changesWanted(data.changes?.trim() ?? '') };
    },
    declined: 'The user does not want this plan. Ask what they want before you go on.',
  };
}

function changesWanted(changes: string): string {
  return changes === ''
    ? 'The user wants another plan but did not say what to change: ask.'
    : `The user wants the plan changed: ${changes}`;
}
