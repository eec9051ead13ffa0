import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { globalClaudeFile, projectTrust } from '../../src/transcripts/project-trust.ts';

/**
 * base/repository (git), base/repository/sub, base/worktree (of the repository), base/forged, base/plain, base/link -> base/plain
 */
async function makePlaces(): Promise<string> {
  const base = await realpath(await mkdtemp(path.join(tmpdir(), 'trust-')));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  await mkdir(path.join(base, 'repository', '.git', 'worktrees', 'worktree'), { recursive: true });
  await mkdir(path.join(base, 'repository', 'sub'));
  await mkdir(path.join(base, 'worktree'));
  await writeFile(path.join(base, 'worktree', '.git'), `gitdir: ${base}/repository/.git/worktrees/worktree\n`);
  await writeFile(path.join(base, 'repository', '.git', 'worktrees', 'worktree', 'gitdir'), `${base}/worktree/.git\n`);
  await mkdir(path.join(base, 'forged'));
  await writeFile(path.join(base, 'forged', '.git'), `gitdir: ${base}/repository/.git/worktrees/worktree\n`);
  await mkdir(path.join(base, 'plain', 'sub'), { recursive: true });
  await symlink(path.join(base, 'plain'), path.join(base, 'link'));
  return base;
}

test.each([
  ['plain', 'plain', 'own', 'plain'],
  ['plain', 'plain/sub', 'inherited', 'plain/sub'],
  ['plain', 'link', 'own', 'plain'],
  ['plain', 'repository', 'none', 'repository'],
  ['repository', 'repository/sub', 'own', 'repository'],
  ['repository', 'worktree', 'own', 'repository'],
  // Claims to be a worktree, but the repository names another directory.
  ['repository', 'forged', 'none', 'forged'],
  ['repository/sub', 'repository/sub', 'inherited', 'repository'],
  ['repository/sub', 'repository', 'none', 'repository'],
  // A repository does not inherit trust from a parent directory.
  ['.', 'repository/sub', 'none', 'repository'],
  ['.', 'plain', 'inherited', 'plain'],
])('with %s trusted, %s is trusted: %s', async (trusted, asked, trust, key) => {
  const base = await makePlaces();
  const file = path.join(base, '.claude.json');
  await writeFile(
    file,
    JSON.stringify({ projects: { [path.join(base, trusted)]: { hasTrustDialogAccepted: true }, [base + '/x']: null } }),
  );
  expect(await projectTrust(path.join(base, asked), file)).toEqual({ trust, key: path.join(base, key) });
});

test.each([
  ['is missing', undefined],
  ['is truncated', '{"projects": {'],
  ['lists no projects', '{}'],
])('nothing is trusted if the file %s', async (_what, content) => {
  const base = await makePlaces();
  const file = path.join(base, '.claude.json');
  if (content !== undefined) await writeFile(file, content);
  expect(await projectTrust(path.join(base, 'plain'), file)).toMatchObject({ trust: 'none' });
});

test('the file is in the home directory, or in CLAUDE_CONFIG_DIR', () => {
  expect(globalClaudeFile({ env: {}, homedir: '/home/a' })).toBe('/home/a/.claude.json');
  expect(globalClaudeFile({ env: { CLAUDE_CONFIG_DIR: '/b' }, homedir: '/home/a' })).toBe('/b/.claude.json');
});
