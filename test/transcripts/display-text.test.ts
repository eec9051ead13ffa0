import { expect, test } from 'vitest';
import { displayText } from '../../src/transcripts/disk-sessions.ts';

test.each([
  ['stays as it is', 'Fix the login', 'Fix the login'],
  ['becomes one line', '  Fix\r\n\tthe\u2028login \n', 'Fix the login'],
  ['loses control characters', 'a\u001b[31mred\u0007\u0000b', 'a [31mred b'],
  ['may be 200 characters long', 'x'.repeat(200), 'x'.repeat(200)],
  ['is cut with an ellipsis', 'x'.repeat(201), `${'x'.repeat(199)}…`],
  ['is not cut inside a character', `${'x'.repeat(198)}😀😀`, `${'x'.repeat(198)}…`],
  ['may be empty', ' \n ', ''],
])('a text %s', (_what, text, shown) => {
  expect(displayText(text)).toBe(shown);
});
