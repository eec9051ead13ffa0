import { expect, test } from 'vitest';
import { fillGeneratedParts } from '../../scripts/docs/generated-parts.ts';

const parts = { list: () => '- one\n' };

test('replaces only the text between the markers', () => {
  const page = 'before\n<!-- gen:list -->\nold\n<!-- /gen -->\nafter\n';
  const filled = fillGeneratedParts(page, parts, 'page.md');
  expect(filled).toBe('before\n<!-- gen:list -->\n- one\n<!-- /gen -->\nafter\n');
  expect(fillGeneratedParts(filled, parts, 'page.md')).toBe(filled);
});

test('refuses an unknown part', () => {
  expect(() => fillGeneratedParts('<!-- gen:other -->\n<!-- /gen -->', parts, 'page.md')).toThrow(
    'page.md: no generated part is called other',
  );
});

test('refuses an unclosed marker', () => {
  expect(() => fillGeneratedParts('<!-- gen:list -->\n', parts, 'page.md')).toThrow('without its <!-- /gen -->');
});
