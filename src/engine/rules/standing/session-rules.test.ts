import { expect, test } from 'vitest';
import { mayChangeDirectory } from './session-rules.ts';

test.each([
  'cd docs',
  'cd',
  'true && cd docs',
  '"c"d docs',
  'c\\d docs',
  'command cd docs',
  'command -p cd docs',
  'command -- cd docs',
  'builtin cd docs',
  'time -p cd docs',
  'if false; then :; elif cd docs; then :; fi',
  'A=1 cd docs',
  'A="b c" cd docs',
  'A[0]=1 cd docs',
  '> out cd docs',
  '2>/dev/null cd docs',
  'f() { cd docs; }; f',
  '{ cd docs; }',
  '{cd,docs}',
  'c{d,} docs',
  'c? docs',
  'c[d] docs',
  '$X docs',
  '"$X" docs',
  '${X} docs',
  '$(printf %s%s c d) docs',
  '`printf %s%s c d` docs',
  'A="b c" $X docs',
  'command $X docs',
  'eval "$X"',
  '. ./env.sh',
  'A=1 . ./env.sh',
  'source env.sh',
  "trap 'cd docs' DEBUG",
  "mapfile -C 'cd docs' -c 1 < list",
  'pushd docs',
  'popd',
  'x\ncd docs',
  'x'.repeat(30_000),
])('may change the directory: %s', (command) => {
  expect(mayChangeDirectory(command)).toBe(true);
});

test.each([
  'npm test',
  'git commit -m "add cd and source maps"',
  'npm test && git status',
  'ls | head -5',
  'echo $HOME',
  'for file in *.ts; do wc -l "$file"; done',
  '[ -f x ] && cat x',
  '[[ -f x ]] && cat x',
  'time find . -name x | wc -l',
  'grep -rn abcd src > out',
  'if grep -q x .env; then npm test; fi',
  './cd.sh; npm run cd-check',
])('does not: %s', (command) => {
  expect(mayChangeDirectory(command)).toBe(false);
});

test('a command made to be read slowly is read at once', () => {
  const started = performance.now();
  for (const piece of ['\n', ' ', 'a=', '$ ', '; ', '{', 'a[']) mayChangeDirectory(piece.repeat(20_000 / piece.length));
  expect(performance.now() - started).toBeLessThan(500);
});
