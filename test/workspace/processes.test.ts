/** Concurrent and killed servers, with real processes and signals. */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ApplyMode } from '../../src/schema/enums.ts';
import { worktreeLock } from '../../src/transcripts/session-lock.ts';
import { createWorktree } from '../../src/workspace/worktree/create-worktree.ts';
import { exclusively } from '../../src/workspace/worktree/worktree-records.ts';
import { Workspaces, type Workspace } from '../../src/workspace/workspace.ts';
import { bundle } from '../harness/bundle.ts';
import { eventually } from '../harness/eventually.ts';
import { openScene, type Scene } from './scene.ts';
import type { Order } from './worker.ts';

let bundleDir = '';
let worker = '';
let scene: Scene;

beforeAll(async () => {
  bundleDir = await mkdtemp(path.join(tmpdir(), 'worktree-worker-'));
  worker = await bundle(fileURLToPath(new URL('worker.ts', import.meta.url)), bundleDir);
}, 60_000);
afterAll(() => rm(bundleDir, { recursive: true, force: true }));
beforeEach(async () => {
  scene = await openScene();
  await scene.commit('begin', { 'a.txt': '1\n', 'gone.txt': 'gone\n' });
});
afterEach(() => scene.close());

function argumentsFor(order: Partial<Order> & Pick<Order, 'action' | 'ids'>): string[] {
  const whole: Order = { worktreesDir: scene.worktrees.worktreesDir, cwd: scene.repo, ...order };
  return [worker, JSON.stringify(whole)];
}

async function work(order: Parameters<typeof argumentsFor>[0]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, argumentsFor(order), { env: scene.host.env });
  return stdout.trim();
}

async function workUntilKilled(order: Parameters<typeof argumentsFor>[0]): Promise<void> {
  const child = spawn(process.execPath, argumentsFor(order), { env: scene.host.env, stdio: 'inherit' });
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  expect([code, signal]).toEqual([null, 'SIGKILL']);
}

const server = (): Workspaces => {
  const { worktreesDir } = scene.worktrees;
  const snapshotsDir = path.join(scene.root, 'snapshots');
  return new Workspaces({ env: scene.host.env, worktreesDir, snapshotsDir, lock: worktreeLock(worktreesDir) });
};

/** The repository is sound, once the git that the dead process started has exited too. */
async function expectSound(): Promise<void> {
  const lock = path.join(scene.repo, '.git', 'refs', 'heads', 'main.lock');
  await eventually(() => !existsSync(lock), { what: 'git has released the branch' });
  expect(await scene.git('fsck', '--no-dangling')).toBe('');
  await scene.git('status', '--porcelain');
  expect(existsSync(path.join(scene.repo, '.git', 'index.lock'))).toBe(false);
}

describe('two servers', () => {
  test.each(['the same directory', 'a directory each'])('create worktrees of one repository in %s', async (where) => {
    const sessions = ['a', 'b'].map((name) => Array.from({ length: 5 }, (_, index) => `${name}${index}`));
    const made = await Promise.all(
      sessions.map((ids, index) => {
        const own = { worktreesDir: path.join(scene.root, `worktrees-${index}`) };
        return work({ action: 'create', ids, ...(where === 'a directory each' && own) });
      }),
    );
    expect(made.join(' ').split(' ').sort()).toEqual(sessions.flat().sort());
    expect((await scene.git('worktree', 'list')).split('\n')).toHaveLength(11);
    expect(await scene.git('fsck', '--no-dangling')).toBe('');
    for (const branch of (await scene.git('branch', '--format=%(refname)', '--list', 'claude/*')).split('\n'))
      expect(await scene.git('rev-parse', branch)).toBe(await scene.git('rev-parse', 'main'));
  });

  test('that apply the same work at once apply it once', async () => {
    const { cwd, worktree } = await server().openWorktree({ sessionId: 'one', cwd: scene.repo });
    await scene.write('a.txt', '2\n', cwd);
    const order = { action: 'apply', ids: [worktree!.id], mode: 'squash' } as const;
    await Promise.all([work(order), work(order)]);
    expect(await scene.git('rev-list', '--count', 'main')).toBe('2');
    expect(await scene.git('status', '--porcelain')).toBe('');
  });

  test('wait for each other for a limited time, then report which process is working', async () => {
    const take = worktreeLock(scene.worktrees.worktreesDir);
    const held = await take('x');
    if (!('release' in held)) throw new Error('The lock is already held.');
    await expect(exclusively(take, 60)('x', async () => 'done')).rejects.toThrow(/process \d+\) is working on/);
    await held.release();
    expect(await exclusively(take, 60)('x', async () => 'done')).toBe('done');
  });
});

describe('a server killed', () => {
  let workspace: Workspace;
  const reopened = async (): Promise<Workspace> => (await server().findWorktree('one'))!;

  async function begin(): Promise<void> {
    workspace = await server().openWorktree({ sessionId: 'one', cwd: scene.repo });
    await scene.write('a.txt', '2\n', workspace.cwd);
    await scene.write('new/n.txt', 'new\n', workspace.cwd);
    await rm(path.join(workspace.cwd, 'gone.txt'));
  }

  // Every step; `apply.test.ts` covers the other mode where the modes differ.
  test.each<[ApplyMode, string]>([
    ['squash', 'commit-index'],
    ['merge', 'commit-ref'],
    ['patch', 'apply-journal'],
    ['merge', 'apply-files'],
    ['patch', 'apply-ref'],
    ['squash', 'apply-done'],
  ])('during a %s before %s leaves a sound repository, and the next attempt completes it', async (mode, killAt) => {
    await begin();
    await workUntilKilled({ action: 'apply', ids: [workspace.worktree!.id], mode, killAt });
    await expectSound();
    await (await reopened()).apply({ mode });
    await expectSound();
    expect([await scene.read('a.txt'), await scene.read('new/n.txt'), await scene.read('gone.txt')]).toEqual([
      '2\n',
      'new\n',
      undefined,
    ]);
    expect(await scene.git('rev-list', '--count', 'main')).toBe(mode === 'patch' ? '1' : '2');
  });

  test.each([
    'commit-index',
    'commit-ref',
    'discard-journal',
    'discard-keep',
    'discard-files',
    'discard-entry',
    'discard-branch',
    'discard-record',
  ])('during a discard before %s loses nothing, and the next attempt completes it', async (killAt) => {
    await begin();
    const id = workspace.worktree!.id;
    await workUntilKilled({ action: 'discard', ids: [id], killAt });
    await expectSound();
    await work({ action: 'discard', ids: [id] });
    await expectSound();
    expect(await scene.git('show', 'claude/one:new/n.txt')).toBe('new');
    expect(await scene.git('worktree', 'list')).not.toContain(workspace.cwd);
    expect(await server().worktrees()).toEqual([]);
  });

  test.each(['add', 'add-entry', 'record-entry', 'check-out', 'ready'])(
    'during a start before %s leaves a sound repository, and the next start works and cleans up',
    async (killAt) => {
      await workUntilKilled({ action: 'create', ids: ['one'], killAt });
      await expectSound();
      const { record } = await createWorktree(scene.worktrees, { sessionId: 'one', cwd: scene.repo });
      expect(await scene.read('a.txt', record.path)).toBe('1\n');
      await work({ action: 'discard', ids: ['one'] });
      await expectSound();
      expect(await scene.git('worktree', 'list')).toContain(record.path);
      const branches = (await scene.git('for-each-ref', '--format=%(refname)', 'refs/heads')).split('\n');
      // A branch without a worktree entry could belong to anyone, so it is kept.
      const left = killAt === 'add-entry' ? ['refs/heads/claude/one'] : [];
      expect(branches.sort()).toEqual([...left, record.branch, 'refs/heads/main']);
      expect(await scene.gitAt(record.path, 'status', '--porcelain', '--branch')).toBe(
        `## ${record.branch.replace('refs/heads/', '')}`,
      );
    },
  );
});
