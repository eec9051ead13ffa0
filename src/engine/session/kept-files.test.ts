import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findKeptFiles, keepFiles } from './kept-files.ts';

let directory: string;
let copies: string;
let file: string;

beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'kept-'));
  copies = path.join(directory, 'copies');
  file = path.join(directory, 'a.txt');
  await writeFile(file, 'theirs\n');
  await chmod(file, 0o640);
});
afterEach(() => rm(directory, { recursive: true }));

test.each(['succeeds', 'fails'])('files are unchanged after an action that %s', async (how) => {
  const absent = path.join(directory, 'absent.txt');
  const action = async (): Promise<void> => {
    await rm(file);
    await writeFile(file, 'overwritten\n', { mode: 0o600 });
    await writeFile(absent, 'made\n');
    if (how === 'fails') throw new Error('half-way');
  };
  const kept = keepFiles(copies, [file, absent], action);
  await (how === 'fails' ? expect(kept).rejects.toThrow('half-way') : kept);
  expect(await readFile(file, 'utf8')).toBe('theirs\n');
  expect((await stat(file)).mode & 0o777).toBe(0o640);
  expect((await readdir(directory)).sort()).toEqual(['a.txt', 'copies']);
  expect(await readdir(copies)).toEqual([]);
});

test('a copy left behind by a dead process is reported until the file is restored', async () => {
  const never = new Promise<void>(() => undefined);
  let started = false;
  void keepFiles(copies, [file], () => {
    started = true;
    return never;
  });
  await expect.poll(() => started).toBe(true);
  await writeFile(file, 'overwritten\n');
  expect(await findKeptFiles(copies, () => true)).toEqual([]);
  const [line] = await findKeptFiles(copies, () => false);
  const [, copy] = /copy: (.*?)\)/.exec(line!)!;
  expect(line).toContain(file);
  expect(await readFile(copy!, 'utf8')).toBe('theirs\n');
  await writeFile(file, 'theirs\n');
  expect(await findKeptFiles(copies, () => false)).toEqual([]);
  expect(await readdir(copies)).toEqual([]);
});
