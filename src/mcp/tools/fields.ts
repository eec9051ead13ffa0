import { z } from 'zod';
import { answers as questionAnswers } from '../../schema/commands.ts';
import { VERDICTS } from '../../schema/enums.ts';
import { listedAs } from '../list-schema.ts';

/** Parameters that mean the same in both toolsets. */

export const sessionId = z.string().min(1).meta({ note: 'The session.' });
export const prompt = z.string().refine((text) => text.trim() !== '', 'must not be blank');
export const waitMs = z.int().min(0).meta({ whenOmitted: '0: return immediately' });
export const decision = z.enum(VERDICTS).describe('for a plan: allow starts the work');
export const updatedInput = z
  .record(z.string(), z.unknown())
  .describe('with allow: replaces the whole input; give every field')
  .meta({ whenOmitted: 'the requested input' });

/** As one of several options, and as a parameter of its own. */
export const confirmOption = z.string().describe('for an old request').meta({
  note: 'With `allow`, for a request that is old or whose file, directory or branch has changed since: the digest that the refusal names.',
  whenOmitted: 'none',
});
export const confirm = confirmOption.optional();

export const answers = listedAs(questionAnswers, {
  anyOf: [{ type: 'object' }, { type: 'array', items: {} }],
  description: '{"<question>": "<label or text>"}, or a list in order',
}).meta({
  note: 'Answers to a question: `{"<question text>": "<label or text>"}`, or a list in the order of the questions; multiple labels as a list. Also accepted inside `updatedInput`.',
  whenOmitted: 'none',
});
