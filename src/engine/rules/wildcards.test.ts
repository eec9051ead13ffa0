import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { refusingRule } from './tool-rules.ts';
import { matchesPath, matchesWildcards } from './wildcards.ts';

const escaped = (text: string): string => text.replace(/[.+?^${}()|[\]\\]/g, '\\$&');

test('a pattern with wildcards matches what its regular expression would', () => {
  const written = fc.string({ unit: fc.constantFrom('a', 'b', '*', '.', ' '), maxLength: 7 });
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '.', ' '), maxLength: 9 });
  fc.assert(
    fc.property(written, text, (pattern, given) => {
      const regular = new RegExp(`^${escaped(pattern).replace(/\*+/g, '.*')}$`, 's');
      expect(matchesWildcards(pattern, given)).toBe(regular.test(given));
    }),
    { numRuns: 2_000 },
  );
});

test('a path pattern matches what its regular expression would', () => {
  const written = fc.string({ unit: fc.constantFrom('a', 'b', '*', '**', '**/', '/', '.'), maxLength: 7 });
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.'), maxLength: 9 });
  fc.assert(
    fc.property(written, text, (pattern, given) => {
      const pieces = pattern
        .split(/(\*\*\/|\*\*|\*)/)
        .map((piece) => ({ '**/': '(?:.*/)?', '**': '.*', '*': '[^/]*' })[piece] ?? escaped(piece));
      expect(matchesPath(pattern, given)).toBe(new RegExp(`^${pieces.join('')}(?:/.*)?$`, 's').test(given));
    }),
    { numRuns: 3_000 },
  );
});

describe('hostile input is matched quickly', () => {
  const many = 4_000;
  const unmatched = Array.from({ length: 1_200 }, () => 'Bash(* x b)');
  const hostile: [what: string, rules: string[], input: Record<string, string>][] = [
    ['a rule with many wildcards', [`Bash(${'a*'.repeat(many)}b)`], { command: 'a'.repeat(100_000) }],
    ['many rules', Array.from({ length: 1_200 }, () => 'Bash(*a*a*b)'), { command: 'a'.repeat(100_000) }],
    ['a long command with many parts', ['Bash(*b)'], { command: 'a;'.repeat(50_000) }],
    ['a long prefix', ['Bash(*b)'], { command: `${'A=1 '.repeat(20_000)}x` }],
    ['a long line of programs that run others', unmatched, { command: 'sudo '.repeat(20_000) }],
    ['an endless assignment', ['Bash(*b)'], { command: 'a='.repeat(50_000) }],
    ['a path with many wildcards', [`Edit(${'**/'.repeat(many)}b)`], { file_path: 'a/'.repeat(2_000) }],
    ['a long file name against many wildcards', [`Edit(${'a*'.repeat(many)}b)`], { file_path: 'a'.repeat(4_000) }],
  ];
  test.each(hostile)('%s', (_what, rules, input) => {
    const toolName = 'command' in input ? 'Bash' : 'Edit';
    // CPU time, not wall time: other tests run at the same time.
    const begin = process.cpuUsage();
    expect(refusingRule(rules, { toolName, input, cwd: '/work' })).toBeUndefined();
    expect(process.cpuUsage(begin).user / 1_000).toBeLessThan(3_000);
  });

  test.each([
    ['Bash(rm *)', { command: 'x'.repeat(100_001) }],
    ['Edit(secret/**)', { file_path: `/work/${'x'.repeat(5_000)}` }],
  ])('input too long to match against %s is refused', (rule, input) => {
    const toolName = 'command' in input ? 'Bash' : 'Edit';
    expect(refusingRule([rule], { toolName, input, cwd: '/work' })).toBe(rule);
  });
});
