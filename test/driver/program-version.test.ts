import { expect, test } from 'vitest';
import { isOlder } from '../../src/driver/claude-code-program.ts';

test.each([
  ['2.1.247', true],
  ['2.1.248', false],
  ['2.1.325', false],
  ['2.0.999', true],
  ['1.9.999', true],
  ['2.2.0', false],
  ['10.0.0', false],
])('%s is older than 2.1.248: %s', (version, older) => {
  expect(isOlder(version, '2.1.248')).toBe(older);
});
