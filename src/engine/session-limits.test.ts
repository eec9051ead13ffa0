import { expect, test } from 'vitest';
import { drawsLimits, impose } from './session-limits.ts';

const none = { approvals: 'auto', allowedDirs: undefined, denyOptions: [] } as const;
const here = { trusted: true, configDir: '/home/me/.claude' };

test.each([
  ['nothing', none, false],
  ['approvals of callers', { ...none, approvals: 'caller' } as const, false],
  ['approvals of people', { ...none, approvals: 'human' } as const, true],
  ['allowed directories', { ...none, allowedDirs: ['/a'] }, true],
  ['denied options', { ...none, denyOptions: ['model'] }, true],
])('%s as limit: %o', (_what, limits, drawn) => {
  expect(drawsLimits(limits)).toBe(drawn);
  const { options, env } = impose(limits, { cwd: '/a', verbatimPrompts: false }, here);
  expect(options.verbatimPrompts).toBe(drawn);
  expect(env).toEqual(drawn ? { CLAUDE_CODE_DISABLE_FILE_MENTIONS: '1' } : {});
});

test('an untrusted directory counts only where a person grants rights, and the warning names it', () => {
  const untrusted = { ...here, trusted: false };
  expect(impose({ ...none, allowedDirs: ['/a'] }, { cwd: '/a' }, untrusted)).toMatchObject({ warnings: [] });
  const { options, warnings } = impose({ ...none, approvals: 'human' }, { cwd: '/a' }, untrusted);
  expect(options.settingSources).toEqual(['user']);
  expect(warnings).toEqual([expect.stringContaining('/a')]);
});

test('rules to ask are added to those that are there', () => {
  const settings = { permissions: { ask: ['Bash'], deny: ['WebFetch'] } };
  const { options } = impose({ ...none, approvals: 'human' }, { settings }, here);
  expect(options.settings).toMatchObject({
    permissions: {
      deny: ['WebFetch'],
      ask: expect.arrayContaining(['Bash', 'SendMessage', 'Edit(//home/me/.claude/projects/**)']),
    },
    crossSessionInbound: 'refuse',
  });
});
