import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { checkOutFiles, planCheckout, type CheckedOut } from '../../src/workspace/worktree/check-out-files.ts';
import { findCheckout } from '../../src/workspace/git/checkout.ts';
import { pinSettings } from '../../src/workspace/git/pinned-settings.ts';
import type { Seal } from '../../src/workspace/git/sealed.ts';
import { takeSnapshot } from '../../src/workspace/report/snapshot.ts';
import { openScene, type Scene } from './scene.ts';

let scene: Scene;
let repo: string;
let worktree: string;
beforeEach(async () => {
  scene = await openScene();
  repo = path.join(scene.root, 'varied');
  worktree = path.join(scene.root, 'w');
});
afterEach(() => scene.close());

/** Everything that git writes in a special way, spread out so that each part has some. */
async function createRepository(format: string): Promise<void> {
  const git = (...args: string[]): Promise<string> => scene.gitAt(repo, ...args);
  await mkdir(repo);
  await git('init', '--quiet', `--object-format=${format}`);
  await git('config', 'filter.upper.clean', 'tr a-z A-Z');
  await git('config', 'filter.upper.smudge', 'tr A-Z a-z');
  await scene.write('.gitattributes', '*.txt text eol=crlf\n*.up filter=upper\n', repo);
  for (const name of ['a', 'm', 'z']) {
    await scene.write(`${name}/.gitattributes`, 'plain.txt -text\n', repo);
    await scene.write(`${name}/plain.txt`, 'one\n', repo);
    await scene.write(`${name}/lines.txt`, 'one\r\n', repo);
    await scene.write(`${name}/über ${name}.md`, 'x\n', repo);
    await scene.write(`${name}/f.up`, 'shout\n', repo);
    await chmod(await scene.write(`${name}/run.sh`, '#!/bin/sh\n', repo), 0o755);
    await symlink('plain.txt', path.join(repo, name, 'link'));
  }
  await git('add', '--all');
  await git('update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(format === 'sha1' ? 40 : 64)},sub`);
  await git('commit', '--quiet', '--message', 'varied');
}

async function checkOut(prepare: () => Promise<unknown> = async () => undefined): Promise<Seal & CheckedOut> {
  const found = (await findCheckout(scene.host, repo))!;
  const large = path.join(scene.root, 'large');
  await writeFile(large, Buffer.alloc(2 ** 19));
  const scratch = path.join(scene.root, 'scratch');
  const seal = { host: scene.host, checkout: found, pinned: await pinSettings(scene.host, found), scratch };
  const plan = await planCheckout(seal, await scene.gitAt(repo, 'rev-parse', 'HEAD'), large, 3);
  expect(plan.parts).toBe(3);
  await scene.gitAt(repo, 'worktree', 'add', '--quiet', '--no-checkout', worktree);
  await prepare();
  const checkout = { ...found, workTree: worktree, gitDir: path.join(found.commonDir, 'worktrees', 'w') };
  const inWorktree = { ...seal, checkout };
  return { ...inWorktree, ...(await checkOutFiles(inWorktree, plan)) };
}

test.each(['sha1', 'sha256'])(
  'files written in parts match what git writes, including the index (%s)',
  async (format) => {
    await createRepository(format);
    expect(await checkOut()).toMatchObject({ isVerbatim: false });
    // Git would have to read files whose size and times are not in the index, so there must be none.
    expect(await scene.gitAt(worktree, 'diff-files', '--name-only')).toBe('');
    expect(await scene.gitAt(worktree, 'status', '--porcelain')).toBe('');
    expect(await scene.gitAt(worktree, 'fsck', '--no-dangling')).toBe('');
    for (const name of ['a', 'm', 'z']) {
      expect(await scene.read(`${name}/lines.txt`, worktree)).toBe('one\r\n');
      expect(await scene.read(`${name}/link`, worktree)).toBe('one\n');
      expect(await scene.read(`${name}/f.up`, worktree)).toBe('shout\n');
    }
  },
);

test('a checkout is known to be verbatim only if nothing converts its files', async () => {
  await mkdir(repo);
  await scene.gitAt(repo, 'init', '--quiet');
  for (const name of ['a', 'm', 'z']) await scene.write(`${name}/plain.txt`, 'one\r\n', repo);
  await scene.gitAt(repo, 'add', '--all');
  await scene.gitAt(repo, 'commit', '--quiet', '--message', 'plain');
  const { isVerbatim, ...seal } = await checkOut();
  expect(isVerbatim).toBe(process.platform !== 'win32');
  expect(await takeSnapshot(seal)).toMatchObject({ changed: [] });
  await scene.gitAt(repo, 'config', 'core.autocrlf', 'true');
  await scene.gitAt(repo, 'worktree', 'remove', worktree);
  expect(await checkOut()).toMatchObject({ isVerbatim: false });
});

test('a file in the way is overwritten, as git would do', async () => {
  await createRepository('sha1');
  await checkOut(() => scene.write('m/plain.txt', 'other\n', worktree));
  expect(await scene.gitAt(worktree, 'status', '--porcelain')).toBe('');
  expect(await scene.read('m/plain.txt', worktree)).toBe('one\n');
});
