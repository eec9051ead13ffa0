import fc from 'fast-check';
import { expect, test } from 'vitest';
import { lineDiff, splitLines } from './line-diff.ts';

const short = (before: string, after: string) =>
  lineDiff(before, after).map(({ kind, text }) => `${kind === 'same' ? ' ' : kind === 'added' ? '+' : '-'}${text}`);

test('only differing lines are removed and added', () => {
  expect(short('a\nb\nc\n', 'a\nB\nc\n')).toEqual([' a', '-b', '+B', ' c']);
});

test('lines are numbered on both sides', () => {
  expect(lineDiff('a\nb', 'a\nx\nb', 10)).toEqual([
    { kind: 'same', text: 'a', oldLine: 10, newLine: 10 },
    { kind: 'added', text: 'x', newLine: 11 },
    { kind: 'same', text: 'b', oldLine: 11, newLine: 12 },
  ]);
});

test('the differing part of a line is marked', () => {
  expect(lineDiff('const total = sum;', 'const total = round(sum);')).toMatchObject([
    { kind: 'removed', changed: [14, 17] },
    { kind: 'added', changed: [14, 24] },
  ]);
  const [removed, added] = lineDiff('return items.length;', 'return items.size;');
  expect(removed?.text.slice(...(removed.changed ?? [0, 0]))).toBe('length');
  expect(added?.text.slice(...(added.changed ?? [0, 0]))).toBe('size');
});

test('both texts can be reconstructed from the diff', () => {
  const lines = fc.array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 30 }).map((all) => all.join('\n'));
  fc.assert(
    fc.property(lines, lines, (before, after) => {
      const diff = lineDiff(before, after);
      expect(diff.filter(({ kind }) => kind !== 'added').map(({ text }) => text)).toEqual(splitLines(before));
      expect(diff.filter(({ kind }) => kind !== 'removed').map(({ text }) => text)).toEqual(splitLines(after));
    }),
  );
});

test('a replacement of 20,000 lines is diffed', () => {
  const before = Array.from({ length: 20_000 }, (_, index) => `a${index}`).join('\n');
  const after = Array.from({ length: 20_000 }, (_, index) => `b${index}`).join('\n');
  expect(lineDiff(before, after)).toHaveLength(40_000);
});
