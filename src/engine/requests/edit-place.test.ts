import { mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { findEditPlace, placeIn } from './edit-place.ts';

const root = realpathSync(mkdtempSync(join(tmpdir(), 'ccm-edit-')));
const outside = realpathSync(mkdtempSync(join(tmpdir(), 'ccm-edit-')));
afterAll(() => {
  rmSync(root, { recursive: true });
  rmSync(outside, { recursive: true });
});

test.each([
  ['in the middle', 'c', { line: 3, before: ['a', 'b'], after: ['d', 'e'] }],
  ['of several lines', 'b\nc\n', { line: 2, before: ['a'], after: ['d', 'e'] }],
  ['at the start', 'a', { line: 1, before: [], after: ['b', 'c'] }],
  ['that matches nothing', 'x', undefined],
])('finds the place of an edit %s', (_where, old, place) => {
  expect(placeIn('a\nb\nc\nd\ne', old)).toEqual(place);
});

test('only files within the session’s directories are read', async () => {
  writeFileSync(join(root, 'in.txt'), 'one\ntwo\n');
  writeFileSync(join(outside, 'out.txt'), 'one\ntwo');
  symlinkSync(join(outside, 'out.txt'), join(root, 'link.txt'));
  const find = (file: string) => findEditPlace({ file_path: file, old_string: 'two' }, { cwd: root });
  expect(await find(join(root, 'in.txt'))).toEqual({ line: 2, before: ['one'], after: [] });
  for (const file of [join(outside, 'out.txt'), join(root, 'link.txt'), join(root, 'none.txt'), root])
    expect(await find(file), file).toBeUndefined();
});
