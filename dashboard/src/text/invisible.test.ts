import { expect, test } from 'vitest';
import { showInvisible } from './invisible.ts';

const shown = (text: string) =>
  showInvisible(text)
    .map(({ kind, text: words }) => (kind === 'mark' ? `[${words}]` : words))
    .join('');

test.each([
  ['rm -rf build', 'rm -rf build'],
  ['a\tb\nc\r\nd', 'a\tb\nc\r\nd'],
  ['\u001b[31mred\u001b[0m', '[␛][31mred[␛][0m'],
  ['safe\u202Egpj.exe', 'safe[U+202E]gpj.exe'],
  ['rm\u200b -rf', 'rm[U+200B] -rf'],
  ['over\rwritten', 'over[␍]written'],
  ['tag\u{E0041}', 'tag[U+E0041]'],
  ['half\ud800', 'half[U+D800]'],
  ['family 👨‍👩‍👧 ❤️', 'family 👨‍👩‍👧 ❤️'],
  ['naïve 日本語', 'naïve 日本語'],
  ['', ''],
])('%j is shown as %j', (text, expected) => {
  expect(shown(text)).toBe(expected);
});
