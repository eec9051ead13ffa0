import { describe, expect, test } from 'vitest';
import type { FileChange } from './compare.ts';
import { fullWork, reportedPatch, workReport, type Evidence, type ToolCall } from './work-report.ts';

let clock = 0;
const bash = (command: string, exitCode = 0): ToolCall => ({
  tool: 'Bash',
  input: { command },
  failed: exitCode !== 0,
  exitCode,
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
    evidence([bash('ls'), bash('git commit -m x', 1)], { changes: [change('a', 1), change('b', 5)], shared: true }),
  );
  expect(report).toEqual({
    filesChanged: 2,
    insertions: 6,
    deletions: 2,
    files: [
      { path: 'b', insertions: 5, deletions: 1, status: 'modified' },
      { path: 'a', insertions: 1, deletions: 1, status: 'modified' },
    ],
    commandsRun: 2,
    commandsFailed: 1,
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
  expect(reportedPatch(calls.slice(0, 2))).toBe(
    '--- /dev/null\n+++ /p/n\n@@ -0,0 +1,2 @@\n+a\n+b\n--- /p/n\n+++ /p/n\n@@ -1,1 +1,1 @@\n-a\n+c\n',
  );
  const counted = {
    ...edit('/p/z', []),
    edit: { created: false, hunks: [], counted: { insertions: 7, deletions: 3 } },
  };
  expect(workReport(evidence([counted]))).toMatchObject({ insertions: 7, deletions: 3 });
});

test('fits in 600 bytes, whatever the names', () => {
  const changes = Array.from({ length: 500 }, (_, index) => change(`a/long/päth/${'x'.repeat(60)}${index}`, index));
  const report = workReport(evidence([bash(`npm test -- ${'ü'.repeat(500)}`)], { changes }));
  expect(Buffer.byteLength(JSON.stringify(report))).toBeLessThanOrEqual(600);
  expect(report.filesChanged).toBe(500);
  expect(report.files?.[0]?.insertions).toBe(499);
  expect(fullWork(evidence([], { changes })).files).toHaveLength(500);
});

describe('the last check', () => {
  test.each<[string, () => ToolCall[], object | undefined]>([
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
    ['none', () => [bash('ls')], undefined],
  ])('%s', (_, calls, expected) => expect(workReport(evidence(calls())).lastCheck).toEqual(expected));

  test('counts as before the last edit when a command wrote a file afterwards', () => {
    const check = bash('npm test');
    const later = bash('sed -i s/a/b/ a.txt');
    expect(workReport(evidence([check, later], { lastWrite: later.startedAt })).lastCheck?.afterLastEdit).toBe(false);
    expect(workReport(evidence([check, later], { lastWrite: check.endedAt - 1 })).lastCheck?.afterLastEdit).toBe(true);
  });
});
