import { expect, test } from 'vitest';
import { activityWords, homePath, projectOf } from './words.ts';

test.each([
  ['/home/anna', '/home/anna', '~'],
  ['/home/anna/shop/src', '/home/anna', '~/shop/src'],
  ['C:\\Users\\Anna\\shop', 'C:\\Users\\Anna', '~\\shop'],
  ['/srv/hub/shop', '/srv/hub/', '~/shop'],
  // The home directory of somebody else.
  ['/home/ben/shop', '/home/anna', '/home/ben/shop'],
  ['/home/annabel', '/home/anna', '/home/annabel'],
  ['/home/ben/shop', undefined, '~/shop'],
  ['/Users/ben', undefined, '~'],
  ['/srv/shop', undefined, '/srv/shop'],
])('%s below %s is %s', (path, home, shown) => {
  expect(homePath(path, home)).toBe(shown);
});

test('a session works in a project, and on the branch of its worktree', () => {
  expect(projectOf({ cwd: '/home/anna/shop/' })).toBe('shop');
  const workspace = { type: 'worktree', branch: 'claude/1', origin: '/home/anna/shop' };
  expect(projectOf({ cwd: '/state/worktrees/1', workspace })).toBe('shop · claude/1');
});

test.each([
  [
    '1 tool (1 Write), waiting for permission: /home/anna/shop/src/a.ts',
    0,
    '1 tool (1 Write), waiting for permission: src/a.ts',
  ],
  ['1 tool (1 Read), now: /home/anna/shopping/a.ts', 0, '1 tool (1 Read), now: /home/anna/shopping/a.ts'],
  ['1 tool (1 Bash)', 2, '1 tool (1 Bash) · 2 background tasks running'],
  ['', 1, '1 background task running'],
])('the activity %s with %i tasks in the background is told as %s', (activity, backgroundTasks, told) => {
  expect(activityWords({ activity, backgroundTasks, cwd: '/home/anna/shop' })).toBe(told);
});
