import { z } from 'zod';
import type { OpenRequest } from '../../engine/requests.ts';
import { SHOWN_CHARS } from '../../engine/shown-request.ts';
import { oneLine } from '../../engine/tool-summary.ts';
import type { Asker, Form } from './form.ts';
import { barred, field, MAX_PATH_LENGTH, tooLongToAllow, visibleText, whereAsked } from './visible-text.ts';

export const APPROVE = 'Approve and start the work';
export const CHANGE = 'Ask for changes';

/** Same wording as `respond_permission`, for a client whose user is a script. */
const TOOL_WORDS: ReadonlyMap<unknown, string> = new Map([
  ['allow', APPROVE],
  ['deny', CHANGE],
]);

/** Is this plan good? */
export function planForm(asker: Asker, { ask, plan = '' }: OpenRequest): Form {
  const file = ask.input['planFilePath'];
  const whole = visibleText(plan.trim());
  const isCut = whole.length > SHOWN_CHARS;
  const choices = isCut ? [CHANGE] : [APPROVE, CHANGE];
  const decision = z.preprocess((word) => TOOL_WORDS.get(word) ?? word, z.enum(choices));
  const content = z.object({ decision, changes: z.string().nullish() });
  return {
    message: [
      'Claude has a plan and asks to start the work.',
      whole === ''
        ? 'It did not provide a written plan.'
        : barred(isCut ? visibleText(plan.trim(), SHOWN_CHARS / 2) : whole),
      ...(isCut ? [tooLongToAllow(whole.length)] : []),
      ...(typeof file === 'string' ? [field('Plan file', oneLine(file, MAX_PATH_LENGTH))] : []),
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
