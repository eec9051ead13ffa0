import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, expectTypeOf, it } from 'vitest';
import { loadSettings, type Settings } from '../../src/config/load-settings.ts';
import { SettingsError } from '../../src/config/bad-input.ts';
import { flagOf, rowOf, variableOf, type SettingKey } from '../../src/config/settings-table.ts';

const root = realpathSync(mkdtempSync(path.join(tmpdir(), 'settings-')));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const project = path.join(root, 'project');
const withComma = path.join(root, 'one, two');
mkdirSync(project);
mkdirSync(withComma);
symlinkSync(project, path.join(root, 'link'));
writeFileSync(path.join(root, 'file'), '');

function load(env: NodeJS.ProcessEnv = {}, argv: string[] = [], platform: NodeJS.Platform = 'linux'): Settings {
  return loadSettings({ argv, env, cwd: root, homedir: '/home/me', platform });
}

function settingsError(env: NodeJS.ProcessEnv, argv: string[] = []): string {
  try {
    load(env, argv);
  } catch (error) {
    expect(error).toBeInstanceOf(SettingsError);
    return (error as SettingsError).message;
  }
  throw new Error('accepted');
}

it('has the defaults from the specification', () => {
  expect(load()).toEqual({
    toolset: 'compact',
    executable: undefined,
    permissionTimeoutMs: 300_000,
    startTimeoutMs: 10_000,
    approvals: 'auto',
    maxSessions: 10,
    eventBufferSize: 1000,
    sessionTtlMs: 1_800_000,
    runningSessionMaxMs: 14_400_000,
    cleanupIntervalMs: 60_000,
    parkAfterMs: 300_000,
    allowDiskResume: false,
    resumeSecret: undefined,
    allowBypass: false,
    allowedDirs: undefined,
    sandbox: false,
    sandboxNetwork: [],
    denyOptions: [],
    allowSensitiveSessionDetails: true,
    prewarm: false,
    maxBudgetUsd: undefined,
    maxTurns: undefined,
    maxDepth: 2,
    auditLog: '/home/me/.local/state/claude-code-mcp/audit.jsonl',
    logLevel: 'info',
    gitBashPath: undefined,
    hub: 'auto',
    listen: { host: '127.0.0.1', port: 7433 },
    tlsCert: undefined,
    tlsKey: undefined,
    behindProxy: undefined,
    oauthIssuer: undefined,
    oauthAudience: undefined,
    store: undefined,
    sharedWorkspace: undefined,
    retainDays: 30,
    retainAuditDays: 365,
    notify: undefined,
    notifySecret: undefined,
    rules: undefined,
    pushHosts: [],
    remindAfter: 600_000,
    staleAfter: 86_400_000,
    keepFor: 900_000,
    stateDir: '/home/me/.local/state/claude-code-mcp',
    worktreesDir: '/home/me/.local/state/claude-code-mcp/worktrees',
    depth: 0,
  });
});

it('infers the types from the table', () => {
  expectTypeOf<Settings['toolset']>().toEqualTypeOf<'compact' | 'explicit'>();
  expectTypeOf<Settings['maxSessions']>().toEqualTypeOf<number>();
  expectTypeOf<Settings['maxBudgetUsd']>().toEqualTypeOf<number | undefined>();
  expectTypeOf<Settings['allowedDirs']>().toEqualTypeOf<readonly string[] | undefined>();
  expectTypeOf<Settings['denyOptions']>().toEqualTypeOf<readonly string[]>();
  expectTypeOf<Settings['allowBypass']>().toEqualTypeOf<boolean>();
  expectTypeOf<Settings['auditLog']>().toEqualTypeOf<string>();
});

const GOOD: [key: SettingKey, text: string, value: unknown][] = [
  ['toolset', 'explicit', 'explicit'],
  ['toolset', ' Compact ', 'compact'],
  ['executable', '/opt/claude', '/opt/claude'],
  ['executable', './claude', path.join(root, 'claude')],
  ['permissionTimeoutMs', '0', 0],
  ['permissionTimeoutMs', '2147483647', 2_147_483_647],
  ['approvals', 'human', 'human'],
  ['maxSessions', ' 3 ', 3],
  ['allowBypass', 'yes', true],
  ['allowBypass', 'OFF', false],
  ['allowSensitiveSessionDetails', '0', false],
  ['denyOptions', ' env, ,plugins,env', ['env', 'plugins']],
  ['denyOptions', ' , ', []],
  ['allowedDirs', project, [project]],
  ['sandbox', 'on', true],
  ['sandboxNetwork', 'registry.npmjs.org, *.github.com', ['registry.npmjs.org', '*.github.com']],
  ['allowedDirs', `link:${project}\n${root}`, [project, root]],
  ['allowedDirs', `${root}, ${project},`, [root, project]],
  ['allowedDirs', `${withComma}:link`, [withComma, project]],
  ['maxBudgetUsd', '2.50', 2.5],
  ['maxTurns', '7', 7],
  ['auditLog', 'off', 'off'],
  ['auditLog', 'FALSE', 'off'],
  ['auditLog', '~/audit.jsonl', '/home/me/audit.jsonl'],
  ['auditLog', 'log/audit.jsonl', path.join(root, 'log/audit.jsonl')],
  ['logLevel', 'TRACE', 'debug'],
  ['logLevel', 'warning', 'warn'],
  ['resumeSecret', ' s ', ' s '],
  ['stateDir', '~', '/home/me'],
];

it.each(GOOD)('%s accepts %j as a variable and as a flag', (key, text, value) => {
  expect(load({ [variableOf(key)]: text })[key]).toEqual(value);
  expect(load({}, [`${flagOf(key)}=${text}`])[key]).toEqual(value);
  if (!rowOf(key).kind.isSwitch) expect(load({}, [flagOf(key), text])[key]).toEqual(value);
});

const BAD: [key: SettingKey, text: string][] = [
  ['toolset', 'both'],
  ['toolset', 'constructor'],
  ['permissionTimeoutMs', '-1'],
  ['permissionTimeoutMs', '2147483648'],
  ['permissionTimeoutMs', '5 minutes'],
  ['maxSessions', '0'],
  ['maxSessions', '1.5'],
  ['maxSessions', '1e2'],
  ['maxSessions', ' '],
  ['maxSessions', 'Infinity'],
  ['allowBypass', 'maybe'],
  ['maxBudgetUsd', '0'],
  ['maxBudgetUsd', '-1'],
  ['maxBudgetUsd', '$5'],
  ['auditLog', 'on'],
  ['auditLog', ' '],
  ['logLevel', 'loud'],
  ['allowedDirs', '/nowhere/at/all'],
  ['sandbox', 'strict'],
  ['sandboxNetwork', 'https://example.org'],
  ['sandboxNetwork', '*'],
  ['allowedDirs', 'file'],
  ['allowedDirs', ':'],
  ['allowedDirs', '\n'],
];

it.each(BAD)('%s refuses %j with a one-line error that names it', (key, text) => {
  const fromVariable = settingsError({ [variableOf(key)]: text });
  const fromFlag = settingsError({}, [`${flagOf(key)}=${text}`]);
  for (const [message, source] of [
    [fromVariable, variableOf(key)],
    [fromFlag, flagOf(key)],
  ] as const) {
    expect(message).toContain(source);
    expect(message).toContain(JSON.stringify(text));
    expect(message).toContain(rowOf(key).kind.accepts);
    expect(message).not.toMatch(/[\r\n]/);
  }
});

describe('sources of a value', () => {
  it('takes the flag, then the prefixed variable, then the bare one', () => {
    const env = { CLAUDE_CODE_MCP_MAX_SESSIONS: '2', MAX_SESSIONS: '1' };
    expect(load({ MAX_SESSIONS: '1' }).maxSessions).toBe(1);
    expect(load(env).maxSessions).toBe(2);
    expect(load(env, ['--max-sessions', '3']).maxSessions).toBe(3);
    expect(load(env, ['--max-sessions', '3', '--max-sessions', '4']).maxSessions).toBe(4);
  });

  it('treats an empty value as not set', () => {
    expect(load({ CLAUDE_CODE_MCP_MAX_SESSIONS: '', MAX_SESSIONS: '1' }).maxSessions).toBe(1);
    expect(load({ MAX_SESSIONS: '1' }, ['--max-sessions', '']).maxSessions).toBe(1);
  });

  it.each([
    ['executable', 'CLAUDE_CODE_PATH', '/opt/claude'],
    ['permissionTimeoutMs', 'PERMISSION_TIMEOUT_MS', '5'],
    ['maxSessions', 'MAX_SESSIONS', '5'],
    ['eventBufferSize', 'EVENT_BUFFER_SIZE', '5'],
    ['logLevel', 'LOG_LEVEL', 'debug'],
    ['gitBashPath', 'CLAUDE_CODE_GIT_BASH_PATH', '/bash.exe'],
  ] as const)('%s is also read from %s', (key, variable, text) => {
    expect(String(load({ [variable]: text })[key])).toBe(text);
    expect(rowOf(key).alsoReads).toEqual([variable]);
  });

  it('names the bare variable that holds a bad value', () => {
    expect(settingsError({ LOG_LEVEL: 'loud' })).toMatch(/^LOG_LEVEL is "loud"/);
  });

  it('says which directory is missing', () => {
    expect(settingsError({ CLAUDE_CODE_MCP_ALLOWED_DIRS: `${project}:/nowhere` })).toContain(
      '"/nowhere" is not an existing directory',
    );
  });

  it('reads the depth and treats nonsense as 0', () => {
    expect(load({ CLAUDE_CODE_MCP_DEPTH: '3' }).depth).toBe(3);
    for (const bad of ['', '-1', 'x', '1.5']) expect(load({ CLAUDE_CODE_MCP_DEPTH: bad }).depth).toBe(0);
    expect(settingsError({}, ['--depth', '1'])).toContain('--depth');
  });

  it('finds a bare program name on PATH', () => {
    const bin = path.join(root, 'bin');
    mkdirSync(bin);
    writeFileSync(path.join(bin, 'claude'), '');
    // Searching it fails, for root too, as it does in a directory of another user.
    const unsearchable = path.join(root, 'loop');
    symlinkSync(unsearchable, unsearchable);
    const PATH = `relative:${unsearchable}:${bin}`;
    expect(load({ CLAUDE_CODE_PATH: 'claude', PATH }).executable).toBe(path.join(bin, 'claude'));
  });

  it('leaves a program name not found on PATH unresolved, even if the working directory has such a file', () => {
    expect(load({ CLAUDE_CODE_PATH: 'file', PATH: '/nowhere' }).executable).toBe('file');
  });

  it('finds Claude Code where its installer puts it, whatever the PATH', () => {
    const homedir = path.join(root, 'home');
    const installed = path.join(homedir, '.local', 'bin', 'claude');
    mkdirSync(path.dirname(installed), { recursive: true });
    writeFileSync(installed, '');
    const env = { CLAUDE_CODE_PATH: 'claude', PATH: '/nowhere' };
    expect(loadSettings({ argv: [], env, cwd: root, homedir, platform: 'darwin' }).executable).toBe(installed);
  });
});

describe('state directory', () => {
  it.each<[NodeJS.Platform, NodeJS.ProcessEnv, string, string]>([
    ['linux', {}, '/home/me', '/home/me/.local/state/claude-code-mcp'],
    ['linux', { XDG_STATE_HOME: '/state' }, '/home/me', '/state/claude-code-mcp'],
    ['linux', { XDG_STATE_HOME: 'relative' }, '/home/me', '/home/me/.local/state/claude-code-mcp'],
    ['darwin', {}, '/Users/me', '/Users/me/Library/Application Support/claude-code-mcp'],
    ['win32', { LOCALAPPDATA: 'D:\\Local' }, 'C:\\Users\\me', 'D:\\Local\\claude-code-mcp'],
    ['win32', {}, 'C:\\Users\\me', 'C:\\Users\\me\\AppData\\Local\\claude-code-mcp'],
  ])('on %s with %j', (platform, env, homedir, expected) => {
    const settings = loadSettings({ argv: [], env, cwd: homedir, homedir, platform });
    expect(settings.stateDir).toBe(expected);
    expect(settings.auditLog).toBe(`${expected}${platform === 'win32' ? '\\' : '/'}audit.jsonl`);
  });

  it('also moves the audit log', () => {
    expect(load({ CLAUDE_CODE_MCP_STATE_DIR: '/s' }).auditLog).toBe('/s/audit.jsonl');
  });
});

describe('secrets', () => {
  it('are never shown', () => {
    expect(settingsError({ CLAUDE_CODE_MCP_RESUME_SECRET: '   ' })).not.toContain('"   "');
    expect(settingsError({}, ['--resume-secrets=hunter2'])).toBe(
      'Unknown flag "--resume-secrets"; did you mean --resume-secret?',
    );
  });
});
