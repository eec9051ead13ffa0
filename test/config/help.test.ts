import { expect, it } from 'vitest';
import { helpText, hubSettingsMarkdownTable, settingsMarkdownTable } from '../../src/config/help.ts';
import { flagOf, HUB_ONLY_KEYS, rowOf, SETTING_KEYS, variableOf } from '../../src/config/settings-table.ts';

it('names the settings as in the specification', () => {
  const fromSpecification =
    'TOOLSET EXECUTABLE PERMISSION_TIMEOUT_MS START_TIMEOUT_MS APPROVALS MAX_SESSIONS EVENT_BUFFER_SIZE SESSION_TTL_MS ' +
    'RUNNING_SESSION_MAX_MS CLEANUP_INTERVAL_MS PARK_AFTER_MS ALLOW_DISK_RESUME RESUME_SECRET ALLOW_BYPASS ALLOWED_DIRS ' +
    'DENY_OPTIONS ALLOW_SENSITIVE_SESSION_DETAILS PREWARM MAX_BUDGET_USD MAX_TURNS MAX_DEPTH AUDIT_LOG LOG_LEVEL ' +
    'STATE_DIR WORKTREES_DIR GIT_BASH_PATH SANDBOX SANDBOX_NETWORK HUB LISTEN TLS_CERT TLS_KEY BEHIND_PROXY ' +
    'OAUTH_ISSUER OAUTH_AUDIENCE STORE SHARED_WORKSPACE RETAIN_DAYS RETAIN_AUDIT_DAYS NOTIFY NOTIFY_SECRET ' +
    'PUSH_HOSTS REMIND_AFTER STALE_AFTER KEEP_FOR RULES';
  const expected = fromSpecification.split(' ').map((name) => `CLAUDE_CODE_MCP_${name}`);
  expect(SETTING_KEYS.map(variableOf).sort()).toEqual(expected.sort());
});

it('prints help in 80 columns, with every command and flag', () => {
  const help = helpText();
  for (const line of help.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  for (const command of ['serve', 'doctor', 'demo', 'audit', 'install', 'uninstall', '--help', '--version'])
    expect(help).toContain(`\n  ${command} `);
  for (const key of SETTING_KEYS) expect(help).toMatch(new RegExp(`^  ${flagOf(key)}( <.*>)?$`, 'm'));
  expect(help).not.toContain('undefined');
});

it.each([
  ['every setting except the hub’s', settingsMarkdownTable, SETTING_KEYS.filter((key) => rowOf(key).scope !== 'hub')],
  ['the hub’s settings', hubSettingsMarkdownTable, HUB_ONLY_KEYS],
] as const)('lists %s in one table', (_which, table, keys) => {
  const lines = table().trimEnd().split('\n');
  expect(lines).toHaveLength(keys.length + 2);
  for (const line of lines) expect(line.replaceAll('\\|', '').split('|')).toHaveLength(6);
  for (const key of keys) expect(table()).toContain(`\`${variableOf(key)}\``);
  expect(table()).not.toContain('undefined');
});

it('describes each setting in one sentence', () => {
  for (const key of SETTING_KEYS) expect(rowOf(key).meaning).toMatch(/^[A-Z].*\.$/);
});
