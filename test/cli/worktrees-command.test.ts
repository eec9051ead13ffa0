import { afterEach, beforeEach, expect, test } from 'vitest';
import { REST_MS, runWorktrees } from '../../src/cli/worktrees/run-worktrees.ts';
import { createWorktree } from '../../src/workspace/worktree/create-worktree.ts';
import { openScene, type Scene } from '../workspace/scene.ts';
import { captureTerminal } from './captured-terminal.ts';

let scene: Scene;
beforeEach(async () => {
  scene = await openScene();
  await scene.commit('begin', { a: '1' });
});
afterEach(() => scene.close());

test('lists worktrees and prunes the merged ones after asking', async () => {
  const host = scene.worktrees;
  const later = Date.now() + 2 * REST_MS;
  const run = async (args: string[], answers: string[] = [], now = later): Promise<[number, string]> => {
    const terminal = captureTerminal(answers);
    return [await runWorktrees(args, { host, terminal, now }), terminal.text];
  };
  expect(await run([])).toEqual([0, expect.stringContaining('There are no worktrees')]);
  await createWorktree(host, { sessionId: 'done', cwd: scene.repo });
  const { record } = await createWorktree(host, { sessionId: 'busy', cwd: scene.repo });
  await scene.write('a', '2', record.path);
  const [, listed] = await run(['list']);
  expect(listed).toMatch(/claude\/busy {2}1 uncommitted file\n[^]*claude\/done {2}merged\n/);
  expect(await run(['prune'], [], Date.now())).toEqual([0, expect.stringContaining('Nothing to prune')]);
  expect(await run(['prune'])).toEqual([1, expect.stringContaining('pass --yes')]);
  expect((await run(['prune'], ['n']))[0]).toBe(1);
  expect(await run(['prune'], ['y'])).toEqual([0, expect.stringMatching(/Removed .*done/)]);
  expect(await scene.git('branch', '--format=%(refname:short)')).toBe('claude/busy\nmain');
  expect(await run(['prune', '--yes'])).toEqual([0, expect.stringContaining('Nothing to prune')]);
  await expect(run(['purge'])).rejects.toThrow('it takes list or prune');
});

test('prints the names of a repository and its branches with control and direction characters escaped', async () => {
  const odd = await openScene('odd\u001b[2J\u202erepo');
  try {
    await odd.commit('begin', { a: '1' });
    await odd.git('switch', '--quiet', '-c', 'base\u202e\u009b2J');
    const host = odd.worktrees;
    await createWorktree(host, { sessionId: 'odd', cwd: odd.repo });
    const terminal = captureTerminal([]);
    expect(await runWorktrees([], { host, terminal, now: Date.now() })).toBe(0);
    expect(terminal.text).toMatch(/odd\\u001b\[2J\\u202erepo, from base\\u202e\\u009b2J\n$/);
    expect(await runWorktrees(['prune', '--yes'], { host, terminal, now: Date.now() + 2 * REST_MS })).toBe(0);
    expect(terminal.text).not.toMatch(/(?!\n)\p{Cc}|\p{Cf}/u);
  } finally {
    await odd.close();
  }
});
