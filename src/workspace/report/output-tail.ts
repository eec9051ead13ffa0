/**
 * The part of a command's output that says something: of a failure the first failing assertion, with what was expected
 * and what came instead; of a success its summary. Progress, stack frames and code frames are left out.
 */

const MAX_CHARS = 200;
/** One long value must not hide the other one. */
const MAX_LINE_CHARS = 90;
/** What is read of an output: a runner's account of a failure is in its beginning or its end. */
const MAX_READ = 64_000;
const MAX_READ_LINE = 400;

/** How a program reports a failure. */
interface Account {
  /** Where the failures are listed; without such a heading, anywhere. */
  readonly section?: RegExp;
  /** The first line of a failure. */
  readonly start: RegExp;
  /** The first line after it. */
  readonly end?: RegExp;
  /** The only lines to keep of it. A first line that is among them says what went wrong, not only where. */
  readonly keep?: RegExp;
  /** A line above it belongs to it: the name of the file. */
  readonly heading?: RegExp;
}

const ACCOUNTS: readonly Account[] = [
  // node --test, as TAP and as "spec"
  { start: /^\s*not ok \d+(?!.*# (SKIP|TODO))/, end: /^\s*(stack: |\.\.\.$)/ },
  { section: /^✖ failing tests/, start: /^\s*✖ /, end: /^test at |^\s*\}$/ },
  { start: /^\s*✖ (?!\d+ problem|failing tests)/, end: /^\s*([✔▶ℹ]|\}$)/ },
  // vitest
  { section: /Failed (Tests|Suites) \d/, start: /^\s*FAIL\s+\S/, end: /^\s*❯ |^⎯/ },
  // jest
  { start: /^\s*● (?!Console)/, end: /^\s*(at |Test Suites: )|^\s*>?\s*\d+ \|/ },
  // mocha
  { section: /^\s*\d+ failing/, start: /^\s*1\) /, end: /^\s*(2\) |at )/ },
  // pytest, and its summary
  { section: /^=+ (FAILURES|ERRORS) =+$/, start: /^_+ .+ _+$/, end: /^=+ /, keep: /^E\s/ },
  { start: /^(FAILED|ERROR) \S+\.py/, keep: /^(FAILED|ERROR) \S+\.py/ },
  // unittest
  { start: /^(FAIL|ERROR): \S+ \(/, end: /^(={10,}$|Ran \d)/, keep: /^(?!Traceback|[-=]{10})\S/ },
  // go
  { start: /^\s*--- FAIL: /, end: /^(FAIL|ok|PASS|===)|^\s*--- (PASS|SKIP)/ },
  { start: /^\s*\S+\.go:\d+(:\d+)?: /, keep: /^\s*\S+\.go:\d+(:\d+)?: / },
  // cargo and rustc
  { start: /^thread '.*' .*panicked at /, end: /^(stack backtrace|note: |$)/ },
  {
    start: /^error(\[E\d+\])?: (?!could not compile|aborting|test failed)/,
    end: /^(error|warning|For more)\b/,
    keep: /^error|^\s*--> |\b(expected|found)\b/,
  },
  // tsc, eslint, C compilers
  { start: /\berror TS\d+: /, keep: /\berror TS\d+: / },
  { start: /^\s+\d+:\d+\s+error\s/, keep: /^\s+\d+:\d+\s+error\s/, heading: /^\S/ },
  { start: /^[^\s:]+:\d+(:\d+)?: (fatal )?error: /, keep: /^[^\s:]+:\d+(:\d+)?: (fatal )?error: / },
  // an uncaught error
  { start: /^\s*(Uncaught )?[\w.]*(Error|Exception)( \[\w+\])?: /, end: /^\s*(at |$)/, keep: /./ },
];

/** Lines that say how a run ended. */
const SUMMARIES: readonly RegExp[] = [
  /^Tests:? +\d.*(passed|failed|skipped|total)/, // jest, vitest
  /^\d+ (passing|failing)\b/, // mocha
  /^(\d+ (passed|failed|errors?|skipped|deselected|xfailed|warnings?)(, )?)+ in [\d.:]+/, // pytest
  /^(OK|FAILED)( \(.*\))?$|^Ran \d+ tests? in /, // unittest
  /^test result: /, // cargo
  /^(ok|FAIL|---)\s+\S+\s+([\d.]+s|\(cached\)|\[)/, // go
  /^✖ \d+ problems?/, // eslint
  /^Found \d+ errors?/, // tsc
  /^\d+ examples?, \d+ failures?/, // rspec
  /^(OK \(\d+ tests?|Tests: \d+, Assertions)/, // phpunit
  /Tests run: \d+, Failures: \d+/, // maven
  /^BUILD (SUCCESSFUL|FAILED|SUCCESS|FAILURE)\b/, // gradle, ant
  /^(Passed|Failed)! +- /, // dotnet
];

/** Node's own counts, one to a line. */
const NODE_COUNT = /^[#ℹ] (pass|fail|cancelled|skipped|todo) (\d+)$/;

const REPORTS_FAILURE =
  /\b(fail|failed|failing|failures?|errors?)[:=]? [1-9]|=[1-9]\d*\)|\b[1-9]\d* (failed|failing|failures?|errors?)\b|\bFAILED\b|^FAIL\b|\bFAILURE\b|^npm (error|ERR!)|^make(\[\d+\])?: \*\*\* /m;

const NOISE: readonly RegExp[] = [
  /^\s*$/,
  /^\s*at (async |new |process\.|node:|file:|\/|Object\.|.*[(:]\S+:\d+)/, // stack frames of JavaScript
  /^\s*(File ".*", line \d+|Traceback \(most recent)/, // and of Python
  /^\s*❯ .*:\d+:\d+/,
  /^\s*>?\s*\d+ ?\|/, // code frames
  /^\s*\|?\s*[\^~]+\s*$/,
  /^\s*\|[\s|]*(\^+)?$/,
  /^[\s=_⎯─*-]+$/, // rules
  /^\s*[[\](){},.]+,?$/, // brackets of a value, dots of progress
  /^\s*(---|error: \|-)$|^\s*(duration_ms|location|failureType|code|name|operator|type|stack|generatedMessage): /, // TAP
  /^> \S+@\S+ \S+|^> \S|^npm (error|ERR!|warn|notice)/, // npm
  /^(make|gmake)(\[\d+\])?: /,
  /^Node\.js v\d/,
  /^\s*(Error Trace|Test):\s/, // testify
  /^(note|help): /,
  /^TAP version \d+|^1\.\.\d+$|^# Subtest: |^# (tests|suites|duration_ms) /,
];

/** A diff of two values follows: only the lines that differ matter. */
const DIFF_HEADING = /\+ actual - expected|^\s*- Expected|^\s*\+ Received|\+ expected - actual/;

/** What Claude Code (2.1.325) says of a call that was interrupted, in place of its output. */
const STOPPED = 'this call was stopped while running, not refused before it ran';

/** At most 200 characters. `failed`: as Claude Code saw it; a pipe hides what a check reports. */
export function outputTail(output: string, failed: boolean): string {
  if (failed && output.includes(STOPPED)) return 'Stopped while it ran.';
  const lines = linesOf(output);
  const summary = summaryOf(lines);
  if (!failed && !(summary !== undefined && REPORTS_FAILURE.test(summary)))
    return summary === undefined ? lastLines(lines, 2) : clip([summary]);
  const account = failureIn(lines);
  if (!account) return summary === undefined ? lastLines(lines, 6) : clip([summary]);
  const told = clip(account);
  return summary !== undefined && !told.includes(summary) && told.length + summary.length < MAX_CHARS
    ? `${told}\n${summary}`
    : told;
}

/** Whether an output reports failures, whatever the exit code says. */
export function reportsFailure(tail: string): boolean {
  return REPORTS_FAILURE.test(tail);
}

function linesOf(output: string): string[] {
  const read = output.length <= MAX_READ ? output : `${output.slice(0, MAX_READ / 2)}\n${output.slice(-MAX_READ / 2)}`;
  return (
    read
      // eslint-disable-next-line no-control-regex -- colours
      .replace(/\u001B\[[0-9;?]*[A-Za-z]/g, '')
      .replace(/^(Error: )?Exit code \d+\n/, '')
      .replace(/<\/?tool_use_error>/g, '')
      .replace(/^\(\w+ completed with no output\)$/, '')
      .split(/\r?\n/)
      // A progress line overwrites itself; no pattern may search a line of megabytes.
      .map((line) => headAndTail(line.slice(line.lastIndexOf('\r') + 1)))
  );
}

function headAndTail(line: string): string {
  if (line.length <= MAX_READ_LINE) return line;
  return `${cutEnd(line, MAX_READ_LINE / 2)}${cutStart(line, MAX_READ_LINE / 2)}`;
}

function isNoise(line: string): boolean {
  return NOISE.some((pattern) => pattern.test(line));
}

/** The first failure that some program reports in its own words; one that is only named if there is no better. */
function failureIn(lines: readonly string[]): string[] | undefined {
  let named: string[] | undefined;
  for (const account of ACCOUNTS) {
    const found = accountIn(lines, account);
    if (!found) continue;
    if (found.isTold) return found.told;
    named ??= found.told;
  }
  return named;
}

interface Told {
  readonly told: string[];
  /** It says what went wrong, not only where. */
  readonly isTold: boolean;
}

function accountIn(lines: readonly string[], account: Account): Told | undefined {
  const { section, start, end, keep, heading } = account;
  const from = section ? lines.findIndex((line) => section.test(line)) : 0;
  const first = from < 0 ? -1 : lines.findIndex((line, index) => index >= from && start.test(line) && !isNoise(line));
  if (first < 0) return undefined;
  const title = heading && lines.slice(0, first).findLast((line) => heading.test(line));
  const told = title === undefined ? [] : [title];
  let titles = 0;
  let differs = false;
  for (const line of lines.slice(first)) {
    const isStart = start.test(line);
    // One failure is enough; a suite's name is not one.
    if (isStart && !keep?.test(line) && told.length > titles) break;
    if (!isStart && end?.test(line)) break;
    if (isStart && !keep?.test(line)) titles++;
    else if (isNoise(line) || (keep && !keep.test(line))) continue;
    if (differs && !isStart && !/^\s*[+-]/.test(line)) continue;
    differs ||= DIFF_HEADING.test(line);
    told.push(line);
  }
  return { told, isTold: told.length > titles };
}

function summaryOf(lines: readonly string[]): string | undefined {
  const counts = lines.flatMap((line) => {
    const [, name, count] = NODE_COUNT.exec(line.trim()) ?? [];
    return name !== undefined && (/pass|fail/.test(name) || count !== '0') ? [`${name} ${count ?? ''}`] : [];
  });
  if (counts.length > 0) return counts.join(', ');
  const found = lines
    .map((line) => line.replace(/^=+ | =+$/g, '').trim())
    .filter((line) => SUMMARIES.some((pattern) => pattern.test(line)))
    // Of several test programs of a package most have none.
    .filter((line) => !line.startsWith('test result: ok. 0 passed'))
    .map((line) => tidy(line.replace(/; \d+ (ignored|measured|filtered).*$/, '')));
  return found.length === 0 ? undefined : [...new Set(found)].slice(-3).join(', ');
}

function lastLines(lines: readonly string[], count: number): string {
  const telling = lines.filter((line) => !isNoise(line));
  const kept: string[] = [];
  let chars = 0;
  for (const line of (telling.length > 0 ? telling : lines).slice(-count).reverse()) {
    chars += Math.min(line.length, MAX_LINE_CHARS) + 1;
    if (kept.length > 0 && chars > MAX_CHARS) break;
    kept.unshift(line);
  }
  // The end of a single long line says more than its beginning.
  return kept.length === 1 ? cutStart(tidy(kept[0] ?? ''), MAX_CHARS) : clip(kept);
}

/** White space folded; without the marks that stand before a line. */
function tidy(line: string): string {
  return line
    .replace(/^E\s+/, '')
    .replace(/^_+ (.*) _+$/, '$1')
    .replace(/^[\s|]*[-^~|\s]*(?=(expected|found) )/, '')
    .replace(/\s+/g, ' ')
    .trim();
}

function clip(lines: readonly string[]): string {
  const tidied = lines.map(tidy).filter((line) => line !== '');
  if (tidied.length === 1) return cutEnd(tidied[0] ?? '', MAX_CHARS);
  let text = '';
  for (const line of tidied) {
    const next = cutEnd(line, MAX_LINE_CHARS);
    if (text !== '' && text.length + 1 + next.length > MAX_CHARS) break;
    text += `${text === '' ? '' : '\n'}${next}`;
  }
  return text;
}

/** Neither cuts a surrogate pair in two. */
export function cutEnd(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const head = text.slice(0, maxChars - 1);
  return `${/[\uD800-\uDBFF]$/.test(head) ? head.slice(0, -1) : head}…`;
}

export function cutStart(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const tail = text.slice(1 - maxChars);
  return `…${/^[\uDC00-\uDFFF]/.test(tail) ? tail.slice(1) : tail}`;
}
