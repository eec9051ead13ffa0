import { expect, it } from 'vitest';
import { loadSettings, type Settings } from '../../config/load-settings.ts';
import { SETTING_KEYS } from '../../config/settings-table.ts';
import type { ClientRules } from '../../transports/attach/protocol.ts';
import { intersectRules } from '../../engine/rules/rule-intersection.ts';
import { ignoredSettings, WHOSE_SETTING } from './connection-rules.ts';

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
