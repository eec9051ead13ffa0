import { mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { childEnvironment, inheritedEnvironment } from '../../src/config/child-environment.ts';
import { loadSettings, type Settings, type SettingsFor } from '../../src/config/load-settings.ts';
import { SettingsError } from '../../src/config/bad-input.ts';
import { HUB_ONLY_KEYS, rowOf, variableOf, type SettingKey } from '../../src/config/settings-table.ts';

const host = { cwd: '/work', homedir: '/home/me', platform: 'linux' } as const;

function load(env: NodeJS.ProcessEnv, process: SettingsFor = 'hub'): Settings {
  return loadSettings({ ...host, argv: [], env }, {}, process);
}

const GOOD: [key: SettingKey, text: string, value: unknown][] = [
  ['listen', '127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
  ['listen', ' [::1]:7433 ', { host: '::1', port: 7433 }],
  ['listen', 'localhost:65535', { host: 'localhost', port: 65_535 }],
  ['tlsCert', '~/tls/cert.pem', '/home/me/tls/cert.pem'],
  ['behindProxy', 'https://claude.example.org/', 'https://claude.example.org'],
  ['behindProxy', 'https://host:8443', 'https://host:8443'],
  ['oauthIssuer', 'https://id.example.org/realms/x/', 'https://id.example.org/realms/x/'],
  ['oauthIssuer', 'http://127.0.0.1:4000', 'http://127.0.0.1:4000'],
  ['oauthAudience', 'https://claude.example.org/mcp', 'https://claude.example.org/mcp'],
  ['store', 'postgres://me:pass@db/hub', 'postgres://me:pass@db/hub'],
  ['retainDays', '7', 7],
  ['notify', 'https://hooks.example.org/T0/xyz', 'https://hooks.example.org/T0/xyz'],
  ['notify', 'notify-send Claude', 'notify-send Claude'],
  ['remindAfter', '90s', 90_000],
  ['remindAfter', ' 15m ', 900_000],
  ['remindAfter', '0', 0],
  ['staleAfter', '24h', 86_400_000],
  ['staleAfter', '1500', 1_500],
  ['permissionTimeoutMs', '5m', 300_000],
  ['pushHosts', 'Push.Example.org, [::1]:8443,', ['push.example.org:443', '[::1]:8443']],
];

it.each(GOOD)('%s accepts %j', (key, text, value) => {
  expect(load({ [variableOf(key)]: text })[key]).toEqual(value);
  const { kind } = rowOf(key);
  if (!kind.isSecret) expect(load({ [variableOf(key)]: kind.format(value, host) })[key]).toEqual(value);
});

const BAD: [key: SettingKey, text: string][] = [
  ['listen', '7433'],
  ['listen', '::1:7433'],
  ['listen', '127.0.0.1:65536'],
  ['listen', 'https://localhost:1'],
  ['behindProxy', 'http://claude.example.org'],
  ['behindProxy', 'https://claude.example.org/hub'],
  ['behindProxy', 'https://me:pass@claude.example.org'],
  ['oauthIssuer', 'http://id.example.org'],
  ['oauthIssuer', 'id.example.org'],
  ['store', 'mysql://me:hunter2@db/hub'],
  ['retainDays', '0'],
  ['notify', 'https://'],
  ['remindAfter', '10 minutes'],
  ['staleAfter', '1000h'],
  ['staleAfter', '-1s'],
  ['pushHosts', 'https://push.example.org'],
  ['pushHosts', '*.example.org'],
  ['pushHosts', 'push.example.org:65536'],
];

it.each(BAD)('%s refuses %j', (key, text) => {
  expect(() => load({ [variableOf(key)]: text })).toThrow(SettingsError);
});

it('never shows a value that may contain a password', () => {
  for (const [key, text] of [
    ['store', 'mysql://me:hunter2@db'],
    ['notify', 'https://:hunter2'],
  ] as const)
    expect(() => load({ [variableOf(key)]: text })).toThrow(/^((?!hunter2).)*$/);
});

it('lets requests wait without limit in the hub by default', () => {
  expect(load({}).permissionTimeoutMs).toBe(0);
  expect(load({}, 'server').permissionTimeoutMs).toBe(300_000);
  expect(load({ PERMISSION_TIMEOUT_MS: '5000' }).permissionTimeoutMs).toBe(5000);
});

it('ignores hub-only settings in other processes', () => {
  const env = Object.fromEntries(HUB_ONLY_KEYS.map((key) => [variableOf(key), 'nonsense://']));
  expect(load(env, 'server')).toEqual(load({}, 'server'));
  expect(childEnvironment({ ...env, PATH: '/bin' }, {})).toEqual({ PATH: '/bin' });
  const source = { ...host, argv: ['doctor', '--listen', 'localhost:1', '--max-turns', '3'], env: {} };
  const inherited = inheritedEnvironment(source, loadSettings(source));
  expect(inherited).toEqual({ CLAUDE_CODE_MCP_MAX_TURNS: '3' });
});

it('refuses hub flags in the embedded server', () => {
  const source = { ...host, argv: ['--listen', 'localhost:1'], env: {} };
  expect(() => loadSettings(source)).toThrow('--listen is an option of the hub: claude-code-mcp hub --listen …');
});

it('resolves the shared workspace to its real path, and requires a shared store', async () => {
  const root = await realpath(await mkdtemp(path.join(os.tmpdir(), 'claude-code-mcp-shared-')));
  onTestFinished(() => rm(root, { recursive: true }));
  await mkdir(path.join(root, 'real'));
  await symlink('real', path.join(root, 'link'));
  const env = (directory: string): NodeJS.ProcessEnv => ({
    [variableOf('sharedWorkspace')]: path.join(root, directory),
    [variableOf('store')]: 'postgres://db/hub',
  });
  expect(load(env('link')).sharedWorkspace).toBe(path.join(root, 'real'));
  expect(() => load(env('missing'))).toThrow('it takes an existing directory');
  expect(() => load({ ...env('real'), [variableOf('store')]: '' })).toThrow('--store postgres://');
});
