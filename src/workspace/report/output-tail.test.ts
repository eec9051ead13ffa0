import { readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { outputTail } from './output-tail.ts';

/**
 * What real programs wrote, each with its exit code. Except go, which was not at hand: its outputs are written in the form
 * in which its users publish theirs.
 */
const RECORDED = new Map(
  readFileSync(path.resolve(import.meta.dirname, '../../../test/workspace/recorded-outputs.txt'), 'utf8')
    .split(/^##### /m)
    .slice(1)
    .map((part) => {
      const [, name = '', code = '', output = ''] = /^(\S+) (\d+)\n([^]*)$/.exec(part) ?? [];
      const text = output.replaceAll('\\e', '\u001B');
      return [name, { failed: code !== '0', output: code === '0' ? text : `Exit code ${code}\n${text}` }] as const;
    }),
);

const TAILS: Record<string, string> = {
  'node-tap-fail':
    'not ok 1 - adds\nExpected values to be strictly equal:\n-1 !== 3\nexpected: 3\nactual: -1\npass 1, fail 2',
  'node-tap-ok': 'pass 2, fail 0',
  'node-spec-fail':
    '✖ adds (5.794566ms)\nAssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n-1 !== 3\nactual: -1,\nexpected: 3,\npass 1, fail 2',
  'node-spec-ok': 'pass 2, fail 0',
  // The exit code is that of `tail`.
  'node-cut': 'pass 1, fail 2',
  'npm-fail':
    'not ok 1 - adds\nExpected values to be strictly equal:\n-1 !== 3\nexpected: 3\nactual: -1\npass 1, fail 2',
  'vitest-fail':
    'FAIL sum.test.mjs > sum > adds\nAssertionError: expected -1 to be 3 // Object.is equality\n- Expected\n+ Received\n- 3\n+ -1\nTests 2 failed | 1 passed (3)',
  'vitest-ok': 'Tests 1 passed (1)',
  'jest-fail':
    '● sum › adds\nexpect(received).toBe(expected) // Object.is equality\nExpected: 3\nReceived: -1\nTests: 2 failed, 1 passed, 3 total',
  'jest-ok': 'Tests: 1 passed, 1 total',
  'mocha-fail':
    '1) sum\nadds:\nAssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n-1 !== 3\n+ expected - actual\n--1\n+3\n1 passing (35ms), 1 failing',
  'mocha-ok': '1 passing (2ms)',
  'pytest-fail': 'test_adds\nassert -1 == 3\n+ where -1 = sum2(1, 2)\n2 failed, 1 passed in 2.76s',
  'pytest-q-fail': 'test_adds\nassert -1 == 3\n+ where -1 = sum2(1, 2)\n2 failed, 1 passed in 2.82s',
  'pytest-ok': '1 passed in 2.79s',
  'unittest-fail':
    'FAIL: test_a (test_u.T.test_a)\nAssertionError: -1 != 3\nRan 2 tests in 0.000s, FAILED (failures=1)',
  'go-fail':
    '--- FAIL: TestSum (0.00s)\n--- FAIL: TestSum/adds (0.00s)\nsum_test.go:12: Sum(1, 2) = -1, want 3\nFAIL example.com/sums 0.003s, ok example.com/sums/other 0.002s',
  'go-v-fail': 'sum_test.go:12: Sum(1, 2) = -1, want 3\nFAIL example.com/sums 0.003s',
  'go-one-fail':
    '--- FAIL: TestSum (0.00s)\nsum_test.go:19: Sum of (1+2) was incorrect, got: -1, want: 3.\nFAIL example.com/sums 0.013s',
  'go-broken': './sum_test.go:9:5: undefined: Summ\nFAIL example.com/sums [build failed]',
  'go-ok': 'ok example.com/sums 0.003s, ok example.com/sums/other (cached)',
  'cargo-fail':
    "thread 'tests::adds' (17052) panicked at src/lib.rs:6:17:\nassertion `left == right` failed\nleft: -1\nright: 3\ntest result: FAILED. 1 passed; 1 failed",
  'cargo-ok': 'test result: ok. 2 passed; 0 failed',
  'cargo-broken':
    'error[E0308]: mismatched types\n--> src/lib.rs:1:21\nexpected `i32`, found `&str`\nexpected `i32` because of return type',
  'tsc-fail':
    "a.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.\na.ts(2,49): error TS2551: Property 'length2' does not exist on type 'string'. Did you mea…",
  'tsc-pretty':
    "a.ts:1:7 - error TS2322: Type 'string' is not assignable to type 'number'.\na.ts:2:49 - error TS2551: Property 'length2' does not exist on type 'string'. Did you mea…",
  'eslint-fail':
    "/project/eslint/a.js\n1:7 error 'x' is assigned a value but never used no-unused-vars\n1:18 error 'y' is not defined no-undef\n1:28 error 'z' is not defined no-undef\n✖ 4 problems (3 errors, 1 warning)",
  'eslint-warn': '✖ 1 problem (0 errors, 1 warning)',
  'make-cc': 'broken.c:1:20: error: ‘x’ undeclared (first use in this function)',
  'make-fail':
    'not ok 1 - adds\nExpected values to be strictly equal:\n-1 !== 3\nexpected: 3\nactual: -1\npass 1, fail 2',
  'make-ok': 'built',
  traceback: "KeyError: 'bob'",
  'node-throw': 'Error: no such file',
  'git-fail':
    'On branch main\nUntracked files:\n(use "git add <file>..." to include in what will be committed)\na.txt\nnothing added to commit but untracked files present (use "git add" to track)',
};

describe('the part of an output that says something', () => {
  test.each([...RECORDED])('%s', (name, { output, failed }) =>
    expect(outputTail(output, failed)).toBe(TAILS[name] ?? 'a tail in the table'),
  );

  test('the recorded outputs are all there', () => expect([...RECORDED.keys()]).toEqual(Object.keys(TAILS)));
});

test.each<[string, string, boolean, string]>([
  ['nothing', '', false, ''],
  ['what Claude Code says instead of nothing', '(Bash completed with no output)', false, ''],
  ['a warning in a run that passes', 'warning: error handling\nTests:  3 passed, 3 total\n', false, 'Tests: 3 passed, 3 total'],
  ['a failure hidden by a pipe', 'FAILED t/test_a.py::test_b - assert 1 == 2\n1 failed in 0.1s\n', false, 'FAILED t/test_a.py::test_b - assert 1 == 2\n1 failed in 0.1s'],
  ['progress that overwrites itself', '10%\r50%\r100% done\n', false, '100% done'],
  ['an error of a file tool', '<tool_use_error>String to replace not found in file.</tool_use_error>', true, 'String to replace not found in file.'],
  ['only stack frames', '    at a (/x.js:1:2)\n', true, 'at a (/x.js:1:2)'],
])('%s', (_, output, failed, tail) => expect(outputTail(output, failed)).toBe(tail)); // prettier-ignore

test('instead of a call that was interrupted, Claude Code shows what it tells the model', () => {
  const told =
    "The user doesn't want to proceed with this tool use. The tool use was rejected. STOP what you are doing. Correction to the text above: this call was stopped while running, not refused before it ran. It may have run in part or in full.";
  expect(outputTail(told, true)).toBe('Stopped while it ran.');
});

test('a long value does not hide the other one', () => {
  const output = `✖ compares (1ms)\n  AssertionError: ${'x'.repeat(500)}\n  expected: ${'y'.repeat(500)}\n  actual: 7\n`;
  const tail = outputTail(output, true);
  expect(tail.length).toBeLessThanOrEqual(200);
  expect(tail).toContain('expected: y');
});

test('whatever the output, it is short and never half a character', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 2000 }), fc.boolean(), (output, failed) => {
      const tail = outputTail(output, failed);
      expect(tail.length).toBeLessThanOrEqual(200);
      expect(Buffer.from(tail).toString()).toBe(tail);
    }),
  );
});

test('a large output takes no time', () => {
  const output = `${'  at f (/x.js:1:2)\n- a b c d e f g - '.repeat(2_000)}\n${' '.repeat(20_000)}x${'='.repeat(20_000)}`;
  const began = performance.now();
  outputTail(output, true);
  expect(performance.now() - began).toBeLessThan(500);
});
