import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chown, mkdir, readFile, realpath, symlink } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createWorktree } from '../../src/workspace/worktree/create-worktree.ts';
import { sandboxWrites } from '../../src/workspace/worktree/worktree-records.ts';
import { openScene, type Scene } from './scene.ts';

let scene: Scene;
beforeEach(async () => {
  scene = await openScene('my ünï repo');
});
afterEach(() => scene.close());

const create = (request: Partial<Parameters<typeof createWorktree>[1]> = {}): ReturnType<typeof createWorktree> =>
  createWorktree(scene.worktrees, { sessionId: '1f0c2d3e-0000-4000-8000-000000000000', cwd: scene.repo, ...request });

describe('a worktree', () => {
  test('starts from the checked-out commit, and leaves the index, HEAD and uncommitted work alone', async () => {
    await scene.commit('begin', { 'a.txt': 'one\n', 'dir ä/b.txt': 'two\n' });
    await scene.write('a.txt', 'edited\n');
    await scene.write('dir ä/b.txt', 'staged\n');
    await scene.git('add', 'dir ä/b.txt');
    await scene.write('untracked.txt', 'mine\n');
    const bytes = async (): Promise<unknown[]> => [
      await readFile(path.join(scene.repo, '.git', 'index')),
      await readFile(path.join(scene.repo, '.git', 'HEAD')),
      await readFile(path.join(scene.repo, '.git', 'config')),
      await scene.git('-c', 'core.quotepath=off', 'status', '--porcelain'),
    ];
    const before = await bytes();
    const { record, cwd, notes } = await create();
    expect(await bytes()).toEqual(before);
    expect(record).toMatchObject({
      branch: 'refs/heads/claude/1f0c2d3e',
      base: { ref: 'refs/heads/main' },
      state: 'ready',
    });
    expect(cwd).toBe(record.path);
    expect(notes).toEqual([]);
    expect(await scene.read('a.txt', cwd)).toBe('one\n');
    expect(await scene.read('dir ä/b.txt', cwd)).toBe('two\n');
    expect(await scene.read('untracked.txt', cwd)).toBeUndefined();
    expect(await scene.gitAt(cwd, 'status', '--porcelain', '--branch')).toBe('## claude/1f0c2d3e');
    expect(await scene.git('fsck')).toBe('');
  });

  test('of a repository whose path contains a line break is refused', async () => {
    const odd = await openScene('my\nrepo');
    try {
      await odd.commit('begin', { a: '1' });
      await expect(createWorktree(odd.worktrees, { sessionId: 'odd', cwd: odd.repo })).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining('contains a line break'),
      });
    } finally {
      await odd.close();
    }
  });

  test('of a subdirectory works in the same subdirectory, even if no commit contains it', async () => {
    await scene.commit('begin', { 'packages/a/x': '1' });
    expect((await create({ cwd: path.join(scene.repo, 'packages', 'a') })).cwd).toMatch(/1f0c2d3e\/packages\/a$/);
    await mkdir(path.join(scene.repo, 'new'));
    const second = await create({ cwd: path.join(scene.repo, 'new') });
    expect(second.cwd).toMatch(/1f0c2d3e-2\/new$/);
    expect(second.record.branch).toBe('refs/heads/claude/1f0c2d3e-2');
  });

  test.each([
    ['branch', 'other', { ref: 'refs/heads/other' }],
    ['tag', 'v1', {}],
    ['commit', 'HEAD~1', {}],
  ])('starts from a given %s', async (_, base, expected) => {
    await scene.commit('first', { a: '1' });
    const first = await scene.git('rev-parse', 'HEAD');
    await scene.git('tag', 'v1');
    await scene.git('branch', 'other');
    await scene.commit('second', { a: '2' });
    const { record } = await create({ base, branch: 'feature/mine' });
    expect(record.base).toEqual({ commit: first, ...expected });
    expect(record.branch).toBe('refs/heads/feature/mine');
    expect(await scene.read('a', record.path)).toBe('1');
  });

  test('of a detached HEAD has a commit as its base', async () => {
    await scene.commit('first', { a: '1' });
    const first = await scene.git('rev-parse', 'HEAD');
    await scene.git('checkout', '--quiet', '--detach');
    expect((await create()).record.base).toEqual({ commit: first });
  });

  test('belongs to the innermost repository, and that of another worktree to the common one', async () => {
    await scene.commit('outer', { a: '1' });
    const inner = path.join(scene.repo, 'inner');
    await mkdir(inner);
    await scene.gitAt(inner, 'init', '--quiet', '--initial-branch', 'trunk');
    await scene.gitAt(inner, 'commit', '--quiet', '--allow-empty', '--message', 'inner');
    const { record } = await create({ cwd: inner });
    expect(record).toMatchObject({ commonDir: path.join(inner, '.git'), base: { ref: 'refs/heads/trunk' } });
    const second = await create({ cwd: record.path, sessionId: 'second' });
    expect(second.record).toMatchObject({ commonDir: path.join(inner, '.git'), origin: record.path });
  });

  test('of a sparse checkout is sparse, and of a shallow clone shallow', async () => {
    await scene.commit('first', { 'in/a': '1', 'out/b': '2' });
    await scene.commit('second', { 'in/a': '2' });
    await scene.git('sparse-checkout', 'set', 'in');
    const sparse = await create();
    expect(await scene.read('in/a', sparse.cwd)).toBe('2');
    expect(await scene.read('out/b', sparse.cwd)).toBeUndefined();
    expect(await scene.gitAt(sparse.cwd, 'status', '--porcelain')).toBe('');
    const clone = path.join(scene.root, 'clone');
    await scene.gitAt(scene.root, 'clone', '--quiet', '--depth', '1', `file://${scene.repo}`, clone);
    const shallow = await create({ cwd: clone, sessionId: 'shallow' });
    expect(await scene.gitAt(shallow.cwd, 'log', '--format=%s')).toBe('second');
  });

  test('leaves submodules empty and LFS files as pointers, and says so', async () => {
    const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n';
    await scene.commit('begin', {
      '.gitattributes': '*.bin filter=lfs\n',
      'x.bin': pointer,
      '.gitmodules': '[submodule "s"]\n\tpath = s\n\turl = ../s\n',
    });
    const commit = await scene.git('rev-parse', 'HEAD');
    await scene.git('update-index', '--add', '--cacheinfo', `160000,${commit},s`);
    await scene.git('commit', '--quiet', '--message', 'a submodule');
    const { record, notes } = await create();
    expect(notes.join(' ')).toMatch(/Submodules are not checked out.*LFS are pointers/);
    expect(await scene.read('x.bin', record.path)).toBe(pointer);
    expect(await scene.gitAt(record.path, 'status', '--porcelain')).toBe('');
  });

  test.each([
    ['a directory without a repository', async () => ({ cwd: scene.root }), /is not in one/],
    ['a repository without a commit', async () => ({}), /no commits yet/],
    [
      'an unknown base',
      async () => (await scene.commit('x'), { base: 'nowhere' }),
      /"nowhere" is not a branch, tag or commit/,
    ],
    [
      'a base that looks like an option',
      async () => (await scene.commit('x'), { base: '--all' }),
      /"--all" is not a branch/,
    ],
    ['a bad branch name', async () => (await scene.commit('x'), { branch: 'a..b' }), /is not a valid branch name/],
    [
      'a branch that exists',
      async () => (await scene.commit('x'), { branch: 'main' }),
      /main cannot be created.*checked out in .*repo/,
    ],
    [
      'a branch below one that exists',
      async () => (await scene.commit('x'), { branch: 'main/x' }),
      /cannot be created/,
    ],
  ])('of %s is refused', async (_, prepare, message) => {
    const request = await prepare();
    await expect(create(request)).rejects.toThrow(message);
  });

  test('gets another branch name if there is a branch `claude`', async () => {
    await scene.commit('x');
    await scene.git('branch', 'claude');
    expect((await create()).record.branch).toBe('refs/heads/claude-code/1f0c2d3e');
  });

  test('with paths too long for Windows is refused before anything is created, unless long paths are enabled', async () => {
    const name = `${'deep/'.repeat(46)}file.txt`;
    await scene.commit('x', { [name]: '1' });
    const request = { sessionId: 'long', cwd: scene.repo };
    const windows = { ...scene.worktrees, platform: 'win32' } as const;
    await expect(createWorktree(windows, request)).rejects.toThrow(
      /1 file\(s\) would have paths .* deep\/.*longpaths true/,
    );
    expect(await scene.git('branch', '--list', 'claude/*')).toBe('');
    await scene.git('config', 'core.longpaths', 'true');
    expect((await createWorktree(windows, request)).record.state).toBe('ready');
  });

  // Only root can make it another user's.
  test.runIf(process.getuid?.() === 0)('of another user’s repository is refused, with the remedy', async () => {
    await scene.commit('x');
    await chown(scene.repo, 12345, 12345);
    await expect(create()).rejects.toThrow(/belongs to another user.*safe\.directory/);
  });

  test('of a symlinked repository belongs to the real one', async () => {
    await scene.commit('x', { a: '1' });
    const link = path.join(scene.root, 'link');
    await symlink(scene.repo, link);
    expect((await create({ cwd: link })).record.origin).toBe(await realpath(scene.repo));
  });
});

test('a sandboxed session may write objects, its ref, logs and entry, but not config or hooks', () => {
  const place = { commonDir: '/r/.git', entry: 'x', branch: 'refs/heads/claude/x' };
  expect(sandboxWrites(place)).toEqual({
    allow: ['/r/.git/objects', '/r/.git/refs/heads/claude', '/r/.git/logs/refs/heads/claude', '/r/.git/worktrees/x'],
    deny: [
      '/r/.git/objects/info',
      '/r/.git/worktrees/x/commondir',
      '/r/.git/worktrees/x/gitdir',
      '/r/.git/worktrees/x/config.worktree',
    ],
  });
  expect(sandboxWrites({ ...place, branch: 'refs/heads/feature' })).toBeUndefined();
});

test.runIf(existsSync('/usr/bin/bwrap'))(
  'a session with only that access can commit, but not change config, hooks or main',
  async () => {
    await scene.commit('begin', { 'a.txt': 'one\n' });
    const { record, cwd } = await create();
    const { commonDir, branch, entry } = record;
    const { allow, deny } = sandboxWrites({ commonDir, branch, entry: entry! })!;
    const binds = [cwd, ...allow].flatMap((name) => ['--bind', name, name]);
    const fixed = deny.filter((name) => existsSync(name)).flatMap((name) => ['--ro-bind', name, name]);
    const inside = async (script: string): Promise<string> => {
      const sandbox = ['--ro-bind', '/', '/', '--dev', '/dev', ...binds, ...fixed, '--chdir', cwd, 'sh', '-c', script];
      const { env } = scene.host;
      return promisify(execFile)('bwrap', sandbox, { env }).then(
        () => 'done',
        (error: unknown) => (error as { stderr: string }).stderr,
      );
    };
    expect(await inside('echo two > a.txt && git add a.txt && git commit -qm inside')).toBe('done');
    expect(await scene.git('log', '-1', '--format=%s', 'claude/1f0c2d3e')).toBe('inside');
    for (const script of [
      'git config core.fsmonitor x',
      'git update-ref refs/heads/main HEAD',
      'git update-ref refs/heads/other HEAD',
      `touch '${commonDir}/hooks/pre-commit'`,
      `echo x > '${commonDir}/worktrees/${entry!}/commondir'`,
    ])
      expect(await inside(script)).toMatch(/Read-only file system/);
  },
);
