import { mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test, it } from 'vitest';
import { loadSettings, type Settings } from '../../config/load-settings.ts';
import { SETTING_KEYS } from '../../config/settings-table.ts';
import { intersectRules } from '../../engine/rules/rule-intersection.ts';
import type { AttachRequest, ClientRules } from '../../transports/attach/protocol.ts';
import { admit, principalOf, withinSessions, ignoredSettings, WHOSE_SETTING } from './admission.ts';

test('a symlink in a client’s allowed directories cannot lead out of the hub’s', () => {
  const home = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'admission-')));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const link = path.join(home, 'link');
  symlinkSync(os.tmpdir(), link);
  const host = { argv: ['--allowed-dirs', home], env: {}, cwd: home, homedir: home, platform: process.platform };
  const settings = loadSettings(host, {}, 'hub');
  const place = { user: 'me', home, configDir: home, stateDir: home };
  const request = (allowedDirs: readonly string[]): AttachRequest => ({
    ...{ kind: 'attach', place, version: '1', toolset: 'compact', cwd: home, given: {}, env: {} },
    rules: { ...settings, allowedDirs },
  });
  expect(admit(request([link]), settings, place)).toMatchObject({ settings: { allowedDirs: [home] } });
  expect(admit(request([path.join(home, 'inner')]), settings, place)).toMatchObject({
    settings: { allowedDirs: [path.join(home, 'inner')] },
  });
});

test.each([
  ['home', 'HOME is / there and /other here'],
  ['configDir', 'CLAUDE_CONFIG_DIR is / there and /other here'],
  ['stateDir', 'the state directory is / there and /other here'],
  ['user', 'the user is me there and /other here'],
] as const)('a client with a different %s is refused, with the reason', (key, why) => {
  const settings = loadSettings({ argv: [], env: {}, cwd: '/', homedir: '/', platform: process.platform }, {}, 'hub');
  const place = { user: 'me', home: '/', configDir: '/', stateDir: '/' };
  const request: AttachRequest = {
    ...{ kind: 'attach', version: '1', toolset: 'compact', cwd: '/', given: {}, env: {}, rules: settings },
    place: { ...place, [key]: '/other' },
  };
  expect(admit(request, settings, place)).toEqual({ why });
});

const hub = loadSettings({ argv: [], env: {}, cwd: '/', homedir: '/', platform: process.platform }, {}, 'hub');

test('a client inside sessions has the rules of all of them, one level deeper than the deepest', () => {
  const careful = { ...hub, approvals: 'human', allowedDirs: ['/work'], depth: 1 } as const;
  const boxed = { ...hub, sandbox: true, allowedDirs: ['/work/inner', '/other'], maxTurns: 3 };
  expect(withinSessions(hub, [])).toEqual(hub);
  expect(withinSessions(hub, [careful])).toEqual({ ...careful, depth: 2 });
  for (const sessions of [
    [careful, boxed],
    [boxed, careful],
  ])
    expect(withinSessions(hub, sessions)).toMatchObject({
      ...{ approvals: 'human', sandbox: true, allowedDirs: ['/work/inner'], maxTurns: 3, depth: 2 },
    });
});

test('a client is the principal of the session that its process belongs to, whatever sessions it names', () => {
  expect(principalOf({ kind: 'outside' }).id).toBe('local');
  expect(principalOf({ kind: 'inside', session: 's1', named: ['s2', 's1'] }).id).toBe('nested:s1');
  expect(principalOf({ kind: 'inside', session: undefined, named: ['s2'] }).id).toMatch(/^nested:[0-9a-f-]{36}$/);
});

const DEFAULTS: Settings = loadSettings(
  { argv: [], env: {}, cwd: '/', homedir: '/home/me', platform: 'linux' },
  {},
  'hub',
);

type Value<Key extends keyof ClientRules> = ClientRules[Key];
type Row = {
  [Key in keyof ClientRules]: readonly [rule: Key, one: Value<Key>, other: Value<Key>, both: Value<Key>];
}[keyof ClientRules];

/** The rule that results from two sides; the same whichever of them is the hub. */
const TABLE: readonly Row[] = [
  ['approvals', 'auto', 'auto', 'auto'],
  ['approvals', 'auto', 'caller', 'caller'],
  ['approvals', 'auto', 'human', 'human'],
  ['approvals', 'caller', 'caller', 'caller'],
  ['approvals', 'human', 'human', 'human'],
  ['allowedDirs', undefined, undefined, undefined],
  ['allowedDirs', undefined, ['/a'], ['/a']],
  ['allowedDirs', ['/a', '/b'], ['/a/x', '/c'], ['/a/x']],
  ['allowedDirs', ['/a'], ['/a'], ['/a']],
  ['allowedDirs', ['/'], ['/a', '/b'], ['/a', '/b']],
  ['denyOptions', ['env'], ['settings'], ['env', 'settings']],
  ['denyOptions', [], ['env'], ['env']],
  ['maxTurns', undefined, undefined, undefined],
  ['maxTurns', undefined, 5, 5],
  ['maxTurns', 3, 5, 3],
  ['maxBudgetUsd', undefined, 1.5, 1.5],
  ['maxBudgetUsd', 1, 2, 1],
  ['allowBypass', true, true, true],
  ['allowBypass', true, false, false],
  ['sandbox', false, false, false],
  ['sandbox', false, true, true],
  ['maxDepth', 1, 4, 1],
  ['depth', 0, 1, 1],
];

it.each(TABLE)('%s: %j and %j give %j, whichever side is the hub', (rule, one, other, both) => {
  for (const [hub, client] of [
    [one, other],
    [other, one],
  ]) {
    const result = intersectRules({ ...DEFAULTS, [rule]: hub }, { ...DEFAULTS, [rule]: client });
    const rules = 'rules' in result ? result.rules : undefined;
    const found = rules?.[rule];
    expect(Array.isArray(found) ? [...found].sort() : found).toEqual(both);
  }
});

it.each([
  [{ sandbox: true, sandboxNetwork: ['a.org'] }, { sandbox: false, sandboxNetwork: ['b.org'] }, ['a.org']],
  [{ sandbox: true, sandboxNetwork: ['a.org', 'b.org'] }, { sandbox: true, sandboxNetwork: ['b.org'] }, ['b.org']],
  [
    { sandbox: true, sandboxNetwork: ['*.a.org'] },
    { sandbox: true, sandboxNetwork: ['x.A.org', 'a.org'] },
    ['x.A.org'],
  ],
  [{ sandbox: true, sandboxNetwork: [] }, { sandbox: true, sandboxNetwork: ['b.org'] }, []],
])('%j and %j allow the network %j', (one, other, both) => {
  for (const [hub, client] of [
    [one, other],
    [other, one],
  ])
    expect(intersectRules({ ...DEFAULTS, ...hub }, { ...DEFAULTS, ...client })).toMatchObject({
      rules: { sandbox: true, sandboxNetwork: both },
    });
});

it.each([
  [{ approvals: 'caller' }, { approvals: 'human' }, /APPROVALS/],
  [{ approvals: 'human' }, { approvals: 'caller' }, /APPROVALS/],
  [{ allowedDirs: ['/a'] }, { allowedDirs: ['/b'] }, /ALLOWED_DIRS/],
  [{ allowedDirs: ['/a'] }, { allowedDirs: ['/ab', '/b'] }, /ALLOWED_DIRS/],
] as const)('%j on the hub and %j on the client are refused', (hub, client, why) => {
  expect(intersectRules({ ...DEFAULTS, ...hub }, { ...DEFAULTS, ...client })).toEqual({
    refusal: expect.stringMatching(why),
  });
});

it('every setting has a rule for whose value applies', () => {
  expect(Object.keys(WHOSE_SETTING).sort()).toEqual([...SETTING_KEYS].sort());
  const both = SETTING_KEYS.filter((key) => WHOSE_SETTING[key] === 'both');
  expect(new Set([...TABLE.map(([rule]) => rule), 'sandboxNetwork'])).toEqual(new Set([...both, 'depth']));
});

it('ignored client settings are listed in one line', () => {
  expect(ignoredSettings(DEFAULTS, { toolset: 'explicit', maxTurns: '3' })).toEqual([]);
  expect(ignoredSettings(DEFAULTS, { maxSessions: '10' })).toEqual([]);
  expect(ignoredSettings(DEFAULTS, { maxSessions: '3', auditLog: 'off', resumeSecret: '' })).toEqual([
    'Ignored, because the hub decides it for all its clients: CLAUDE_CODE_MCP_RESUME_SECRET, CLAUDE_CODE_MCP_MAX_SESSIONS, CLAUDE_CODE_MCP_AUDIT_LOG.',
  ]);
});
