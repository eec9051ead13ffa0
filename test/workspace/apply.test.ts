import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ApplyMode } from '../../src/schema/enums.ts';
import type { WorktreeRecord } from '../../src/schema/worktree-record.ts';
import { applyWork } from '../../src/workspace/worktree/apply.ts';
import { createWorktree } from '../../src/workspace/worktree/create-worktree.ts';
import { discardWork } from '../../src/workspace/worktree/discard.ts';
import { loadRecord } from '../../src/workspace/worktree/worktree-records.ts';
import { listWorktrees } from '../../src/workspace/worktree/worktree-state.ts';
import { Workspaces } from '../../src/workspace/workspace.ts';
import { openScene, type Scene } from './scene.ts';

let scene: Scene;
let record: WorktreeRecord;
const MODES: ApplyMode[] = ['merge', 'squash', 'patch'];

beforeEach(async () => {
  scene = await openScene();
  await scene.commit('begin', {
    'a.txt': '1\n2\n3\n4\n5\n',
    'b.txt': 'b\n',
    'gone.txt': 'gone\n',
    '.gitignore': '*.log\n',
  });
  record = (await createWorktree(scene.worktrees, { sessionId: 'abcdef01-x', cwd: scene.repo })).record;
});
afterEach(() => scene.close());

const inWorktree = (name: string, content: string): Promise<string> => scene.write(name, content, record.path);
const apply = (mode: ApplyMode, host = scene.worktrees): ReturnType<typeof applyWork> =>
  applyWork(host, record, { mode });
const status = (): Promise<string> => scene.git('status', '--porcelain');
const current = async (): Promise<WorktreeRecord> => (await loadRecord(scene.worktrees, record.id))!;

/** An edit that the session commits, and a new and a removed file that it does not. */
async function work(): Promise<void> {
  await inWorktree('a.txt', '1\n2\n3\n4\nfive\n');
  await scene.gitAt(record.path, 'commit', '--quiet', '--all', '--message', 'session: five');
  await inWorktree('new/n.txt', 'new\n');
  await rm(path.join(record.path, 'gone.txt'));
}

async function expectApplied(): Promise<void> {
  expect(await scene.read('a.txt')).toMatch(/five\n$/);
  expect(await scene.read('new/n.txt')).toBe('new\n');
  expect(await scene.read('gone.txt')).toBeUndefined();
  expect(await scene.git('fsck', '--no-dangling')).toBe('');
}

/** Everything visible in the user's checkout: the branch and its commit, the index, all files. */
async function checkoutState(): Promise<unknown> {
  return {
    head: await readFile(path.join(scene.repo, '.git', 'HEAD'), 'utf8'),
    status: await scene.git('status', '--porcelain=v2', '--branch', '--untracked-files=all', '--ignored'),
    diff: await scene.git('diff', 'HEAD'),
  };
}

describe.each(MODES)('apply as %s', (mode) => {
  test('updates the base’s checkout, keeps unrelated changes there, and next time applies only what is new', async () => {
    await work();
    await scene.write('b.txt', 'mine\n');
    await scene.write('other.txt', 'mine too\n');
    const applied = await apply(mode);
    expect(applied).toMatchObject({ outcome: 'applied', mode, checkout: scene.repo });
    await expectApplied();
    expect(await scene.read('b.txt')).toBe('mine\n');
    const commits = (await scene.git('log', '--format=%s', '--first-parent')).split('\n');
    if (mode === 'patch') {
      expect((await status()).split('\n').sort()).toEqual(
        [' D gone.txt', ' M a.txt', ' M b.txt', '?? new/', '?? other.txt'].sort(),
      );
      expect(commits).toEqual(['begin']);
    } else {
      expect((await status()).split('\n')).toEqual([' M b.txt', '?? other.txt']);
      expect(commits).toEqual(
        mode === 'merge'
          ? ['Work of Claude Code session abcdef01', 'session: five', 'begin']
          : ['Work of Claude Code session abcdef01', 'begin'],
      );
    }

    // Even if it changes the same lines.
    record = await current();
    expect(await apply(mode)).toMatchObject({ outcome: 'nothing-to-apply' });
    await inWorktree('a.txt', '1\n2\n3\n4\nsix\n');
    if (mode === 'patch') await scene.commit('took the patch');
    expect(await apply(mode)).toMatchObject({ outcome: 'applied' });
    expect(await scene.read('a.txt')).toBe('1\n2\n3\n4\nsix\n');
  });

  test('merges with a base that moved on', async () => {
    await work();
    await scene.commit('moved on', { 'a.txt': 'one\n2\n3\n4\n5\n' });
    expect(await apply(mode)).toMatchObject({ outcome: 'applied' });
    expect(await scene.read('a.txt')).toBe('one\n2\n3\n4\nfive\n');
    await expectApplied();
  });
});

// A squash differs from a merge only in the parents of its commit.
const MERGE_AND_PATCH: ApplyMode[] = ['merge', 'patch'];

describe('apply as merge or patch', () => {
  test.each<[string, () => Promise<unknown>, RegExp]>([
    ['a conflict', () => scene.commit('moved on', { 'a.txt': '1\n2\n3\n4\nFIVE\n' }), /conflicts with .* in a\.txt/],
    ['an edited file in the way', () => scene.write('a.txt', 'mine\n'), /would be overwritten: a\.txt/],
    [
      'a staged file in the way',
      async () => (await scene.write('a.txt', 'mine\n'), scene.git('add', 'a.txt')),
      /overwritten: a\.txt/,
    ],
    ['an untracked file in the way', () => scene.write('new/n.txt', 'mine\n'), /overwritten: new\/n\.txt/],
    ['a file in place of a directory', () => scene.write('new', 'mine\n'), /overwritten: new/],
    ['a deleted file in the way', () => rm(path.join(scene.repo, 'a.txt')), /overwritten: a\.txt/],
    ['a merge in progress', () => scene.write('.git/MERGE_HEAD', ''), /A merge is in progress/],
  ])('changes nothing if there is %s, and names it', async (_, prepare, message) => {
    await work();
    await prepare();
    const uncommitted = (): Promise<string> => scene.gitAt(record.path, 'status', '--porcelain=v2', '--branch');
    const before = [await checkoutState(), await uncommitted()];
    for (const mode of MERGE_AND_PATCH) {
      await expect(apply(mode)).rejects.toThrow(message);
      expect([await checkoutState(), await uncommitted()]).toEqual(before);
      expect((await current()).journal).toBeUndefined();
    }
  });

  test('changes nothing if another git process is moving the base, and names its lock', async () => {
    await work();
    await scene.write('.git/refs/heads/main.lock', '');
    const uncommitted = (): Promise<string> => scene.gitAt(record.path, 'status', '--porcelain=v2', '--branch');
    const before = [await checkoutState(), await uncommitted()];
    await expect(apply('merge')).rejects.toThrow(/main\.lock\. Nothing was changed/);
    expect([await checkoutState(), await uncommitted()]).toEqual(before);
    await rm(path.join(scene.repo, '.git/refs/heads/main.lock'));
    expect(await apply('merge')).toMatchObject({ outcome: 'applied', detail: { committedNow: true } });
    await expectApplied();
  });

  test('never overwrites an ignored file', async () => {
    await scene.write('x.log', 'mine\n');
    await inWorktree('x.log', 'theirs\n');
    await scene.gitAt(record.path, 'add', '--force', 'x.log');
    for (const mode of MERGE_AND_PATCH) {
      await expect(apply(mode)).rejects.toThrow(/overwritten: x\.log/);
      expect(await scene.read('x.log')).toBe('mine\n');
    }
  });

  // `processes.test.ts` kills a real process before each step, in the other mode.
  test.each<[ApplyMode, string]>([
    ['merge', 'apply-journal'],
    ['patch', 'apply-files'],
    ['merge', 'apply-ref'],
    ['patch', 'apply-done'],
  ])('leaves a sound repository when a %s fails before %s, and the next one completes it once', async (mode, step) => {
    await work();
    const checkpoint = (reached: string): void => {
      if (reached === step) throw new Error('cut off');
    };
    await expect(apply(mode, { ...scene.worktrees, checkpoint })).rejects.toThrow('cut off');
    expect(await scene.git('fsck', '--no-dangling')).toBe('');
    await status();
    expect(await readFile(path.join(scene.repo, '.git', 'index.lock')).catch(() => 'none')).toBe('none');
    record = await current();
    await apply(mode);
    await expectApplied();
    expect(await scene.git('rev-list', '--count', 'main')).toBe(mode === 'merge' ? '3' : '1');
    expect((await current()).journal).toBeUndefined();
  });
});

describe('apply', () => {
  test('continues after git died while writing files', async () => {
    await work();
    const checkpoint = async (step: string): Promise<void> => {
      if (step !== 'apply-files') return;
      await scene.write('a.txt', '1\n2\n3\n4\nfive\n');
      throw new Error('cut off');
    };
    await expect(apply('merge', { ...scene.worktrees, checkpoint })).rejects.toThrow('cut off');
    record = await current();
    await apply('merge');
    await expectApplied();
    expect(await status()).toBe('');
  });

  test.each<[ApplyMode, string]>([
    ['merge', 'apply-files'],
    ['merge', 'apply-ref'],
    ['patch', 'apply-done'],
  ])('of another session first finishes a %s that was interrupted before %s', async (mode, step) => {
    const second = (await createWorktree(scene.worktrees, { sessionId: 'abcdef02-x', cwd: scene.repo })).record;
    await scene.write('second.txt', 'second\n', second.path);
    await work();
    const checkpoint = (reached: string): void => {
      if (reached === step) throw new Error('cut off');
    };
    await expect(apply(mode, { ...scene.worktrees, checkpoint })).rejects.toThrow('cut off');
    await applyWork(scene.worktrees, second, { mode: 'merge' });
    expect(await scene.read('second.txt')).toBe('second\n');
    await expectApplied();
    record = await current();
    expect(record.journal).toBeUndefined();
    expect(await apply(mode)).toMatchObject({ outcome: 'nothing-to-apply' });
    expect(await status()).toBe(mode === 'merge' ? '' : ' M a.txt\n D gone.txt\n?? new/');
  });

  test.each([
    ['waited', 'wrote'],
    ['wrote', 'waited'],
  ])('of two cut off at once, completes the one that %s and then the one that %s', async (first) => {
    const second = (await createWorktree(scene.worktrees, { sessionId: 'abcdef02-x', cwd: scene.repo })).record;
    await scene.write('second.txt', 'second\n', second.path);
    await work();
    const cutOffBefore =
      (last: string, meanwhile?: () => Promise<unknown>) =>
      async (step: string): Promise<void> => {
        if (step === last) throw new Error('cut off');
        if (step === 'apply-journal') await meanwhile?.();
      };
    // The second one waits for the lock that the first one holds.
    const waiting = { ...scene.worktrees, checkpoint: cutOffBefore('apply-lock') };
    const meanwhile = () => expect(applyWork(waiting, second, { mode: 'merge' })).rejects.toThrow('cut off');
    const writing = { ...scene.worktrees, checkpoint: cutOffBefore('apply-ref', meanwhile) };
    await expect(apply('merge', writing)).rejects.toThrow('cut off');
    const ids = first === 'waited' ? [second.id, record.id] : [record.id, second.id];
    for (const id of ids) await applyWork(scene.worktrees, (await loadRecord(scene.worktrees, id))!, { mode: 'merge' });
    await expectApplied();
    expect(await scene.read('second.txt')).toBe('second\n');
    expect(await status()).toBe('');
  });

  test('does not begin while another one has been interrupted, and completes both when it is tried again', async () => {
    const second = (await createWorktree(scene.worktrees, { sessionId: 'abcdef02-x', cwd: scene.repo })).record;
    await scene.write('second.txt', 'second\n', second.path);
    await work();
    const interrupted = async (step: string): Promise<void> => {
      if (step === 'apply-ref') throw new Error('cut off');
    };
    const checkpoint = async (step: string): Promise<void> => {
      if (step !== 'apply-journal') return;
      await expect(apply('merge', { ...scene.worktrees, checkpoint: interrupted })).rejects.toThrow('cut off');
    };
    const reloaded = () => loadRecord(scene.worktrees, second.id).then((found) => found!);
    await expect(applyWork({ ...scene.worktrees, checkpoint }, second, { mode: 'merge' })).rejects.toThrow(
      /interrupted in the meantime; try again\. Nothing was changed/,
    );
    expect(await scene.read('second.txt')).toBeUndefined();
    await applyWork(scene.worktrees, await reloaded(), { mode: 'merge' });
    await expectApplied();
    expect(await scene.read('second.txt')).toBe('second\n');
    expect(await status()).toBe('');
  });

  test('waits for a lock of the base, then names it; what was interrupted is finished once it is gone', async () => {
    const lock = path.join(scene.repo, '.git', 'refs', 'heads', 'main.lock');
    await work();
    await writeFile(lock, '');
    await expect(apply('merge')).rejects.toThrow(/Another git process is changing refs\/heads\/main.*main\.lock/);
    expect((await current()).journal).toBeUndefined();
    expect(await status()).toBe('');
    await rm(lock);
    const checkpoint = async (step: string): Promise<void> => {
      if (step === 'apply-ref') throw new Error('cut off');
    };
    await expect(apply('merge', { ...scene.worktrees, checkpoint })).rejects.toThrow('cut off');
    await writeFile(lock, '');
    record = await current();
    await expect(apply('merge')).rejects.toThrow('Another git process');
    const snapshotsDir = path.join(scene.root, 'snapshots');
    const workspaces = new Workspaces({ env: scene.host.env, ...scene.worktrees, snapshotsDir });
    expect(await workspaces.reopenWorktree(record.id)).toMatchObject({ isResumed: true });
    await rm(lock);
    await apply('merge');
    await expectApplied();
    expect(await status()).toBe('');
  });

  test('names a file changed since an interruption, and completes once it is out of the way', async () => {
    await work();
    const checkpoint = async (step: string): Promise<void> => {
      if (step === 'apply-ref') throw new Error('cut off');
    };
    await expect(apply('merge', { ...scene.worktrees, checkpoint })).rejects.toThrow('cut off');
    await scene.git('reset', '--quiet');
    await scene.write('new/n.txt', 'changed since\n');
    record = await current();
    await expect(apply('merge')).rejects.toThrow(/was interrupted.*new\/n\.txt/s);
    await rm(path.join(scene.repo, 'new'), { recursive: true });
    await apply('merge');
    await expectApplied();
  });

  test('includes an edit with the same size and second as the last commit', async () => {
    const [file, index] = [
      path.join(record.path, 'b.txt'),
      path.join(record.commonDir, 'worktrees', record.entry!, 'index'),
    ];
    const then = new Date(Math.floor(Date.now() / 1000) * 1000 - 60_000);
    await inWorktree('b.txt', 'c\n');
    await utimes(file, then, then);
    await scene.gitAt(record.path, 'commit', '--quiet', '--all', '--message', 'one');
    await inWorktree('b.txt', 'd\n');
    for (const one of [file, index]) await utimes(one, then, then);
    await apply('squash');
    expect(await scene.git('show', 'main:b.txt')).toBe('d');
  });

  test('moves a base that is not checked out', async () => {
    await work();
    await scene.git('checkout', '--quiet', '-b', 'elsewhere');
    const before = await status();
    expect(await apply('squash')).toMatchObject({ outcome: 'applied', branch: 'main' });
    expect(await status()).toBe(before);
    expect(await scene.git('show', 'main:new/n.txt')).toBe('new');
  });

  test('updates a base that is checked out in another worktree', async () => {
    await work();
    await scene.git('checkout', '--quiet', '-b', 'elsewhere');
    const other = path.join(scene.root, 'other');
    await scene.git('worktree', 'add', '--quiet', other, 'main');
    expect(await apply('merge')).toMatchObject({ checkout: other });
    expect(await scene.read('new/n.txt', other)).toBe('new\n');
    expect(await scene.gitAt(other, 'status', '--porcelain')).toBe('');
  });

  test.each<[string, () => Promise<unknown>, RegExp]>([
    ['a base that moves meanwhile', async () => undefined, /moved on while/],
    [
      'a base that was rewritten',
      () => scene.git('commit', '--quiet', '--amend', '--message', 'rewritten'),
      /was rewritten/,
    ],
    [
      'a base that is gone',
      async () => (await scene.git('checkout', '--quiet', '--detach'), scene.git('branch', '-D', 'main')),
      /main is gone/,
    ],
    [
      'a session on another branch',
      () => scene.gitAt(record.path, 'checkout', '--quiet', '-b', 'astray'),
      /is on astray, not on its branch/,
    ],
    [
      'a session in a rebase',
      () => mkdir(path.join(scene.repo, '.git/worktrees/abcdef01/rebase-merge')),
      /A rebase is in progress/,
    ],
    [
      'a branch that is also checked out elsewhere',
      () => scene.git('checkout', '--quiet', '--ignore-other-worktrees', 'claude/abcdef01'),
      /also checked out in/,
    ],
  ])('refuses %s', async (what, prepare, message) => {
    await work();
    await prepare();
    const checkpoint = async (step: string): Promise<void> => {
      if (what.endsWith('meanwhile') && step === 'apply-journal') await scene.commit('meanwhile');
    };
    await expect(apply('merge', { ...scene.worktrees, checkpoint })).rejects.toThrow(message);
    expect(await scene.read('new/n.txt')).toBeUndefined();
    expect((await current()).journal).toBeUndefined();
  });

  test('refuses a symlink in place of the index, which git would write through', async () => {
    await work();
    const index = path.join(scene.repo, '.git/worktrees/abcdef01/index');
    const victim = await scene.write('victim', 'mine\n', scene.root);
    await rm(index);
    await symlink(victim, index);
    await expect(apply('merge')).rejects.toThrow(/index is not a file/);
    expect(await readFile(victim, 'utf8')).toBe('mine\n');
  });
});

describe('discard', () => {
  const branches = (): Promise<string> => scene.git('branch', '--format=%(refname:short)');
  const discard = (force = false, host = scene.worktrees): ReturnType<typeof discardWork> =>
    discardWork(host, record, { force });

  test('of a session without work deletes its branch too', async () => {
    expect(await discard()).toMatchObject({ keptBranches: [], deletedBranch: 'claude/abcdef01' });
    expect(await branches()).toBe('main');
    expect(await scene.git('worktree', 'list')).not.toContain('abcdef01');
    expect(await listWorktrees(scene.worktrees)).toEqual([]);
  });

  test('of a session with work is refused and names the work; with force it keeps everything on the branch', async () => {
    await work();
    await expect(discard()).rejects.toThrow(/1 commit\(s\) on claude\/abcdef01.*uncommitted changes in .*gone\.txt/);
    expect(await scene.read('new/n.txt', record.path)).toBe('new\n');
    expect(await discard(true)).toMatchObject({ keptBranches: ['claude/abcdef01'] });
    expect(await scene.read('new/n.txt', record.path)).toBeUndefined();
    expect(await scene.git('show', 'claude/abcdef01:new/n.txt')).toBe('new');
  });

  test('of merged work deletes the branch, of squashed work keeps it', async () => {
    await work();
    await apply('merge');
    record = await current();
    expect(await discard()).toMatchObject({ deletedBranch: 'claude/abcdef01' });
    record = (await createWorktree(scene.worktrees, { sessionId: 'second', cwd: scene.repo })).record;
    await inWorktree('b.txt', 'c\n');
    await scene.gitAt(record.path, 'commit', '--quiet', '--all', '--message', 'one');
    await inWorktree('b.txt', 'd\n');
    await apply('squash');
    record = await current();
    expect(await discard()).toMatchObject({ keptBranches: ['claude/second'] });
  });

  test('keeps commits held only by a detached HEAD, and nested repositories', async () => {
    await scene.gitAt(record.path, 'checkout', '--quiet', '--detach');
    await scene.gitAt(record.path, 'commit', '--quiet', '--allow-empty', '--message', 'loose');
    const inner = path.join(record.path, 'inner');
    await mkdir(inner);
    await scene.gitAt(inner, 'init', '--quiet');
    await scene.gitAt(inner, 'commit', '--quiet', '--allow-empty', '--message', 'inner');
    await expect(discard()).rejects.toThrow(/that is not on its branch and uncommitted changes in inner\//);
    const { keptBranches, keptDirectory } = await discard(true);
    expect(await scene.git('log', '-1', '--format=%s', keptBranches[0]!)).toBe('loose');
    expect(await scene.gitAt(path.join(keptDirectory!, 'inner'), 'log', '--format=%s')).toBe('inner');
  });
});

test('commits of deleted branches are kept for a while, and let go where nobody has taken them up', async () => {
  const snapshotsDir = path.join(scene.root, 'snapshots');
  const { worktreesDir } = scene.worktrees;
  const workspaces = new Workspaces({ env: scene.host.env, worktreesDir, snapshotsDir, retainMs: 60_000 });
  const deleted: { ref: string; file: string }[] = [];
  for (const sessionId of ['old', 'taken-up', 'young']) {
    record = (await createWorktree(scene.worktrees, { sessionId, cwd: scene.repo })).record;
    await inWorktree('b.txt', sessionId);
    const { retired } = await discardWork(scene.worktrees, record, { force: true, deleteBranch: true });
    deleted.push({ ref: retired!.ref, file: path.join(worktreesDir, '.retired', `${sessionId}.json`) });
  }
  const [old, takenUp, young] = deleted as [(typeof deleted)[0], (typeof deleted)[0], (typeof deleted)[0]];
  const long = new Date(Date.now() - 120_000);
  for (const { file } of [old, takenUp]) await utimes(file, long, long);
  // Not readable: the others are swept all the same.
  const broken = path.join(worktreesDir, '.retired', 'broken.json');
  await writeFile(broken, '{');
  await utimes(broken, long, long);
  await scene.git('update-ref', takenUp.ref, 'main');
  await workspaces.sweep();
  const refs = await scene.git('for-each-ref', '--format=%(refname)', 'refs/claude/discarded');
  expect(refs.split('\n').sort()).toEqual([takenUp.ref, young.ref].sort());
  expect(existsSync(old.file)).toBe(false);
  expect(existsSync(young.file)).toBe(true);
});

test('a worktree deleted by hand is listed as missing, and its branch survives', async () => {
  await work();
  await scene.gitAt(record.path, 'commit', '--quiet', '--all', '--message', 'more');
  await rm(record.path, { recursive: true });
  expect(await listWorktrees(scene.worktrees)).toMatchObject([{ state: 'missing', unmergedCommits: 2 }]);
  expect(await discardWork(scene.worktrees, record, { force: true })).toMatchObject({
    keptBranches: ['claude/abcdef01'],
  });
});
