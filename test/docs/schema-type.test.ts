import { expect, test } from 'vitest';
import { z } from 'zod';
import { typeInWords } from '../../scripts/docs/schema-type.ts';

test.each([
  [z.string(), 'string'],
  [z.boolean(), 'boolean'],
  [z.int(), 'integer'],
  [z.int().positive(), 'integer ≥ 1'],
  [z.int().min(0).max(600_000), 'integer 0 to 600000'],
  [z.int().positive().max(10_000), 'integer 1 to 10000'],
  [z.number().positive(), 'number > 0'],
  [z.enum(['a', 'b']), '`a`, `b`'],
  [z.array(z.string()), 'list of strings'],
  [z.union([z.string(), z.array(z.string())]), 'string or list of strings'],
  [z.array(z.union([z.string(), z.array(z.string())])), 'list of (string or list of strings)'],
  [z.strictObject({ type: z.literal('preset'), append: z.string().optional() }), '`{type: "preset", append?}`'],
  [z.record(z.string(), z.string()), 'object'],
  [z.unknown(), 'any'],
])('%#: %s', (schema, words) => {
  expect(typeInWords(z.toJSONSchema(schema, { io: 'input' }) as never)).toBe(words);
});
