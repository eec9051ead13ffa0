import { describe, expect, test } from 'vitest';
import { UNSEEN_CHARACTERS, VISIBLE_TEXTS } from '../../test/harness/invisible-vectors.ts';
import { escapeInvisible, escapeSequence, visibleLines, type VisibleLine } from './invisible.ts';

/** Of Unicode 17. Private and unassigned code points are escaped too. */
const ESCAPED =
  '0-1f 7f-a0 ad 34f 600-605 61c 6dd 70f 890-891 8e2 115f-1160 1680 17b4-17b5 180b-180f 2000-200f 2028-202f 205f-2064 ' +
  '2066-206f 2800 2d7f 3000 3164 d800-dfff fe00-fe0f feff ffa0 fff9-fffc 1107f 110bd 110cd 13430-1343f 13441-13442 16fe4 ' +
  '1bca0-1bca3 1d159 1d173-1d17a e0001 e0020-e007f e0100-e01ef';

test('of all code points, exactly these are escaped', () => {
  const listed = new Set(
    ESCAPED.split(' ').flatMap((range) => {
      const [first = 0, last = first] = range.split('-').map((hex) => Number.parseInt(hex, 16));
      return Array.from({ length: last - first + 1 }, (_, index) => first + index);
    }),
  );
  const wrong: string[] = [];
  for (let code = 0; code <= 0x10_ffff; code++) {
    const character = String.fromCodePoint(code);
    const isEscaped = escapeInvisible(character) !== character;
    // Reserved for emoji: a newer font shows them.
    const isReserved = /(?=\p{Cn})\p{Extended_Pictographic}/u.test(character);
    const expected = listed.has(code) || (/[\p{Co}\p{Cn}]/u.test(character) && !isReserved);
    if (isEscaped !== expected) wrong.push(code.toString(16));
  }
  expect(wrong).toEqual([]);
});

test.each(UNSEEN_CHARACTERS.map((code) => [code.toString(16), code]))('U+%s is escaped inside a line', (_, code) => {
  const character = String.fromCodePoint(code);
  expect(escapeInvisible(`rm${character} -rf`)).toBe(`rm${escapeSequence(code)} -rf`);
});

test.each(VISIBLE_TEXTS)('%j stays as it is', (text) => {
  expect(escapeInvisible(text)).toBe(text);
  expect(shown(visibleLines(text))).toEqual([text]);
});

test.each([
  ['a joiner between letters', 'a\u200db', 'a\\u200db'],
  ['a joiner after an emoji', '😀\u200d.exe', '😀\\u200d.exe'],
  ['a second variation selector', '❤\ufe0f\ufe0f', '❤\ufe0f\\ufe0f'],
  ['a variation selector after a digit', '1\ufe0f', '1\\ufe0f'],
])('%s is no part of an emoji', (_, text, escaped) => {
  expect(escapeInvisible(text)).toBe(escaped);
});

describe('runs', () => {
  test.each([
    ['in a line', `ls${' '.repeat(10)}; rm`, ['ls[10 blanks]; rm']],
    ['of tabs', `ls${'\t'.repeat(10)}; rm`, ['ls[10 blanks]; rm']],
    ['at the end of a line', `ls${' '.repeat(19)}\nrm`, ['ls[19 blanks]', 'rm']],
    ['as wide as no indentation', `${' '.repeat(41)}rm`, ['[41 blanks]rm']],
    ['of tabs wider than any indentation', `${'\t'.repeat(11)}rm`, ['[11 blanks]rm']],
    ['of a no-break space', `ls${'\u00a0'.repeat(500)}rm`, ['ls[a0 × 500]rm']],
    ['of braille blanks and spaces', 'ls \u2800 \u2800 rm', ['ls [2800 × 1] [2800 × 1] rm']],
  ])('of blanks %s are counted', (_, text, expected) => {
    expect(shown(visibleLines(text))).toEqual(expected);
  });

  test.each([
    ['two stay', 'a\n\n\nb', ['a', '', '', 'b']],
    ['three are counted', 'a\n\n\n\nb', ['a', '[3 blank lines]', 'b']],
    ['with blanks in them', 'a\n  \n\t\n\r\nb', ['a', '[3 blank lines]', 'b']],
    ['at the start', '\n\n\nb', ['[3 blank lines]', 'b']],
    ['at the end', 'a\n\n\n\n', ['a', '[3 blank lines]', '']],
    ['an invisible character interrupts the run', 'a\n\n\n\u200b\n\n\nb', ['a', '', '', '[200b × 1]', '', '', 'b']],
  ])('of blank lines: %s', (_, text, expected) => {
    expect(shown(visibleLines(text))).toEqual(expected);
  });
});

function shown(lines: readonly VisibleLine[]): string[] {
  return lines.map((line) =>
    line.kind === 'blank lines'
      ? `[${line.count} blank lines]`
      : line.pieces
          .map((piece) =>
            piece.kind === 'text'
              ? piece.text
              : piece.kind === 'blanks'
                ? `[${piece.count} blanks]`
                : `[${piece.codePoint.toString(16)} × ${piece.count}]`,
          )
          .join(''),
  );
}
