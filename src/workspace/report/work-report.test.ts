import { describe, expect, test } from 'vitest';
import type { FileChange } from './compare.ts';
import { fullWork, isTestFile, reportedPatch, workReport } from './work-report.ts';
import type { Evidence, GitState, ToolCall, WorkReport } from './work-report.ts';

let clock = 0;
const bash = (command: string, exitCode = 0, tail = ''): ToolCall => ({
  tool: 'Bash',
  input: { command },
  failed: exitCode !== 0,
  exitCode,
  tail,
  startedAt: (clock += 1000),
  endedAt: clock + 500,
});
const edit = (file: string, lines: string[], failed = false): ToolCall => ({
  tool: 'Edit',
  input: { file_path: file },
  failed,
  startedAt: (clock += 1000),
  endedAt: clock + 10,
  edit: { created: false, hunks: lines.length === 0 ? [] : [{ header: '@@ -1,1 +1,1 @@', lines }] },
});
const write = (file: string, content: string): ToolCall => ({
  ...edit(file, []),
  tool: 'Write',
  edit: { created: true, content, hunks: [] },
});
const change = (path: string, insertions: number): FileChange => ({
  path,
  insertions,
  deletions: 1,
  status: 'modified',
  isBinary: false,
});
const evidence = (calls: ToolCall[], others: Partial<Evidence> = {}): Evidence => ({
  calls,
  changes: undefined,
  lastWrite: 0,
  shared: false,
  ...others,
});

test('counts commands and the changes git sees', () => {
  const report = workReport(
    evidence([bash('ls'), bash('git commit -m x', 1, 'nothing to commit')], {
      changes: [change('a', 1), change('b', 5)],
      shared: true,
    }),
  );
  expect(report).toEqual({
    attention: [
      'The last command failed (exit 1): git commit -m x',
      'Files changed, but no test, build, lint or type check was run.',
    ],
    filesChanged: 2,
    insertions: 6,
    deletions: 2,
    files: [
      { path: 'b', insertions: 5, deletions: 1, status: 'modified' },
      { path: 'a', insertions: 1, deletions: 1, status: 'modified' },
    ],
    commandsRun: 2,
    commandsFailed: 1,
    lastCheck: null,
    lastCommand: { command: 'git commit -m x', exitCode: 1, tail: 'nothing to commit' },
    shared: true,
  });
});

test('without git, counts the changes the file tools report', () => {
  const calls = [
    write('/p/n', 'a\nb\n'),
    edit('/p/n', ['-a', '+c']),
    edit('/p/x', ['-1', '+2', '+3', ' 4']),
    edit('/p/y', ['+1'], true),
  ];
  expect(workReport(evidence(calls))).toMatchObject({
    filesChanged: 2,
    insertions: 5,
    deletions: 2,
    files: [
      { path: '/p/n', insertions: 3, deletions: 1, status: 'added' },
      { path: '/p/x', insertions: 2, deletions: 1, status: 'modified' },
    ],
  });
  // Named as git names them, where the directory is known.
  expect(workReport({ ...evidence(calls), root: '/p' })).toMatchObject({ files: [{ path: 'n' }, { path: 'x' }] });
  expect(reportedPatch(calls.slice(2, 3), '/p')).toContain('+++ x\n');
  expect(reportedPatch(calls.slice(2, 3), '/q')).toContain('+++ /p/x\n');
  expect(reportedPatch(calls.slice(0, 2))).toBe(
    '--- /dev/null\n+++ /p/n\n@@ -0,0 +1,2 @@\n+a\n+b\n--- /p/n\n+++ /p/n\n@@ -1,1 +1,1 @@\n-a\n+c\n',
  );
  const counted = {
    ...edit('/p/z', []),
    edit: { created: false, hunks: [], counted: { insertions: 7, deletions: 3 } },
  };
  expect(workReport(evidence([counted]))).toMatchObject({ insertions: 7, deletions: 3 });
});

const git = (made: number, others: Partial<GitState> = {}): GitState => ({
  branch: 'main',
  head: '1'.repeat(40),
  commits: Array.from({ length: made }, (_, index) => ({ sha: String(index).repeat(40).slice(0, 40), subject: 'x' })),
  uncommitted: { count: 0, paths: [] },
  ...others,
});

describe('attention', () => {
  test.each<[string, () => Evidence, string[] | undefined]>([
    ['nothing to say', () => evidence([bash('ls')], { changes: [], git: git(0) }), undefined],
    [
      'a check after the edit that passes',
      () => evidence([edit('/a', ['+1']), bash('npm test')], { changes: [change('a', 1)], git: git(0) }),
      undefined,
    ],
    [
      'a commit that failed',
      () =>
        evidence([bash('git add -A && git -c user.name=x commit -m "It is done"', 1)], { changes: [], git: git(0) }),
      [
        'git commit was run, but no commit was made.',
        'The last command failed (exit 1): git add -A && git -c user.name=x commit -m "I…',
      ],
    ],
    [
      'a commit that worked',
      () => evidence([bash('make test'), bash('git commit -qm x')], { changes: [], git: git(2) }),
      ['2 commits were made.'],
    ],
    [
      'a check that failed before another command',
      () => evidence([bash('npm test', 1), bash('git status')], { changes: [], git: git(0) }),
      ['The last check failed (exit 1): npm test'],
    ],
    [
      'a check that failed last',
      () => evidence([bash('cd a && npm test', 1)], { changes: [] }),
      ['The last command failed (exit 1): cd a && npm test'],
    ],
    [
      'a command that was stopped, so that its exit code is unknown',
      () => evidence([{ ...bash('npm test'), failed: true, exitCode: undefined }], { changes: [] }),
      ['The last command failed: npm test'],
    ],
    [
      'a failure behind a pipe',
      () => evidence([bash('npm test | tail -3', 0, 'pass 1, fail 2')], { changes: [] }),
      ['The last check exited with 0, but reports failures: npm test'],
    ],
    [
      'a check that could not run, with its exit code lost',
      () => evidence([bash('npm test; true', 0, 'npm error Missing script: "test"')], { changes: [] }),
      ['The last check exited with 0, but reports failures: npm test'],
    ],
    [
      'a target that failed behind a pipe',
      () => evidence([bash('make test | tail -1', 0, 'make: *** [Makefile:3: test] Error 1')], { changes: [] }),
      ['The last check exited with 0, but reports failures: make test'],
    ],
    [
      'an edit after the check, and changed tests',
      () =>
        evidence([bash('npm test'), edit('/a', ['+1'])], {
          changes: [change('src/a.ts', 1), change('src/a.test.ts', 1), change('test/b.ts', 1)],
        }),
      ['Nothing was checked after the last edit.', 'Test files changed: src/a.test.ts, test/b.ts'],
    ],
    [
      'files outside the directory',
      () => evidence([bash('make')], { changes: [change('/etc/hosts', 1), change('/p/in', 1)], root: '/p' }),
      ['Files outside the directory changed: /etc/hosts'],
    ],
  ])('%s', (_, facts, expected) => expect(workReport(facts()).attention).toEqual(expected));

  test('a check in the background, whose result says only that it was started', () => {
    const started = { ...bash('npm test'), input: { command: 'npm test', run_in_background: true } };
    const report = workReport(evidence([edit('/a', ['+1']), started], { changes: [change('a', 1)] }));
    expect(report.attention).toEqual(['A check was started in the background; how it ended is unknown.']);
    expect(report).toMatchObject({ commandsRun: 1, lastCheck: null });
    expect(report).not.toHaveProperty('lastCommand');
  });

  test('a commit that was denied', () => {
    const denied = { tool: 'Bash', what: "bash -c 'git commit -m x'", outcome: 'denied' } as const;
    expect(workReport(evidence([], { changes: [], git: git(0) }), [denied]).attention).toEqual([
      'git commit was denied: no commit was made.',
    ]);
  });

  test('at most five lines of 80 characters', () => {
    const names = Array.from({ length: 9 }, (_, index) => change(`${'deep/'.repeat(30)}${index}.test.ts`, 1));
    const { attention = [] } = workReport(
      evidence([bash('make', 1), edit('/a', ['+1']), bash(`git commit ${'x'.repeat(200)}`, 1)], {
        changes: [...names, change('/elsewhere', 1)],
        git: git(0),
        root: '/p',
      }),
    );
    expect(attention).toHaveLength(5);
    for (const line of attention) expect(line.length).toBeLessThanOrEqual(80);
    expect(attention.at(-1)).toMatch(/^Test files changed: ….*0\.test\.ts and 8 more$/);
  });
});

test.each([
  ['src/a.test.ts', true],
  ['src/a_test.go', true],
  ['pkg/test_a.py', true],
  ['tests/a.py', true],
  ['spec/models/user_spec.rb', true],
  ['src/UserTest.java', true],
  ['src/__snapshots__/a.snap', true],
  ['conftest.py', true],
  ['src/latest.ts', false],
  ['src/contest.py', false],
  ['src/attestation/a.ts', false],
  ['test.txt', false],
  ['docs/testing.md', false],
  ['../test/a.ts', false],
  ['../b.test.ts', true],
])('%s is a test: %s', (name, expected) => expect(isTestFile(name)).toBe(expected));

describe('the report fits', () => {
  const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));
  const long = (name: string, index: number): string => `a/long/päth/${'x'.repeat(60)}${index}/${name}`;
  const everything = (count: number): Evidence =>
    evidence([bash(`npm test -- ${'ü'.repeat(500)}`, 1, 'ö'.repeat(200)), bash('git commit', 1, 'ä'.repeat(200))], {
      changes: Array.from({ length: count }, (_, index) => change(long('a.test.ts', index), index)),
      root: '/p',
      git: git(count, {
        branch: 'b'.repeat(200),
        commits: Array.from({ length: count }, (_, index) => ({
          sha: `${index}`.padEnd(40, 'a'),
          subject: 'é'.repeat(99),
        })),
        uncommitted: { count, paths: Array.from({ length: count }, (_, index) => long('b', index)) },
      }),
      session: { filesChanged: count, insertions: 9, deletions: 9, commits: count },
      shared: true,
    });

  test('in 1,200 bytes, whatever the names', () => {
    const report = workReport(everything(500));
    expect(bytesOf(report)).toBeLessThanOrEqual(1200);
    expect(report).toMatchObject({ filesChanged: 500, commandsRun: 2, lastCheck: { exitCode: 1 }, shared: true });
    expect(report.git).toMatchObject({ head: '1'.repeat(40), uncommitted: { count: 500 } });
    const full = fullWork(everything(500));
    expect(full.files).toHaveLength(500);
    expect(full.testsChanged).toHaveLength(500);
  });

  test('drops files first, then the last command, the session’s sums, and commits beyond three', () => {
    const commits = (count: number): GitState['commits'] =>
      Array.from({ length: count }, (_, index) => ({ sha: `${index}`.padEnd(40, 'a'), subject: `commit ${index}` }));
    const grow = (chars: number): WorkReport =>
      workReport(
        evidence([bash('npm test', 1, 'x'.repeat(chars)), bash('ls', 0, 'y'.repeat(100))], {
          changes: Array.from({ length: 4 }, (_, index) => change(`src/file-${index}.ts`, index)),
          git: git(0, { commits: commits(6) }),
          session: { filesChanged: 4, insertions: 9, deletions: 9, commits: 6 },
        }),
      );
    const kept = [0, 50, 100, 150, 200]
      .map(grow)
      .map((report) => [
        report.files?.length ?? 0,
        report.lastCommand ? 1 : 0,
        report.session ? 1 : 0,
        report.git?.commits.length,
      ]);
    // Each is dropped only when those before it are.
    for (const [files, command, session, made] of kept) {
      if (command === 0) expect(files).toBe(0);
      if (session === 0) expect(command).toBe(0);
      if (made === 3) expect(session).toBe(0);
    }
    expect(kept[0]?.[0]).toBeGreaterThan(0);
    expect(kept.at(-1)?.[0]).toBe(0);
  });

  test('with the whole diff, or without it', () => {
    const diff = `--- a\n+++ b\n${'+x\n'.repeat(100)}`;
    const changes = [change('a', 1)];
    expect(workReport(evidence([], { changes, diff })).diff).toBe(diff);
    expect(workReport(evidence([], { changes, diff: diff.repeat(3) }))).not.toHaveProperty('diff');
  });
});

describe('the last check', () => {
  test.each<[string, () => ToolCall[], object | null]>([
    [
      'before an edit',
      () => [bash('npm test'), edit('/a', ['+1'])],
      { command: 'npm test', exitCode: 0, afterLastEdit: false },
    ],
    [
      'after an edit',
      () => [edit('/a', ['+1']), bash('cd x && npm test', 1)],
      { command: 'npm test', exitCode: 1, afterLastEdit: true },
    ],
    [
      'before a failed edit',
      () => [bash('npm test'), edit('/a', ['+1'], true)],
      { command: 'npm test', exitCode: 0, afterLastEdit: true },
    ],
    [
      'before another command',
      () => [bash('pytest -q', 2), bash('ls')],
      { command: 'pytest -q', exitCode: 2, afterLastEdit: true },
    ],
    [
      'the later of two',
      () => [bash('npm test'), bash('npm run lint')],
      { command: 'npm run lint', exitCode: 0, afterLastEdit: true },
    ],
    ['none', () => [bash('ls')], null],
  ])('%s', (_, calls, expected) => {
    const { lastCheck } = workReport(evidence(calls()));
    expect(lastCheck).toEqual(expected && { ...expected, tail: '' });
  });

  test('counts as before the last edit when a command wrote a file afterwards', () => {
    const check = bash('npm test');
    const later = bash('sed -i s/a/b/ a.txt');
    expect(workReport(evidence([check, later], { lastWrite: later.startedAt })).lastCheck?.afterLastEdit).toBe(false);
    expect(workReport(evidence([check, later], { lastWrite: check.endedAt - 1 })).lastCheck?.afterLastEdit).toBe(true);
  });
});
