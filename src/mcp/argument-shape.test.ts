import { expect, test } from 'vitest';
import { checkShape } from './argument-shape.ts';

const parsed = (json: string): Record<string, unknown> => JSON.parse(json) as Record<string, unknown>;

test.each([
  ['{"agents":{"a":{"tools":["x"]}}}'],
  [`{"agents":${'['.repeat(98)}${']'.repeat(98)}}`],
  ['{"constructor":{"prototype":1}}'],
])('%s passes', (json) => {
  expect(() => checkShape(parsed(json))).not.toThrow();
});

test.each([
  [`{"agents":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 'agents: nested deeper than 100 levels.'],
  [`{"a":${'{"b":'.repeat(5_000)}1${'}'.repeat(5_000)}}`, 'a: nested deeper than 100 levels.'],
  ['{"__proto__":1}', 'Unknown parameter __proto__.'],
  ['{"advanced":{"agents":{"__proto__":{"x":1}}}}', 'Unknown parameter advanced.agents.__proto__.'],
  ['{"list":[{"__proto__":null}]}', 'Unknown parameter list.0.__proto__.'],
])('%.40s is refused', (json, message) => {
  expect(() => checkShape(parsed(json))).toThrow(message);
});
