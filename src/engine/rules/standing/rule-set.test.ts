import { expect, test } from 'vitest';
import { EXACT, EXACT_RULES, GIT_LOCAL, READING, type Corpus } from '../../../../test/engine/rule-corpus.ts';
import gitLocal from './packs/git-local.json' with { type: 'json' };
import reading from './packs/reading.json' with { type: 'json' };
import { ruleFile, type RuleFields, type StandingRule } from '../../../schema/standing-rules.ts';
import { allowedCalls } from './allowed-calls.ts';
import type { RulePlace } from './place.ts';
import { OPEN_COMMANDS } from './prefixes.ts';
import { RuleSet } from './rule-set.ts';

const APP = '/work/app';
const NOW = Date.parse('2026-11-18T12:00:00Z');

/** A session in `/work/app`, where `link` leads to `/etc`. */
const place: RulePlace = {
  owner: 'local',
  cwd: APP,
  roots: [{ real: APP, countsAs: APP }],
  realPath: (file) => file.replace(/^\/work\/app\/link(?=\/|$)/, '/etc'),
};

/** A session in a worktree of `/work/app`. */
const worktree: RulePlace = { ...place, cwd: '/trees/1', roots: [{ real: '/trees/1', countsAs: APP }] };

let made = 0;

function rule(fields: Partial<StandingRule> & Pick<RuleFields, 'tool'>): StandingRule {
  made++;
  return {
    id: `rule-${made}`,
    decision: 'allow',
    directory: APP,
    createdBy: 'person',
    createdAt: NOW,
    enabled: true,
    uses: 0,
    ...fields,
  };
}

const bash = (command: string, more: Record<string, unknown> = {}) => ({
  toolName: 'Bash',
  input: { command, description: 'x', ...more },
});
const commands = (...matches: string[]): RuleSet => new RuleSet(matches.map((match) => rule({ tool: 'Bash', match })));
const packRules = (pack: unknown): RuleSet =>
  new RuleSet(ruleFile.parse(pack).rules.map((fields) => rule(fields as RuleFields)));

const CORPORA: readonly (readonly [string, RuleSet, Corpus])[] = [
  ['exact commands', commands(...EXACT_RULES), EXACT],
  ['the pack reading', packRules(reading), READING],
  ['the pack git-local', packRules(gitLocal), GIT_LOCAL],
];

for (const [name, rules, { harmless, hostile }] of CORPORA) {
  test(`${name}: what is meant is allowed`, () => {
    expect(harmless.filter((command) => rules.decide(bash(command), place, NOW)?.decision !== 'allow')).toEqual([]);
  });

  test(`${name}: what is anything else is asked about`, () => {
    expect(hostile.filter((command) => rules.decide(bash(command), place, NOW) !== undefined)).toEqual([]);
  });
}

test('the corpora have 300 commands, half of them hostile', () => {
  const count = (kind: keyof Corpus): number => CORPORA.reduce((sum, [, , corpus]) => sum + corpus[kind].length, 0);
  expect(count('harmless') + count('hostile')).toBeGreaterThan(300);
  expect(count('hostile')).toBeGreaterThan(150);
});

test('every rule of a pack can match, every command of the table has a reason', () => {
  for (const pack of [reading, gitLocal])
    for (const fields of ruleFile.parse(pack).rules) expect(allowedCalls(fields)).not.toHaveProperty('problem');
  expect(OPEN_COMMANDS.filter(({ reason }) => reason.length < 10)).toEqual([]);
});

test.each([
  [{ dangerouslyDisableSandbox: true }],
  [{ run_in_background: true }],
  [{ timeout: '5' }],
  [{ description: 5 }],
  [{ shell: 'x' }],
])('a Bash input with %j is asked about', (more) => {
  const rules = commands('npm test');
  expect(rules.decide(bash('npm test', { timeout: 5 }), place, NOW)).toBeDefined();
  expect(rules.decide(bash('npm test', more), place, NOW)).toBeUndefined();
});

test('once a command may have changed the directory, relative paths are asked about', () => {
  const rules = commands('cat *', 'npm test');
  const moved = { ...place, cwd: undefined };
  expect(rules.decide(bash('cat a.txt'), moved, NOW)).toBeUndefined();
  expect(rules.decide(bash('cat /work/app/a.txt'), moved, NOW)).toBeDefined();
  expect(rules.decide(bash('npm test'), moved, NOW)).toBeDefined();
});

test('where git may find a repository that the session wrote, git is asked about', () => {
  const rules = commands('git status *', 'git commit', '/usr/bin/git status', 'npm test');
  const misled = { ...place, mayMisleadGit: true };
  const decide = (command: string) => rules.decide(bash(command), misled, NOW)?.decision;
  expect(['git status -s', 'git commit', '/usr/bin/git status'].map(decide)).toEqual([undefined, undefined, undefined]);
  expect(decide('npm test')).toBe('allow');
});

test.each([
  ['Bash', undefined],
  ['Bash', '*'],
  ['Bash', 'npm *'],
  ['Bash', 'npm run *'],
  ['Bash', 'npm:*'],
  ['Bash', 'git *'],
  ['Bash', 'git commit *'],
  ['Bash', 'sed *'],
  ['Bash', 'go vet *'],
  ['Bash', 'bash *'],
  ['Bash', 'npm test && id'],
  ['Bash', 'cd *'],
  ['Bash', 'eval x'],
  ['Bash', '* test'],
  ['Bash', 'git * log'],
  ['Edit', undefined],
  ['Edit', '/etc/**'],
  ['Edit', '../**'],
  ['Edit', '~/**'],
  ['Edit', '{a,b}'],
  ['WebFetch', undefined],
  ['WebFetch', 'domain:*'],
  ['WebFetch', 'domain:com'],
  ['WebFetch', 'example.com'],
  ['PowerShell', 'npm test'],
  ['Monitor', 'npm test'],
  ['Task', undefined],
  ['Skill', 'x'],
  ['mcp__server', undefined],
  ['mcp__server__*', undefined],
  ['mcp__server__tool', 'x'],
  ['ExitPlanMode', undefined],
  ['AskUserQuestion', undefined],
  ['apply', undefined],
  ['discard', undefined],
  ['rewind', undefined],
  ['bash', 'npm test'],
])('no rule can allow %s(%s)', (tool, match) => {
  expect(allowedCalls({ tool, match })).toHaveProperty('problem');
  const call = {
    toolName: tool,
    input: { command: 'npm test', file_path: `${APP}/a`, url: 'https://example.com', prompt: '' },
  };
  const fields = match === undefined ? {} : { match };
  expect(new RuleSet([rule({ tool, ...fields })]).decide(call, place, NOW)).toBeUndefined();
});

const write = (file_path: string, more: Record<string, unknown> = {}) => ({
  toolName: 'Write',
  input: { file_path, content: 'x', ...more },
});

test.each([
  ['docs/**', 'docs/a.md', true],
  ['docs/**', 'docs/a/b.md', true],
  ['docs/*.md', 'docs/a.md', true],
  ['**/*.md', 'a/b.md', true],
  ['**/*.md', 'a.md', true],
  ['docs/a.md', 'docs/a.md', true],
  ['docs/**', `${APP}/docs/a.md`, true],
  ['docs/*.md', 'docs/a/b.md', false],
  ['docs', 'docs/a.md', false],
  ['docs/a.md', 'docs/a.md/b', false],
  ['docs/**', 'src/a.md', false],
  ['docs/**', 'docs/../src/a.md', false],
  ['**', '/etc/passwd', false],
  ['**', 'link/passwd', false],
  ['**', '../a', false],
  ['**', '~/a', false],
  ['**', ' a', false],
  ['**', '.git/hooks/pre-commit', false],
  ['**', 'sub/.GIT/config', false],
  ['**', '.g\u200cit/config', false],
  ['**', 'GIT~1/config', false],
  ['**', '.git::$INDEX_ALLOCATION/config', false],
  ['**', '.mcp.json. ::$DATA', false],
  ['**', 'notes:1', true],
  ['**', '.claude/settings.json', false],
  ['**', '.mcp.json', false],
  ['**', 'CLAUDE.md', false],
  ['**', 'sub/claude.md', false],
  ['**', 'CLAUDE.local.md', false],
  ['**', 'claude.md.', false],
])('a rule for %s and a write to %s', (match, file, allowed) => {
  const rules = new RuleSet([rule({ tool: 'Write', match })]);
  expect(rules.decide(write(file), place, NOW)?.decision).toBe(allowed ? 'allow' : undefined);
});

test('a file rule holds for its tool, its fields and its directory only', () => {
  const rules = new RuleSet([rule({ tool: 'Write', match: '**' })]);
  expect(rules.decide(write('a', { mode: 'x' }), place, NOW)).toBeUndefined();
  const edit = { toolName: 'Edit', input: { file_path: 'a', old_string: '', new_string: '' } };
  expect(rules.decide(edit, place, NOW)).toBeUndefined();
  const narrow = new RuleSet([rule({ tool: 'Write', match: '**', directory: `${APP}/docs` })]);
  expect(narrow.decide(write('docs/a'), place, NOW)).toBeDefined();
  expect(narrow.decide(write('src/a'), place, NOW)).toBeUndefined();
});

test('a worktree counts as the checkout that it belongs to', () => {
  const rules = new RuleSet([rule({ tool: 'Write', match: 'docs/**' }), rule({ tool: 'Bash', match: 'npm test' })]);
  expect(rules.decide(write('/trees/1/docs/a'), worktree, NOW)).toBeDefined();
  expect(rules.decide(bash('npm test'), worktree, NOW)).toBeDefined();
  // Not from there into the checkout itself.
  expect(rules.decide(write(`${APP}/docs/a`), worktree, NOW)).toBeUndefined();
});

test('a command is allowed only where the rule is for all directories of the session', () => {
  const rules = commands('npm test');
  const two = { ...place, roots: [...place.roots, { real: '/other', countsAs: '/other' }] };
  const inside = { ...place, roots: [{ real: `${APP}/sub`, countsAs: `${APP}/sub` }] };
  const above = { ...place, roots: [{ real: '/work', countsAs: '/work' }] };
  const alike = { ...place, roots: [{ real: '/work/app2', countsAs: '/work/app2' }] };
  expect([two, inside, above, alike].map((one) => rules.decide(bash('npm test'), one, NOW)?.decision)).toEqual([
    undefined,
    'allow',
    undefined,
    undefined,
  ]);
});

test('a rule ends when it expires, and is for its principal', () => {
  const rules = new RuleSet([
    rule({ tool: 'Bash', match: 'a', expiresAt: NOW }),
    rule({ tool: 'Bash', match: 'b', expiresAt: NOW + 1 }),
    rule({ tool: 'Bash', match: 'c', principal: 'token:1' }),
    rule({ tool: 'Bash', match: 'd', principal: 'local' }),
  ]);
  expect(['a', 'b', 'c', 'd'].map((command) => rules.decide(bash(command), place, NOW)?.decision)).toEqual([
    undefined,
    'allow',
    undefined,
    'allow',
  ]);
});

test.each([
  ['https://example.com/x', true],
  ['http://example.com', true],
  ['https://EXAMPLE.com/x', true],
  ['https://example.com:443/x', true],
  ['https://example.com:8443/x', false],
  ['https://sub.example.com/x', false],
  ['https://example.com.evil.org/x', false],
  ['https://example.com@evil.org/x', false],
  ['https://evil.org/?x=example.com', false],
  ['https://evil.org\\@example.com', false],
  ['https://ex\u0430mple.com/x', false],
  ['file://example.com/x', false],
  [' https://example.com/x', false],
])('a rule for example.com and %s', (url, allowed) => {
  const rules = new RuleSet([rule({ tool: 'WebFetch', match: 'domain:example.com' })]);
  const call = { toolName: 'WebFetch', input: { url, prompt: 'x' } };
  expect(rules.decide(call, place, NOW)?.decision).toBe(allowed ? 'allow' : undefined);
});

test.each([
  [{ name: 'docs', source: 'user' }, true],
  [{ name: 'docs', source: 'managed' }, true],
  [{ name: 'docs', source: 'enterprise' }, true],
  [{ name: 'docs', source: 'project' }, false],
  [{ name: 'docs', source: 'local' }, false],
  [{ name: 'docs', source: 'dynamic' }, false],
  [{ name: 'docs', source: 'plugin' }, false],
  [{ name: 'docs', source: 'sdk' }, false],
  [{ name: 'docs', source: 'something new' }, false],
  [{ name: 'other', source: 'user' }, false],
  [{ name: 'docs__find', source: 'user' }, false],
  [undefined, false],
])('a rule for a tool of an MCP server and %j', (mcpServer, allowed) => {
  const rules = new RuleSet([rule({ tool: 'mcp__docs__find' })]);
  const call = { toolName: 'mcp__docs__find', input: { any: 1 }, mcpServer };
  expect(rules.decide(call, place, NOW)?.decision).toBe(allowed ? 'allow' : undefined);
});

test('deny is stronger than ask, and ask than allow', () => {
  const allow = rule({ tool: 'Bash', match: 'npm test' });
  const ask = rule({ tool: 'Bash', match: 'npm *', decision: 'ask' });
  const deny = rule({ tool: 'Bash', match: 'npm test', decision: 'deny' });
  const decide = (...rules: StandingRule[]) => new RuleSet(rules).decide(bash('npm test'), place, NOW);
  expect(decide(allow)).toEqual({ decision: 'allow', rule: allow });
  expect(decide(allow, ask)).toEqual({ decision: 'ask', rule: ask });
  expect(decide(allow, ask, deny)).toEqual({ decision: 'deny', rule: deny });
});

test.each([
  'rm -rf x',
  'rm',
  'true; rm x',
  'true && rm x',
  'a | rm x',
  'echo $(rm x)',
  'echo `rm x`',
  'sudo rm x',
  'A=1 rm x',
  '"rm" x',
  "'rm' x",
  'r\\m x',
  '/bin/rm x',
  'if true; then rm x; fi',
  'x\nrm x',
  '(rm x)',
  `rm ${'x'.repeat(200_000)}`,
])('a rule that denies rm: %s', (command) => {
  const rules = new RuleSet([rule({ tool: 'Bash', match: 'rm *', decision: 'deny' })]);
  expect(rules.decide(bash(command), place, NOW)?.decision).toBe('deny');
  expect(rules.decide(bash('format x'), place, NOW)).toBeUndefined();
});

test.each([
  [{ tool: 'Bash' }, bash('ls'), true],
  [{ tool: 'Edit', match: 'secrets/**' }, write('secrets/a'), true],
  [{ tool: 'Edit', match: 'secrets/**' }, write('sub/../secrets/a'), true],
  [{ tool: 'Edit', match: 'secrets' }, write('sub/secrets/a'), true],
  [{ tool: 'Edit', match: '*.env' }, write('sub/a.env'), true],
  [{ tool: 'Edit', match: 'secrets/**' }, write('public/a'), false],
  [{ tool: 'Read', match: 'secrets/**' }, { toolName: 'Grep', input: { pattern: 'x', path: 'secrets' } }, true],
  [{ tool: 'Write', match: 'a' }, { toolName: 'Edit', input: { file_path: 'a' } }, false],
  [{ tool: 'mcp__docs' }, { toolName: 'mcp__docs__find', input: {} }, true],
  [
    { tool: 'WebFetch', match: 'domain:*.evil.org' },
    { toolName: 'WebFetch', input: { url: 'https://a.evil.org' } },
    true,
  ],
  [{ tool: 'AskUserQuestion' }, { toolName: 'AskUserQuestion', input: {} }, false],
  [{ tool: 'ExitPlanMode' }, { toolName: 'ExitPlanMode', input: {} }, false],
  [{ tool: 'Bash', directory: '/other' }, bash('ls'), false],
  [{ tool: 'Bash', directory: '/work' }, bash('ls'), true],
  [{ tool: 'Bash', directory: `${APP}/sub` }, bash('ls'), true],
  [{ tool: 'Bash', principal: 'token:1' }, bash('ls'), false],
])('%j denies %j: %s', (fields, call, denied) => {
  const rules = new RuleSet([rule({ decision: 'deny', ...fields })]);
  expect(rules.decide(call, place, NOW)?.decision).toBe(denied ? 'deny' : undefined);
});

/** Also with options before the command, which Claude Code would take for another one. */
const PUSHES = ['Bash(git push *)', 'Bash(git -* push)', 'Bash(git -* push *)'];

test('what denies and asks is imposed on Claude Code in its own words', () => {
  const rules = new RuleSet([
    rule({ tool: 'Bash', match: 'npm test' }),
    rule({ tool: 'Bash', match: 'git push *', decision: 'deny' }),
    rule({ tool: 'Write', match: 'secrets/**', decision: 'deny' }),
    rule({ tool: 'Edit', decision: 'ask' }),
    rule({ tool: 'Read', match: '*.env', decision: 'ask', directory: undefined }),
    rule({ tool: 'Bash', match: 'x', decision: 'ask', directory: '/other' }),
    rule({ tool: 'Bash', match: 'y', decision: 'ask', expiresAt: NOW }),
  ]);
  expect(rules.imposed(place, NOW)).toEqual({
    deny: [...PUSHES, `Edit(/${APP}/secrets/**)`],
    ask: ['Edit', 'Write', 'NotebookEdit', `Read(/${APP}/**/*.env)`],
  });
  expect(rules.imposed(worktree, NOW).deny).toEqual([
    ...PUSHES,
    `Edit(/${APP}/secrets/**)`,
    'Edit(//trees/1/secrets/**)',
  ]);
});
