import { expect, test } from 'vitest';
import { UNSEEN_CHARACTERS, VISIBLE_TEXTS } from '../../../test/harness/invisible-vectors.ts';
import { markedText } from './marks.ts';

const shown = (text: string) =>
  markedText(text)
    .map((part) => (typeof part === 'string' ? part : `[${part.words}]`))
    .join('');

test.each([
  ['rm -rf build', 'rm -rf build'],
  ['a\tb\nc\r\nd', 'a\tb\nc\nd'],
  ['\u001b[31mred\u001b[0m', '[␛][31mred[␛][0m'],
  ['safe\u202Egpj.exe', 'safe[U+202E]gpj.exe'],
  ['over\rwritten', 'over[␍]written'],
  [`ls${' '.repeat(19)}; rm -rf ~`, 'ls[… 19 blanks …]; rm -rf ~'],
  [`ls${'\n'.repeat(201)}rm -rf ~`, 'ls\n[… 200 blank lines …]\nrm -rf ~'],
  [`ls${'\u2800'.repeat(40)}rm -rf ~`, 'ls[U+2800 × 40]rm -rf ~'],
  ['', ''],
])('%j is shown as %j', (text, expected) => {
  expect(shown(text)).toBe(expected);
});

test.each(UNSEEN_CHARACTERS.map((code) => [code.toString(16).toUpperCase().padStart(4, '0'), code]))(
  'U+%s is marked',
  (hex, code) => {
    const name = code < 0x20 ? String.fromCodePoint(0x2400 + code) : `U+${hex}`;
    expect(shown(`rm${String.fromCodePoint(code)} -rf`)).toBe(`rm[${name}] -rf`);
  },
);

test.each(VISIBLE_TEXTS)('%j stays as it is', (text) => {
  expect(markedText(text)).toEqual([text]);
});
