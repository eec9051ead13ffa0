import fc from 'fast-check';
import { expect, test } from 'vitest';
import { tokens } from './highlight.ts';

test('nothing of a text is lost or changed', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(
        tokens(text)
          .map((token) => token.text)
          .join(''),
      ).toBe(text);
    }),
  );
});

test.each([
  ['const a = 1; // one', ['const:keyword', '1:number', '// one:comment']],
  ["print('it') # done", ["'it':string", '# done:comment']],
  ['echo "a b" $#', ['"a b":string']],
  ['color: #ff0000;', []],
])('%s', (text, expected) => {
  expect(tokens(text).flatMap((token) => (token.kind ? [`${token.text}:${token.kind}`] : []))).toEqual(expected);
});
