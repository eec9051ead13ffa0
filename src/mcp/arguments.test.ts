import { expect, test } from 'vitest';
import { z } from 'zod';
import { nestFlat, parseArguments } from './arguments.ts';

const schema = z.strictObject({
  prompt: z.string(),
  maxTurns: z.int().positive().optional(),
  systemPrompt: z.union([z.string(), z.strictObject({ type: z.literal('preset') })]).optional(),
  advanced: z
    .strictObject({ effort: z.enum(['low', 'high']), debug: z.boolean() })
    .partial()
    .optional(),
});

const problemOf = (args: Record<string, unknown>): string => {
  try {
    parseArguments(schema, args, ['effort', 'debug']);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('no problem was reported');
};

test.each([
  [{ prompt: 'x', maxTurn: 3 }, 'Unknown parameter maxTurn; did you mean maxTurns?'],
  [{ prompt: 'x', efort: 'low' }, 'Unknown parameter efort; did you mean effort?'],
  [{ prompt: 'x', advanced: { efort: 'low' } }, 'Unknown parameter advanced.efort; did you mean effort?'],
  [{ prompt: 'x', zzzzzzzzz: 1 }, 'Unknown parameter zzzzzzzzz.'],
  [{ prompt: 7 }, 'prompt: '],
  [{}, 'prompt: '],
  [{ prompt: 'x', maxTurns: 0 }, 'maxTurns: '],
  [{ prompt: 'x', advanced: { effort: 'huge' } }, 'advanced.effort: '],
  [{ prompt: 'x', systemPrompt: { type: 'other' } }, 'systemPrompt.type: '],
])('%j → %s', (args, words) => {
  expect(problemOf(args)).toContain(words);
});

test('all problems are reported together', () => {
  expect(problemOf({ prompt: 7, maxTurns: -1, foo: 1 })).toMatch(/prompt: .*maxTurns: .*Unknown parameter foo/s);
});

test('valid arguments are returned', () => {
  expect(parseArguments(schema, { prompt: 'x', advanced: { debug: true } }, [])).toEqual({
    prompt: 'x',
    advanced: { debug: true },
  });
});

const nest = (args: Record<string, unknown>): Record<string, unknown> =>
  nestFlat(args, 'advanced', ['effort', 'debug']);

test.each([
  [{ prompt: 'x' }, { prompt: 'x' }],
  [
    { prompt: 'x', effort: 'low' },
    { prompt: 'x', advanced: { effort: 'low' } },
  ],
  [{ effort: 'low', advanced: { debug: true } }, { advanced: { effort: 'low', debug: true } }],
  [{ effort: 'low', advanced: { effort: 'low' } }, { advanced: { effort: 'low' } }],
  [{ effort: undefined }, { effort: undefined }],
  [
    { effort: 'low', advanced: 'nonsense' },
    { effort: 'low', advanced: 'nonsense' },
  ],
])('%j is %j', (flat, nested) => {
  expect(nest(flat)).toEqual(nested);
});

test('conflicting values are refused', () => {
  expect(() => nest({ effort: 'low', advanced: { effort: 'high' } })).toThrow(/effort is given twice/);
});
