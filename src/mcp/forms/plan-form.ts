import { z } from 'zod';
import type { RequestRecord } from '../../schema/events.ts';
import { SHOWN_CHARS } from '../../engine/requests/shown-request.ts';
import type { Asker, Form } from './form.ts';
import { describeFields } from './tool-details.ts';
import { barred, tooLongToAllow, visibleText, whereAsked } from './visible-text.ts';

export const APPROVE = 'Approve and start the work';
export const CHANGE = 'Ask for changes';

/** Same wording as `respond_permission`, for a client whose user is a script. */
const TOOL_WORDS: ReadonlyMap<unknown, string> = new Map([
  ['allow', APPROVE],
  ['deny', CHANGE],
]);

/** Is this plan good? */
export function planForm(asker: Asker, { ask, plan = '' }: RequestRecord): Form {
  const whole = visibleText(plan.trim());
  const others = Object.keys(ask.input).filter((name) => name !== 'plan' || ask.input[name] !== plan);
  const fields = describeFields(ask.input, others, () => Infinity);
  const fullLength = whole.length + fields.join('\n').length;
  const isCut = fullLength > SHOWN_CHARS;
  const choices = isCut ? [CHANGE] : [APPROVE, CHANGE];
  const decision = z.preprocess((word) => TOOL_WORDS.get(word) ?? word, z.enum(choices));
  const content = z.object({ decision, changes: z.string().nullish() });
  return {
    message: [
      'Claude has a plan and asks to start the work.',
      whole === ''
        ? 'It did not provide a written plan.'
        : barred(isCut ? visibleText(plan.trim(), SHOWN_CHARS / 2) : whole),
      ...(isCut ? describeFields(ask.input, others) : fields),
      ...(isCut ? [tooLongToAllow(fullLength)] : []),
      whereAsked(asker),
    ].join('\n'),
    requestedSchema: {
      type: 'object',
      properties: {
        decision: { type: 'string', title: 'Decision', enum: choices },
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
    declined: 'The user does not want this plan. Ask what they want before you continue.',
  };
}

function changesWanted(changes: string): string {
  return changes === ''
    ? 'The user wants a different plan but did not say what to change: ask.'
    : `The user wants the plan changed: ${changes}`;
}
