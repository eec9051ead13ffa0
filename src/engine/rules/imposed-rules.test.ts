import { expect, test } from 'vitest';
import { loadSettings, type Settings } from '../../config/load-settings.ts';
import { thisHost } from '../../config/host.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { SandboxHost } from './imposed-sandbox.ts';
import { drawsLimits, imposeRules } from './imposed-rules.ts';

function rules(given: Partial<Settings>): Settings {
  return { ...loadSettings({ ...thisHost(), argv: [], env: {} }), ...given };
}

const none = rules({});
const here = { trusted: true, configDir: '/home/me/.claude', sandboxHost: () => HOST };
const HOST: SandboxHost = {
  platform: 'linux',
  topLevel: ['/usr', '/etc', '/home', '/tmp', '/work'],
  temporaryDir: '/tmp',
};
const BLOCKED = { blockReadsOutsideWorkingDirectories: true, blockWritesOutsideWorkingDirectories: true };
const fenced = rules({ allowedDirs: ['/a', '/b'] });

test('without rules, an omitted option is not passed', () => {
  const options: SessionOptions = { cwd: '/a', settings: 'some.json' };
  expect(imposeRules(none, options, here)).toEqual({ options, env: {}, warnings: [] });
});

test.each<[string, SessionOptions['settings'], Record<string, unknown>]>([
  ['no settings', undefined, {}],
  ['other settings', { model: 'haiku', permissions: { deny: ['WebFetch'] } }, { deny: ['WebFetch'] }],
  ['settings that would lift it', { permissions: { blockReadsOutsideWorkingDirectories: false } }, {}],
  ['the caller’s own exemptions', { permissions: { blockReadsExemptPaths: ['/'] } }, {}],
  [
    'the same as a JSON string',
    '{"permissions":{"blockWritesOutsideWorkingDirectories":false,"ask":["Bash"]}}',
    { ask: ['Bash'] },
  ],
  ['malformed permissions', { permissions: 'none' }, {}],
])('ALLOWED_DIRS binds file tools, with %s', (_what, settings, kept) => {
  const launch = imposeRules(fenced, { cwd: '/a', ...(settings !== undefined && { settings }) }, here);
  expect(launch.managedSettings).toEqual({ permissions: BLOCKED });
  expect(launch.options).toMatchObject({ cwd: '/a' });
  expect(launch.options.settings).toHaveProperty('permissions', {
    deny: [],
    ...kept,
    ...BLOCKED,
    blockReadsExemptPaths: ['/a', '/b'],
  });
});

test.each<[string, Partial<Settings>]>([
  ['no rules', {}],
  ['ALLOWED_DIRS', { allowedDirs: ['/home/me'] }],
])('file tools cannot reach the hub’s files, with %s', (_what, given) => {
  const closed = ['Read(//home/me/state/**)', 'Edit(//home/me/state/**)'];
  const options = { cwd: '/a', settings: { permissions: { deny: ['WebFetch'] } } };
  const launch = imposeRules(rules({ ...given, stateDir: '/home/me/state' }), options, { ...here, closesState: true });
  expect(launch.managedSettings).toMatchObject({ permissions: { deny: closed } });
  expect(launch.options.settings).toMatchObject({ permissions: { deny: ['WebFetch', ...closed] } });
});

const sandboxed = rules({ sandbox: true, sandboxNetwork: ['registry.npmjs.org'], stateDir: '/home/me/state' });

test('SANDBOX applies in both layers, and callers can only tighten it', () => {
  const sandbox = {
    network: { deniedDomains: ['x'], allowedDomains: ['y'] },
    filesystem: { denyRead: ['/usr/local'] },
  };
  const launch = imposeRules(sandboxed, { sandbox, settings: { sandbox: { enabled: false } } }, here);
  expect(launch.options.sandbox).toEqual(launch.managedSettings?.['sandbox']);
  expect(launch.options.settings).not.toHaveProperty('sandbox');
  expect(launch.options.sandbox).toMatchObject({
    enabled: true,
    failIfUnavailable: true,
    allowUnsandboxedCommands: false,
    autoAllowBashIfSandboxed: false,
    network: { allowedDomains: ['registry.npmjs.org'], deniedDomains: ['x'], strictAllowlist: true },
    filesystem: {
      disabled: false,
      denyRead: ['~', '/home', '/tmp', '/work', '/home/me/state', '/usr/local'],
      denyWrite: ['/home/me/state'],
      allowWrite: [],
    },
  });
});

test('SANDBOX keeps file tools inside the session’s directories and out of the server’s', () => {
  const settings = { permissions: { deny: ['WebFetch'] } };
  expect(imposeRules(sandboxed, { settings }, here).options.settings).toEqual({
    permissions: {
      ...BLOCKED,
      blockReadsExemptPaths: [],
      deny: ['WebFetch', 'Read(//home/me/state/**)', 'Edit(//home/me/state/**)'],
    },
  });
});

test('SANDBOX leaves a session its own worktree and the parts of the repository a commit needs', () => {
  const own = {
    path: '/home/me/state/worktrees/shop/1',
    repository: '/home/me/shop/.git',
    writable: ['/home/me/shop/.git/objects'],
    readOnly: ['/home/me/shop/.git/objects/info'],
    besides: ['/home/me/state/audit.jsonl', '/home/me/state/worktrees/.records'],
  };
  const { options } = imposeRules(sandboxed, {}, { ...here, worktree: own });
  expect(options.sandbox).toMatchObject({
    filesystem: {
      denyRead: ['~', '/home', '/tmp', '/work', ...own.besides],
      denyWrite: [...own.besides, ...own.readOnly],
      allowRead: expect.arrayContaining([own.path, own.repository]),
      allowWrite: own.writable,
    },
  });
  expect(JSON.stringify(options.settings)).toContain('Edit(//home/me/state/audit.jsonl)');
  expect(JSON.stringify(options.settings)).not.toContain('(//home/me/state/**)');
});

test('without SANDBOX, the caller’s own sandbox is passed on unchanged', () => {
  const sandbox = { enabled: true };
  expect(imposeRules(fenced, { sandbox }, here).options).toMatchObject({ sandbox });
  expect(imposeRules(fenced, { settings: { sandbox } }, here).options).toMatchObject({ sandbox });
});

test.each([
  ['nothing', none, false],
  ['approvals by callers', rules({ approvals: 'caller' }), false],
  ['approvals by people', rules({ approvals: 'human' }), true],
  ['allowed directories', rules({ allowedDirs: ['/a'] }), true],
  ['denied options', rules({ denyOptions: ['model'] }), true],
])('prompts are plain text with %s: %o', (_what, limits, drawn) => {
  expect(drawsLimits(limits)).toBe(drawn);
  const { options, env } = imposeRules(limits, { cwd: '/a', verbatimPrompts: false }, here);
  expect(options.verbatimPrompts).toBe(drawn);
  expect(env).toEqual(drawn ? { CLAUDE_CODE_DISABLE_FILE_MENTIONS: '1' } : {});
});

test('an untrusted directory matters only when a person approves, and the warning names it', () => {
  const untrusted = { ...here, trusted: false };
  expect(imposeRules(rules({ allowedDirs: ['/a'] }), { cwd: '/a' }, untrusted)).toMatchObject({ warnings: [] });
  const { options, warnings } = imposeRules(rules({ approvals: 'human' }), { cwd: '/a' }, untrusted);
  expect(options.settingSources).toEqual(['user']);
  expect(warnings).toEqual([expect.stringContaining('/a')]);
});

test('ask rules are added to existing ones', () => {
  const settings = { permissions: { ask: ['Bash'], deny: ['WebFetch'] } };
  const { options } = imposeRules(rules({ approvals: 'human' }), { settings }, here);
  expect(options.settings).toMatchObject({
    permissions: {
      deny: ['WebFetch'],
      ask: expect.arrayContaining(['Bash', 'SendMessage', 'Edit(//home/me/.claude/projects/**)']),
    },
    crossSessionInbound: 'refuse',
  });
});
