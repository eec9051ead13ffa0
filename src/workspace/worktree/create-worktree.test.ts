import { expect, test } from 'vitest';
import { roomBelow, shortId, worktreePath } from './create-worktree.ts';

const windows = {
  worktreesDir: 'C:\\Users\\someone\\AppData\\Local\\claude-code-mcp\\worktrees',
  id: '1f0c2d3e',
  platform: 'win32',
} as const;

test.each([
  ['C:\\code\\shop\\.git', /\\shop-[0-9a-f]{6}\\1f0c2d3e$/],
  ['C:\\code\\bare.git', /\\bare-[0-9a-f]{6}\\1f0c2d3e$/],
  ['C:\\code\\a b:c*?\\.git', /\\a-b-c-+[0-9a-f]{6}\\1f0c2d3e$/],
  ['C:\\code\\CON\\.git', /\\CON-[0-9a-f]{6}\\1f0c2d3e$/],
  [`C:\\code\\${'long'.repeat(50)}\\.git`, /\\(long){6}-[0-9a-f]{6}\\1f0c2d3e$/],
  ['C:\\code\\müller\\.git', /\\müller-[0-9a-f]{6}\\1f0c2d3e$/],
])('the worktree of %s has a name Windows accepts', (commonDir, expected) => {
  const worktree = worktreePath({ ...windows, commonDir });
  expect(worktree).toMatch(expected);
  // Most of the 260 characters are left for the files inside.
  expect(roomBelow(worktree, 'win32', false)).toBeGreaterThan(150);
});

test('two repositories with the same name get different paths', () => {
  const at = (commonDir: string): string => worktreePath({ worktreesDir: '/w', commonDir, id: 'x', platform: 'linux' });
  expect(at('/a/shop/.git')).not.toBe(at('/b/shop/.git'));
  expect(at('/.git')).toMatch(/^\/w\/repository-/);
});

test('there is no limit on other platforms, or with long paths enabled', () => {
  expect(roomBelow('/w/x', 'linux', false)).toBeUndefined();
  expect(roomBelow('C:\\w', 'win32', true)).toBeUndefined();
});

test.each([
  ['1F0C2D3E-aaaa-bbbb', '1f0c2d3e'],
  ['abc', 'abc'],
  ['日本', expect.stringMatching(/^[0-9a-f]{8}$/)],
])('the short id of %s is %s', (id, expected) => expect(shortId(id)).toEqual(expected));
