import { mkdirSync, mkdtempSync, realpathSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { Directories } from './directories.ts';

const root = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'directories-')));
for (const name of ['shop/src', 'shop/.git', 'private/state', 'other'])
  mkdirSync(path.join(root, name), { recursive: true });
symlinkSync(path.join(root, 'other'), path.join(root, 'shop', 'link'));

const below = async (directories: Directories, directory: string): Promise<string[]> =>
  (await directories.below(path.join(root, directory))).map((found) => path.relative(root, found));

test('directories are listed below the allowed ones only, without hidden and private ones', async () => {
  const closed = { around: [path.join(root, 'private/state')] };
  expect(await below(new Directories(undefined, undefined, closed), '.')).toEqual(['other', 'private', 'shop']);
  expect(await below(new Directories(undefined, undefined, closed), 'private')).toEqual([]);
  expect(await below(new Directories(undefined, undefined, closed), 'shop')).toEqual(['shop/src']);
  await expect(below(new Directories(undefined, undefined, closed), 'private/state')).rejects.toThrow(/own files/);
  const limited = new Directories([path.join(root, 'shop')], undefined);
  expect(await below(limited, 'shop')).toEqual(['shop/src']);
  await expect(below(limited, '.')).rejects.toThrow(/outside the directories/);
  await expect(below(limited, 'shop/link')).rejects.toThrow(/outside the directories/);
  await expect(below(limited, 'shop/nowhere')).rejects.toThrow(/cannot be read/);
});
