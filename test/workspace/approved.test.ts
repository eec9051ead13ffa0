/** What a person approved is what is applied or discarded, and nothing else. */

import { existsSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ApplyMode } from '../../src/schema/enums.ts';
import type { WorktreeRecord } from '../../src/schema/worktree-record.ts';
import { applyApproved, planApply, type ApprovedApply, type PlannedApply } from '../../src/workspace/worktree/apply.ts';
import { createWorktree } from '../../src/workspace/worktree/create-worktree.ts';
import { discardApproved, planDiscard } from '../../src/workspace/worktree/discard.ts';
import { loadRecord, type WorktreeHost } from '../../src/workspace/worktree/worktree-records.ts';
import { openScene, type Scene } from './scene.ts';

let scene: Scene;
let record: WorktreeRecord;

beforeEach(async () => {
  scene = await openScene();
  await scene.commit('begin', { 'a.txt': '1\n2\n3\n4\n5\n' });
  record = (await createWorktree(scene.worktrees, { sessionId: 'abcdef01-x', cwd: scene.repo })).record;
  await inWorktree('a.txt', '1\n2\n3\n4\nfive\n');
});
afterEach(() => scene.close());

const inWorktree = (name: string, content: string): Promise<string> => scene.write(name, content, record.path);
const current = async (): Promise<WorktreeRecord> => (await loadRecord(scene.worktrees, record.id))!;

async function plan(options: { mode: ApplyMode; message?: string; commit?: string }): Promise<PlannedApply> {
  const planned = await planApply(scene.worktrees, await current(), options);
  if (planned.outcome !== 'planned') throw new Error(planned.outcome);
  return planned;
}

const apply = async (approved: ApprovedApply, host = scene.worktrees): ReturnType<typeof applyApproved> =>
  applyApproved(host, await current(), approved);

/** Fails at this step, and leaves everything as a killed process would. */
const dyingAt = (step: string): WorktreeHost => ({
  ...scene.worktrees,
  checkpoint: async (reached) => {
    if (reached === step) throw new Error(`died at ${step}`);
  },
});

describe.each<ApplyMode>(['merge', 'squash', 'patch'])('an approved apply as %s', (mode) => {
  test('applies the commit that was shown, not what was written since', async () => {
    const before = await scene.git('rev-parse', 'main');
    const { approve, change, message } = await plan({ mode, message: 'as agreed' });
    expect(await scene.git('rev-parse', 'main')).toBe(before);
    expect(message).toBe('as agreed');
    expect(await scene.git('diff', change.from, change.to)).toContain('+five');
    await inWorktree('a.txt', '1\n2\n3\n4\nsomething else\n');
    await inWorktree('later.txt', 'later\n');
    await scene.gitAt(record.path, 'add', '--all');
    await scene.gitAt(record.path, 'commit', '--quiet', '--amend', '--message', 'rewritten');
    expect(await apply(approve)).toMatchObject({ outcome: 'applied', mode });
    expect(await scene.read('a.txt')).toBe('1\n2\n3\n4\nfive\n');
    expect(await scene.read('later.txt')).toBeUndefined();
    expect(existsSync(`${record.path}/later.txt`)).toBe(true);
    if (mode !== 'patch') expect(await scene.git('log', '-1', '--format=%s', 'main')).toBe('as agreed');
    expect((await current()).base.commit).toBe(approve.commit);
  });

  test('changes nothing if the base has moved; the same commit can be planned again', async () => {
    const { approve } = await plan({ mode });
    await scene.commit('moved on', { 'a.txt': 'one\n2\n3\n4\n5\n' });
    await inWorktree('later.txt', 'later\n');
    const before = await scene.git('rev-parse', 'main');
    expect(await apply(approve)).toBe('moved');
    expect(await scene.git('rev-parse', 'main')).toBe(before);
    const again = await plan({ ...approve });
    expect(again.approve).toEqual({ ...approve, onto: before });
    expect(await apply(again.approve)).toMatchObject({ outcome: 'applied' });
    expect(await scene.read('a.txt')).toBe('one\n2\n3\n4\nfive\n');
    expect(await scene.read('later.txt')).toBeUndefined();
  });
});

// Every step, each in one mode: what differs between the modes is covered by `apply.test.ts`.
test.each<[ApplyMode, string]>([
  ['merge', 'apply-journal'],
  ['squash', 'apply-files'],
  ['patch', 'apply-ref'],
  ['squash', 'apply-done'],
])('an approved apply as %s that died at %s happens once when it is repeated', async (mode, step) => {
  const { approve } = await plan({ mode });
  await expect(apply(approve, dyingAt(step))).rejects.toThrow(`died at ${step}`);
  expect(await apply(approve)).toMatchObject({ outcome: 'applied', mode });
  expect(await apply(approve)).toMatchObject({ outcome: 'applied', mode });
  expect(await scene.read('a.txt')).toBe('1\n2\n3\n4\nfive\n');
  expect(await scene.git('rev-list', '--count', 'main')).toBe(mode === 'patch' ? '1' : '2');
});

describe('an approved discard', () => {
  const discard = async (approved: Parameters<typeof discardApproved>[2]): ReturnType<typeof discardApproved> =>
    discardApproved(scene.worktrees, await current(), approved);

  test('removes what was shown, and keeps it on the branch', async () => {
    const { approve, keptBranches } = await planDiscard(scene.worktrees, record);
    expect(keptBranches).toEqual(['claude/abcdef01']);
    expect(await scene.git('show', `${approve.commit!}:a.txt`)).toContain('five');
    expect(await discard(approve)).toMatchObject({ path: record.path, keptBranches });
    expect(existsSync(record.path)).toBe(false);
    expect(await scene.git('rev-parse', 'claude/abcdef01')).toBe(approve.commit);
  });

  test.each<[string, () => Promise<unknown>]>([
    ['an uncommitted file', () => inWorktree('later.txt', 'later\n')],
    ['a commit', () => scene.gitAt(record.path, 'commit', '--quiet', '--allow-empty', '--message', 'one more')],
  ])('removes nothing if there is %s more', async (_what, change) => {
    const { approve } = await planDiscard(scene.worktrees, record);
    await change();
    expect(await discard(approve)).toBe('moved');
    expect(existsSync(record.path)).toBe(true);
    const again = await planDiscard(scene.worktrees, await current());
    expect(again.approve.commit).not.toBe(approve.commit);
    expect(await discard(again.approve)).toMatchObject({ keptBranches: ['claude/abcdef01'] });
  });
});
