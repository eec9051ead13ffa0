import { expect, test } from 'vitest';
import { cover, EMPTY, isCovered } from './reading.ts';

const after = (...seen: [from: number, to: number][]) =>
  isCovered(seen.reduce((coverage, [from, to]) => cover(coverage, 1000, from, to), EMPTY));

test.each([
  ['nothing was visible', [], false],
  ['all of it was visible at once', [[-20, 1200]], true],
  [
    'its halves were visible, one after the other',
    [
      [-20, 500],
      [500, 1010],
    ],
    true,
  ],
  [
    'they were visible in reverse order',
    [
      [490, 1010],
      [-20, 500],
    ],
    true,
  ],
  [
    'its middle was skipped',
    [
      [-20, 400],
      [600, 1010],
    ],
    false,
  ],
  [
    'its middle was skipped at first',
    [
      [-20, 400],
      [600, 1010],
      [300, 700],
    ],
    true,
  ],
  ['it was above the screen', [[1100, 1900]], false],
  ['it was below the screen', [[-900, -100]], false],
  ['all but its end was visible', [[-20, 990]], false],
] as [string, [number, number][], boolean][])('if %s', (_, seen, expected) => {
  expect(after(...seen)).toBe(expected);
});

test('a part that changes its height has to be seen anew', () => {
  const half = cover(EMPTY, 1000, 0, 500);
  expect(isCovered(cover(half, 1300, 500, 1300))).toBe(false);
  expect(isCovered(cover(half, 1000, 500, 1000))).toBe(true);
});

test('an empty part is seen where it is on the screen', () => {
  expect(isCovered(cover(EMPTY, 0, -100, 600))).toBe(true);
  expect(isCovered(cover(EMPTY, 0, 100, 900))).toBe(false);
});
