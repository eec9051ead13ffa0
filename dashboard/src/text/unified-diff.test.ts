import { expect, test } from 'vitest';
import { parseUnifiedDiff } from './unified-diff.ts';

test('files, hunks and line numbers are parsed', () => {
  const [file] = parseUnifiedDiff(
    'diff --git a/src/a.ts b/src/a.ts\nindex 1..2 100644\n--- a/src/a.ts\n+++ b/src/a.ts\n@@ -3,2 +3,3 @@ function x()\n keep\n-old\n+new\n+more\n',
  );
  expect(file).toMatchObject({ path: 'src/a.ts', notes: [] });
  expect(file?.hunks[0]?.lines.map(({ kind, oldLine, newLine, text }) => [kind, oldLine, newLine, text])).toEqual([
    ['same', 3, 3, 'keep'],
    ['removed', 4, undefined, 'old'],
    ['added', undefined, 4, 'new'],
    ['added', undefined, 5, 'more'],
  ]);
});

test('a removed line that looks like a header stays a line', () => {
  const [file, ...others] = parseUnifiedDiff('diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,1 @@\n--- a/y\n keep\n');
  expect(others).toEqual([]);
  expect(file?.hunks[0]?.lines[0]).toMatchObject({ kind: 'removed', text: '-- a/y' });
});

test('new, renamed, binary and oddly named files have the right path', () => {
  const files = parseUnifiedDiff(
    [
      'diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x',
      'diff --git a/old name b/new name\nsimilarity index 100%\nrename from old name\nrename to new name',
      'diff --git a/i.png b/i.png\nBinary files a/i.png and b/i.png differ',
      'diff --git "a/gr\\303\\274n" "b/gr\\303\\274n"\n--- "a/gr\\303\\274n"\n+++ "b/gr\\303\\274n"\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file',
      'Not shown, too large or not a file of this repository: big (added)',
      '',
    ].join('\n'),
  );
  expect(files.map(({ path }) => path)).toEqual(['new', 'new name', 'i.png', 'grün']);
  expect(files[1]?.oldPath).toBe('old name');
  expect(files[2]?.notes).toEqual(['Binary files a/i.png and b/i.png differ']);
  expect(files[3]?.notes).toEqual(['Not shown, too large or not a file of this repository: big (added)']);
});
