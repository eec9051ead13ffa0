/** Unusual states that users and agents leave repositories in. Whatever happens then, no work is lost. */

import { chmod, mkdir, readdir, readFile, rename, rm, stat, symlink, utimes } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ApplyMode } from '../../src/schema/enums.ts';
import type { WorktreeRecord } from '../../src/schema/worktree-record.ts';
import { applyWork } from '../../src/workspace/worktree/apply.ts';
import { createWorktree } from '../../src/workspace/worktree/create-worktree.ts';
import { discardWork } from '../../src/workspace/worktree/discard.ts';
import { goingFrom } from '../../src/workspace/worktree/check-out-files.ts';
import { Workspaces } from '../../src/workspace/workspace.ts';
import { loadRecord } from '../../src/workspace/worktree/worktree-records.ts';
import { isDone, worktreeState } from '../../src/workspace/worktree/worktree-state.ts';
import { openScene, type Scene } from './scene.ts';

let scene: Scene;
let record: WorktreeRecord;
// A squash differs from a merge only in the parents of its commit.
const MODES: ApplyMode[] = ['merge', 'patch'];

beforeEach(async () => {
  scene = await openScene();
  await scene.commit('begin', { 'a.txt': '1\n2\n3\n', 'b.txt': 'b\n', '.gitignore': '*.log\nbuild/\n' });
});
afterEach(() => scene.close());

const begin = async (sessionId = 'abcdef01'): Promise<WorktreeRecord> =>
  (record = (await createWorktree(scene.worktrees, { sessionId, cwd: scene.repo })).record);
const inWorktree = (name: string, content: string): Promise<string> => scene.write(name, content, record.path);
const current = async (): Promise<WorktreeRecord> => (await loadRecord(scene.worktrees, record.id))!;
const apply = async (mode: ApplyMode): ReturnType<typeof applyWork> =>
  applyWork(scene.worktrees, await current(), { mode });
const discard = async (force = false): ReturnType<typeof discardWork> =>
  discardWork(scene.worktrees, await current(), { force });
const spaces = (): Workspaces =>
  new Workspaces({
    env: scene.host.env,
    worktreesDir: scene.worktrees.worktreesDir,
    snapshotsDir: path.join(scene.root, 'snapshots'),
  });

async function addSubmodule(): Promise<void> {
  const origin = path.join(scene.root, 'origin');
  await mkdir(origin);
  await scene.gitAt(origin, 'init', '--quiet', '--initial-branch', 'main');
  await scene.write('s.txt', 's\n', origin);
  await scene.gitAt(origin, 'add', '--all');
  await scene.gitAt(origin, 'commit', '--quiet', '--message', 'sub');
  await scene.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', origin, 'sub');
  await scene.commit('a submodule');
}

describe.each(MODES)('apply as %s', (mode) => {
  test('works from three sessions at once, with a base whose only commit is empty', async () => {
    const other = path.join(scene.root, 'empty');
    await mkdir(other);
    await scene.gitAt(other, 'init', '--quiet', '--initial-branch', 'main');
    await scene.gitAt(other, 'commit', '--quiet', '--allow-empty', '--message', 'begin');
    const workspaces = spaces();
    const sessions = await Promise.all(
      ['one', 'two', 'three'].map((sessionId) => workspaces.openWorktree({ sessionId, cwd: other })),
    );
    for (const [index, { cwd }] of sessions.entries()) await scene.write(`f${index}.txt`, 'x\n', cwd);
    // A diff writes objects to the session's own object store; the repository needs them too.
    for (const session of sessions) await session.diff({ maxBytes: 1000, offset: 0 }, []);
    const outcomes = await Promise.allSettled(sessions.map((session) => session.apply({ mode })));
    // A concurrent apply may find that the base has moved on; repeating it works.
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled') continue;
      expect(String(outcome.reason)).toMatch(/moved on|Nothing was changed/);
      expect(await sessions[index]!.apply({ mode })).toMatchObject({ outcome: 'applied' });
    }
    for (const session of sessions) await session.close();
    for (const index of [0, 1, 2]) expect(await scene.read(`f${index}.txt`, other)).toBe('x\n');
    expect(await scene.gitAt(other, 'fsck', '--no-dangling')).toBe('');
  });
});

describe('apply as merge or patch', () => {
  test('does not overwrite edits that the user hid from git', async () => {
    await begin();
    await inWorktree('a.txt', 'theirs\n');
    await inWorktree('b.txt', 'theirs\n');
    await scene.write('a.txt', 'mine\n');
    await scene.write('b.txt', 'mine\n');
    await scene.git('update-index', '--assume-unchanged', 'a.txt');
    await scene.git('update-index', '--skip-worktree', 'b.txt');
    for (const mode of MODES) {
      await expect(apply(mode)).rejects.toThrow(/overwritten: a\.txt, b\.txt/);
      expect([await scene.read('a.txt'), await scene.read('b.txt')]).toEqual(['mine\n', 'mine\n']);
    }
  });

  test('does not replace a submodule that has uncommitted work', async () => {
    await addSubmodule();
    await begin();
    await scene.gitAt(record.path, 'rm', '--quiet', '--cached', 'sub');
    await rm(path.join(record.path, 'sub'), { recursive: true, force: true });
    await inWorktree('sub', 'a file now\n');
    await scene.write('sub/mine.txt', 'not committed\n');
    for (const mode of MODES) {
      await expect(apply(mode)).rejects.toThrow(/overwritten: sub\//);
      expect(await scene.read('sub/mine.txt')).toBe('not committed\n');
    }
  });

  test.each<[string, () => Promise<unknown>, RegExp]>([
    ['an ignored file in place of a directory', () => scene.write('build', 'mine\n'), /overwritten: build/],
    [
      'a symlink in place of a directory',
      async () => (
        await mkdir(path.join(scene.root, 'elsewhere')),
        symlink(path.join(scene.root, 'elsewhere'), path.join(scene.repo, 'build'))
      ),
      /overwritten: build/,
    ],
    ['another git running', () => scene.write('.git/index.lock', ''), /Another git process is running/],
    [
      'unresolved conflicts',
      async () => {
        const blob = await scene.git('hash-object', '-w', 'a.txt');
        const stages = [1, 2, 3].map((stage) => `100644 ${blob} ${stage}\tb.txt`).join('\n');
        await scene.write('stages', `${stages}\n`, scene.root);
        await scene.gitAt(scene.root, '-C', scene.repo, 'update-index', '--force-remove', 'b.txt');
        await scene.gitAt(scene.repo, '-c', `alias.x=!git update-index --index-info < '${scene.root}/stages'`, 'x');
      },
      /resolve|overwritten/,
    ],
  ])('changes nothing with %s', async (_, prepare, message) => {
    await begin();
    await inWorktree('build/out.txt', 'theirs\n');
    await scene.gitAt(record.path, 'add', '--force', '--all', 'build');
    await inWorktree('a.txt', 'theirs\n');
    await prepare();
    const before = [await readdir(scene.repo), await scene.read('a.txt'), await scene.read('build')];
    for (const mode of MODES) {
      await expect(apply(mode)).rejects.toThrow(message);
      expect([await readdir(scene.repo), await scene.read('a.txt'), await scene.read('build')]).toEqual(before);
      expect((await current()).journal).toBeUndefined();
    }
  });
});

describe('apply', () => {
  test('refuses a base that is checked out twice, since one checkout would seem to undo the work', async () => {
    await begin();
    await inWorktree('a.txt', 'theirs\n');
    const other = path.join(scene.root, 'other');
    await scene.git('worktree', 'add', '--quiet', '--force', other, 'main');
    await expect(apply('merge')).rejects.toThrow(/main is checked out in two places/);
    expect([await scene.git('status', '--porcelain'), await scene.gitAt(other, 'status', '--porcelain')]).toEqual([
      '',
      '',
    ]);
  });

  test('refuses a base that is being rebased, since the rebase would fail', async () => {
    await begin();
    await inWorktree('b.txt', 'theirs\n');
    await scene.commit('mine', { 'a.txt': 'mine\n' });
    const main = await scene.git('rev-parse', 'main');
    await scene.git('-c', 'sequence.editor=sed -i s/pick/edit/', 'rebase', '--quiet', '--interactive', 'HEAD~1');
    await expect(apply('merge')).rejects.toThrow(/A rebase of main is in progress/);
    expect(await scene.git('rev-parse', 'main')).toBe(main);
    await scene.git('rebase', '--continue');
    expect(await apply('merge')).toMatchObject({ outcome: 'applied' });
    expect([await scene.read('a.txt'), await scene.read('b.txt')]).toEqual(['mine\n', 'theirs\n']);
  });

  test('keeps all files of a checkout that is no longer sparse', async () => {
    await scene.commit('more', { 'in/x': '1\n', 'out/y': '1\n' });
    await scene.git('sparse-checkout', 'set', 'in');
    await begin();
    await inWorktree('in/x', '2\n');
    await scene.git('sparse-checkout', 'disable');
    expect(await scene.read('out/y')).toBe('1\n');
    expect(await apply('merge')).toMatchObject({ outcome: 'applied' });
    expect([await scene.read('in/x'), await scene.read('out/y')]).toEqual(['2\n', '1\n']);
    expect(await scene.git('status', '--porcelain')).toBe('');
  });

  test('includes what the session hid from git', async () => {
    await begin();
    await scene.gitAt(record.path, 'update-index', '--assume-unchanged', 'a.txt');
    await scene.gitAt(record.path, 'update-index', '--skip-worktree', 'b.txt');
    await inWorktree('a.txt', 'theirs\n');
    await inWorktree('b.txt', 'theirs\n');
    expect((await worktreeState(scene.worktrees, record)).dirty).toEqual(['a.txt', 'b.txt']);
    expect(await apply('squash')).toMatchObject({ outcome: 'applied' });
    expect([await scene.read('a.txt'), await scene.read('b.txt')]).toEqual(['theirs\n', 'theirs\n']);
  });

  test('does not take a case-only rename for a conflict where case is ignored', () => {
    const file = { mode: '100644', oid: 'x' };
    const touched = new Map([
      ['Readme', { path: 'Readme', before: file, after: null }],
      ['README', { path: 'README', before: null, after: file }],
    ]);
    expect(goingFrom(touched, true)('README')).toBe(true);
    expect(goingFrom(touched, false)('README')).toBe(false);
  });

  test('includes an edit of the same size in the second of the checkout', async () => {
    await begin();
    const index = path.join(scene.repo, '.git', 'worktrees', 'abcdef01', 'index');
    const { mtime } = await stat(index);
    await inWorktree('b.txt', 'c\n');
    // Git compares these in whole seconds, and the inode, which an edit in place keeps.
    await utimes(path.join(record.path, 'b.txt'), mtime, mtime);
    expect((await worktreeState(scene.worktrees, record)).dirty).toEqual(['b.txt']);
    expect(await apply('merge')).toMatchObject({ outcome: 'applied' });
    expect(await scene.read('b.txt')).toBe('c\n');
  });

  test('as a patch detects an edit by the user of the same size, in the second of git’s last refresh', async () => {
    await begin();
    await inWorktree('b.txt', 'c\n');
    await scene.git('update-index', '--refresh');
    const { mtime } = await stat(path.join(scene.repo, '.git', 'index'));
    await scene.write('b.txt', 'm\n');
    await utimes(path.join(scene.repo, 'b.txt'), mtime, mtime);
    await expect(apply('patch')).rejects.toThrow(/overwritten: b\.txt/);
    expect(await scene.read('b.txt')).toBe('m\n');
  });

  test('requested twice at once happens once', async () => {
    const workspace = await spaces().openWorktree({ sessionId: 'twice', cwd: scene.repo });
    await scene.write('a.txt', 'theirs\n', workspace.cwd);
    const outcomes = await Promise.all([workspace.apply({ mode: 'squash' }), workspace.apply({ mode: 'squash' })]);
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(['applied', 'nothing-to-apply']);
    expect(await scene.git('rev-list', '--count', 'main')).toBe('2');
  });
});

describe('discard', () => {
  test.each<[string, () => Promise<unknown>, RegExp]>([
    [
      'on a branch without a commit',
      () => scene.gitAt(record.path, 'checkout', '--quiet', '--orphan', 'fresh'),
      /uncommitted changes in .*work\.txt/,
    ],
    [
      'whose branch was deleted',
      () => scene.git('update-ref', '-d', 'refs/heads/claude/abcdef01'),
      /uncommitted changes in .*work\.txt/,
    ],
    [
      'whose repository was moved',
      () => rename(scene.repo, path.join(scene.root, 'moved')),
      /repository .* does not exist/,
    ],
    [
      'whose entry was pruned',
      () => rm(path.join(scene.repo, '.git', 'worktrees'), { recursive: true }),
      /git no longer knows it/,
    ],
    ['whose index is broken', () => scene.write('.git/worktrees/abcdef01/index', 'broken'), /cannot tell which files/],
    [
      'with changes hidden from git',
      async () => {
        await rm(path.join(record.path, 'work.txt'));
        await scene.gitAt(record.path, 'update-index', '--assume-unchanged', 'a.txt');
        await inWorktree('a.txt', 'work\n');
      },
      /uncommitted changes in a\.txt/,
    ],
  ])('of a worktree %s is refused', async (_, prepare, message) => {
    await begin();
    await inWorktree('work.txt', 'work\n');
    await prepare();
    expect(isDone(await worktreeState(scene.worktrees, record))).toBe(false);
    await expect(discard()).rejects.toThrow(message);
    expect((await scene.read('work.txt', record.path)) ?? (await scene.read('a.txt', record.path))).toBe('work\n');
  });

  test.each<[string, () => Promise<unknown>]>([
    ['repository', () => rename(scene.repo, path.join(scene.root, 'moved'))],
    ['entry', () => rm(path.join(scene.repo, '.git', 'worktrees'), { recursive: true })],
  ])('by force moves the files aside if the %s is gone', async (_, prepare) => {
    await begin();
    await inWorktree('work.txt', 'work\n');
    await prepare();
    const { keptDirectory } = await discard(true);
    expect(await scene.read('files/work.txt', keptDirectory)).toBe('work\n');
  });

  test('detects changes in a submodule, and by force keeps them', async () => {
    await addSubmodule();
    await begin();
    await scene.gitAt(record.path, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'update', '--init');
    expect(isDone(await worktreeState(scene.worktrees, record))).toBe(true);
    await inWorktree('sub/s.txt', 'work\n');
    await expect(discard()).rejects.toThrow(/uncommitted changes in sub\//);
    const { keptDirectory } = await discard(true);
    expect(await scene.read('sub/s.txt', keptDirectory)).toBe('work\n');
    expect(await readdir(path.join(keptDirectory!, 'submodules'))).toEqual(['sub']);
  });

  test('keeps a nested repository even if it was interrupted before moving it aside', async () => {
    await begin();
    const inner = path.join(record.path, 'inner');
    await mkdir(inner);
    await scene.gitAt(inner, 'init', '--quiet');
    await scene.gitAt(inner, 'commit', '--quiet', '--allow-empty', '--message', 'inner');
    const checkpoint = (step: string): void => {
      if (step === 'discard-keep') throw new Error('cut off');
    };
    const cut = discardWork({ ...scene.worktrees, checkpoint }, record, { force: true });
    await expect(cut).rejects.toThrow('cut off');
    const { keptDirectory } = await discard(true);
    expect(await scene.gitAt(path.join(keptDirectory!, 'inner'), 'log', '--format=%s')).toBe('inner');
  });

  test('of two worktrees with the same commits at the same time keeps one branch', async () => {
    const workspaces = spaces();
    const first = await workspaces.openWorktree({ sessionId: 'first', cwd: scene.repo });
    await scene.write('a.txt', 'work\n', first.cwd);
    await scene.gitAt(first.cwd, 'commit', '--quiet', '--all', '--message', 'work');
    const fork = await workspaces.forkWorktree('fork', first);
    const outcomes = await Promise.allSettled([first.discard(), fork.discard()]);
    expect(outcomes.some(({ status }) => status === 'fulfilled')).toBe(true);
    const branches = await scene.git('branch', '--list', '--format=%(refname:short)', 'claude/*');
    expect(await scene.git('show', `${branches.split('\n')[0]!}:a.txt`)).toBe('work');
  });

  test('keeps a branch that is checked out elsewhere', async () => {
    await begin();
    await scene.git('checkout', '--quiet', '--ignore-other-worktrees', 'claude/abcdef01');
    expect(await discard()).toMatchObject({ keptBranches: ['claude/abcdef01'] });
    expect(await scene.git('status', '--porcelain', '--branch')).toBe('## claude/abcdef01');
  });

  test('names the ignored files that are deleted with the worktree', async () => {
    await begin();
    await inWorktree('x.log', 'x\n');
    await inWorktree('build/out', 'x\n');
    expect(await discard()).toMatchObject({ ignored: ['build/', 'x.log'] });
  });

  test('after a failed start never deletes the branch of another session', async () => {
    const workspaces = spaces();
    const asked = (sessionId: string): ReturnType<Workspaces['openWorktree']> =>
      workspaces.openWorktree({ sessionId, cwd: scene.repo, branch: 'feature' });
    const outcomes = await Promise.allSettled([asked('one'), asked('two')]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await scene.git('rev-parse', 'feature')).toBe(await scene.git('rev-parse', 'main'));
    expect(await workspaces.worktrees()).toHaveLength(1);
  });

  // Root can remove anything.
  test.skipIf(process.getuid?.() === 0)('reports files that cannot be removed, and can be repeated', async () => {
    await begin();
    await mkdir(path.join(record.path, 'build'));
    await inWorktree('build/x', 'x');
    await chmod(path.join(record.path, 'build'), 0o500);
    await expect(discard()).rejects.toThrow(/EACCES|EPERM/);
    await chmod(path.join(record.path, 'build'), 0o700);
    await discard();
    expect(await readFile(record.path).catch(() => 'gone')).toBe('gone');
  });
});
