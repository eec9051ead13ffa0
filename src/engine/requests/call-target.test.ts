import { link, mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path, { join } from 'node:path';
import { mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test, afterAll } from 'vitest';
import { callTarget, findEditPlace, placeIn } from './call-target.ts';

let world: string;
let cwd: string;

beforeEach(async () => {
  world = await realpath(await mkdtemp(path.join(tmpdir(), 'target-')));
  cwd = path.join(world, 'home', 'project');
  for (const project of [cwd, path.join(world, 'other', 'project')]) {
    await mkdir(path.join(project, 'sub'), { recursive: true });
    await writeFile(path.join(project, 'sub', 'a.txt'), 'one');
  }
});
afterEach(() => rm(world, { recursive: true, force: true }));

const bash = (): Promise<string> => callTarget('Bash', { command: 'npm test' }, cwd);
const edit = (): Promise<string> => callTarget('Edit', { file_path: 'sub/a.txt' }, cwd);
const create = (): Promise<string> => callTarget('Write', { file_path: path.join(cwd, 'sub/new/b.txt') }, cwd);

const at = (...names: string[]): string => path.join(world, ...names);
const swap = async (there: string, other: string): Promise<void> => {
  await rename(there, `${there}.old`);
  await rename(other, there);
};
const linkInstead = async (there: string, other: string): Promise<void> => {
  await rename(there, `${there}.old`);
  await symlink(other, there, 'junction');
};

test.each<[string, () => Promise<void>, string[]]>([
  ['nothing happens', async () => {}, []],
  ['another file is written', () => writeFile(at('home/project/sub/c.txt'), 'x'), []],
  ['the file is changed', () => writeFile(at('home/project/sub/a.txt'), 'two'), ['edit']],
  ['the file is created', () => mkdir(at('home/project/sub/new')), ['create']],
  ['the directory is replaced by a link', () => linkInstead(cwd, at('other/project')), ['bash', 'edit', 'create']],
  ['the directory is replaced by another', () => swap(cwd, at('other/project')), ['bash', 'edit', 'create']],
  ['a parent is replaced by a link', () => linkInstead(at('home'), at('other')), ['bash', 'edit', 'create']],
  ['a parent is replaced by another', () => swap(at('home'), at('other')), ['bash', 'edit', 'create']],
  [
    'the directory of the file is replaced by a link',
    () => linkInstead(at('home/project/sub'), at('other/project/sub')),
    ['edit', 'create'],
  ],
  [
    'the directory of the file is replaced by another',
    () => swap(at('home/project/sub'), at('other/project/sub')),
    ['edit', 'create'],
  ],
  [
    'the file is replaced by a link to one with the same contents',
    () => linkInstead(at('home/project/sub/a.txt'), at('other/project/sub/a.txt')),
    ['edit'],
  ],
  [
    'the file is replaced by a hard link to one with the same contents',
    async () => {
      await rm(at('home/project/sub/a.txt'));
      await link(at('other/project/sub/a.txt'), at('home/project/sub/a.txt'));
    },
    ['edit'],
  ],
])('if %s, exactly the calls that it affects have another target', async (_what, happens, affected) => {
  const targets = async (): Promise<string[]> => [await bash(), await edit(), await create()];
  const before = await targets();
  await happens();
  const after = await targets();
  const names = ['bash', 'edit', 'create'].filter((_name, index) => before[index] !== after[index]);
  expect(names).toEqual(affected);
});

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
