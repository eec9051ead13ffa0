import path from 'node:path';
import type { FileEdit } from '../../schema/events.ts';
import { checkIn, commits } from './check-command.ts';
import { sum, type FileChange } from './compare.ts';
import { cutEnd, cutStart, reportsFailure } from './output-tail.ts';
import { COMMAND_TOOLS, EDIT_TOOLS } from '../../schema/enums.ts';

/** A tool call that ran to completion; denied ones did not. */
export interface ToolCall {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly failed: boolean;
  readonly exitCode?: number | undefined;
  /** Of a command: the part of its output that says something. */
  readonly tail?: string | undefined;
  /** Milliseconds. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** What a file tool reported of its change. */
  readonly edit?: FileEdit | undefined;
}

export interface ReportedFile {
  readonly path: string;
  readonly insertions: number;
  readonly deletions: number;
  readonly status: FileChange['status'];
}

export interface RunCommand {
  readonly command: string;
  readonly exitCode: number;
  /** What its output comes down to. */
  readonly tail: string;
}

export interface LastCheck extends RunCommand {
  /** Nothing was written after it. */
  readonly afterLastEdit: boolean;
}

export interface Commit {
  readonly sha: string;
  readonly subject: string;
}

export interface GitState {
  /** Null if HEAD is detached. */
  readonly branch: string | null;
  /** Null before the first commit. */
  readonly head: string | null;
  /** Those made in the turn, newest first. */
  readonly commits: readonly Commit[];
  /** What differs from HEAD. */
  readonly uncommitted: { readonly count: number; readonly paths: readonly string[] };
}

/** What was changed since the session began. */
export interface SessionSums {
  readonly filesChanged: number;
  readonly insertions: number;
  readonly deletions: number;
  readonly commits: number;
}

export interface WorkReport {
  /** Plain facts that a reader must not miss. */
  readonly attention?: readonly string[];
  readonly filesChanged: number;
  readonly insertions: number;
  readonly deletions: number;
  /** Most changed first; as many as fit. */
  readonly files?: readonly ReportedFile[];
  /** The whole diff, if it is small. */
  readonly diff?: string;
  readonly commandsRun: number;
  readonly commandsFailed: number;
  readonly lastCheck: LastCheck | null;
  /** Unless it is the last check. */
  readonly lastCommand?: RunCommand;
  readonly testsChanged?: readonly string[];
  readonly git?: GitState;
  readonly session?: SessionSums;
  readonly shared?: true;
}

export interface Evidence {
  readonly calls: readonly ToolCall[];
  /** What git saw change; undefined without git. */
  readonly changes: readonly FileChange[] | undefined;
  /** When a changed file was last written, in milliseconds; 0 when unknown. */
  readonly lastWrite: number;
  readonly shared: boolean;
  /** The directory that the work belongs in. */
  readonly root?: string | undefined;
  /** The whole diff, unless it is long. */
  readonly diff?: string | undefined;
  readonly git?: GitState | undefined;
  /** From the second turn on. */
  readonly session?: SessionSums | undefined;
}

/** A call that failed or was denied, as the report names it. */
export interface ReportedProblem {
  readonly tool: string;
  readonly what: string;
  readonly outcome: 'failed' | 'denied';
}

export interface FullWork extends Omit<WorkReport, 'files'> {
  readonly files: readonly (ReportedFile & { readonly isBinary: boolean })[];
  readonly commands: readonly { readonly command: string; readonly exitCode?: number; readonly failed: boolean }[];
}

/** Bytes of JSON, without the diff, which has its own. */
const MAX_BYTES = 1_200;
export const MAX_DIFF_BYTES = 1_000;
const MAX_COMMAND_LENGTH = 100;
const MAX_PATHS = 5;
const MAX_SUBJECT_LENGTH = 72;
const MAX_ATTENTION = 5;
const MAX_ATTENTION_LENGTH = 80;
const KEPT_COMMITS = 3;
/** File systems and clocks are not finer than this together. */
const CLOCK_MS = 20;

export function fullWork(evidence: Evidence, problems: readonly ReportedProblem[] = []): FullWork {
  const { calls, changes, shared, diff, git, session } = evidence;
  const files = changes ?? editedFiles(calls, evidence.root);
  const commands = calls.filter(({ tool }) => COMMAND_TOOLS.has(tool));
  const check = lastCheckOf(evidence);
  const last = commands.findLast(hasEnded);
  const testsChanged = files.map((file) => file.path).filter((name) => isTestFile(insideOf(name, evidence.root)));
  const attention = attentionOf({ ...evidence, files, testsChanged, check: check?.report, last, problems });
  return {
    ...(attention.length > 0 && { attention }),
    filesChanged: files.length,
    insertions: sum(files.map((file) => file.insertions)),
    deletions: sum(files.map((file) => file.deletions)),
    files: files.map(({ path: name, insertions, deletions, status, isBinary }) => ({
      path: name,
      insertions,
      deletions,
      status,
      isBinary,
    })),
    ...(diff !== undefined && diff !== '' && jsonBytes({ diff }) <= MAX_DIFF_BYTES && { diff }),
    commandsRun: commands.length,
    commandsFailed: commands.filter(isFailed).length,
    commands: commands.map((call) => ({
      command: commandOf(call),
      ...(call.exitCode !== undefined && { exitCode: call.exitCode }),
      failed: isFailed(call),
    })),
    lastCheck: check?.report ?? null,
    ...(last && last !== check?.call && { lastCommand: commandReport(last, commandOf(last)) }),
    ...(testsChanged.length > 0 && { testsChanged }),
    ...(git && { git }),
    ...(session && { session }),
    ...(shared && { shared: true as const }),
  };
}

/** The report of a result, small enough to be read in every answer. */
export function workReport(evidence: Evidence, problems: readonly ReportedProblem[] = []): WorkReport {
  const { files, commands: _, diff, ...counts } = fullWork(evidence, problems);
  const capped = withTexts(counts, MAX_COMMAND_LENGTH * 2, MAX_COMMAND_LENGTH, MAX_PATHS);
  const report = fitted(capped);
  const byChange = [...files].sort((a, b) => b.insertions + b.deletions - (a.insertions + a.deletions));
  const shown: ReportedFile[] = [];
  for (const { isBinary: __, ...file } of byChange) {
    // Nothing else is dropped before the files are.
    if (report !== capped || jsonBytes({ ...report, files: [...shown, file] }) > MAX_BYTES) break;
    shown.push(file);
  }
  const { attention, filesChanged, insertions, deletions, ...others } = report;
  return {
    ...(attention && { attention }),
    filesChanged,
    insertions,
    deletions,
    ...(shown.length > 0 && { files: shown }),
    ...(diff !== undefined && { diff }),
    ...others,
  };
}

type WithoutFiles = Omit<WorkReport, 'files' | 'diff'>;

/** What can be dropped, and then shortened, until the rest fits; the first that is enough. */
const REDUCTIONS: readonly ((report: WithoutFiles) => WithoutFiles)[] = [
  ({ lastCommand: _, ...report }) => report,
  ({ session: _, ...report }) => report,
  (report) => withCommits(report, KEPT_COMMITS),
  (report) => withTexts(report, 120, 60, 2),
  (report) => withTexts(withCommits(report, 1), 60, 40, 1),
];

function fitted(whole: WithoutFiles): WithoutFiles {
  let report = whole;
  for (const reduce of REDUCTIONS) {
    if (jsonBytes(report) <= MAX_BYTES) break;
    report = reduce(report);
  }
  return report;
}

function withCommits({ git, ...report }: WithoutFiles, count: number): WithoutFiles {
  return { ...report, ...(git && { git: { ...git, commits: git.commits.slice(0, count) } }) };
}

/** Texts no longer than this, and no more names than these. */
function withTexts(report: WithoutFiles, tailChars: number, chars: number, paths: number): WithoutFiles {
  const { lastCheck, lastCommand, testsChanged, git, ...others } = report;
  const short = <Command extends RunCommand>(run: Command): Command => ({
    ...run,
    command: cutEnd(run.command, chars),
    tail: cutEnd(run.tail, tailChars),
  });
  // The end of a path says more than its beginning.
  const names = (all: readonly string[]): string[] => all.slice(0, paths).map((name) => cutStart(name, chars));
  return {
    ...others,
    lastCheck: lastCheck && short(lastCheck),
    ...(lastCommand && { lastCommand: short(lastCommand) }),
    ...(testsChanged && { testsChanged: names(testsChanged) }),
    ...(git && {
      git: {
        ...git,
        branch: git.branch && cutStart(git.branch, chars),
        commits: git.commits.map(({ sha, subject }) => ({
          sha,
          subject: cutEnd(subject, Math.min(MAX_SUBJECT_LENGTH, chars)),
        })),
        uncommitted: { count: git.uncommitted.count, paths: names(git.uncommitted.paths) },
      },
    }),
  };
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

interface Facts extends Evidence {
  readonly files: readonly FileChange[];
  readonly testsChanged: readonly string[];
  readonly check: LastCheck | undefined;
  readonly last: ToolCall | undefined;
  readonly problems: readonly ReportedProblem[];
}

/** Only what is true, what contradicts a claim first. */
function attentionOf({ calls, files, testsChanged, check, last, problems, git, root }: Facts): string[] {
  const made = git?.commits.length ?? 0;
  const lines: string[] = [];
  if (git && made === 0) {
    const denied = problems.some((problem) => problem.outcome === 'denied' && commits(problem.what));
    if (calls.some((call) => COMMAND_TOOLS.has(call.tool) && commits(commandOf(call))))
      lines.push('git commit was run, but no commit was made.');
    else if (denied) lines.push('git commit was denied: no commit was made.');
  }
  if (last && isFailed(last)) {
    const exit = last.exitCode === undefined ? '' : ` (exit ${last.exitCode})`;
    lines.push(`The last command failed${exit}: ${oneLine(commandOf(last))}`);
  }
  if (check && check.exitCode !== 0 && !(last && isFailed(last) && checkIn(commandOf(last)) === check.command))
    lines.push(`The last check failed (exit ${check.exitCode}): ${oneLine(check.command)}`);
  if (check?.exitCode === 0 && reportsFailure(check.tail))
    lines.push(`The last check exited with 0, but reports failures: ${oneLine(check.command)}`);
  const started = calls.findLast((call) => !hasEnded(call) && checkIn(commandOf(call)) !== undefined);
  if (started && !check?.afterLastEdit) lines.push('A check was started in the background; how it ended is unknown.');
  else if (!check && files.length > 0) lines.push('Files changed, but no test, build, lint or type check was run.');
  if (check?.afterLastEdit === false) lines.push('Nothing was checked after the last edit.');
  if (testsChanged.length > 0) lines.push(named('Test files changed', testsChanged));
  const outside = files.map((file) => file.path).filter((name) => isOutside(name, root));
  if (outside.length > 0) lines.push(named('Files outside the directory changed', outside));
  if (made > 0) lines.push(`${made} ${made === 1 ? 'commit was' : 'commits were'} made.`);
  return lines.slice(0, MAX_ATTENTION).map((line) => cutEnd(line, MAX_ATTENTION_LENGTH));
}

/** As many names as fit in a line, and how many more there are. */
function named(fact: string, names: readonly string[]): string {
  const line = (count: number): string => {
    const more = names.length - count;
    return `${fact}: ${names.slice(0, count).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  };
  let count = names.length;
  while (count > 1 && line(count).length > MAX_ATTENTION_LENGTH) count--;
  if (line(count).length <= MAX_ATTENTION_LENGTH) return line(count);
  const more = names.length > 1 ? ` and ${names.length - 1} more` : '';
  return `${fact}: ${cutStart(names[0] ?? '', MAX_ATTENTION_LENGTH - fact.length - more.length - 2)}${more}`;
}

/** Paths in a checkout are relative to it already. */
function insideOf(name: string, root: string | undefined): string {
  return path.isAbsolute(name) && root !== undefined ? path.relative(root, name) : name;
}

/** As git names files: relative to the directory where they lie in it. */
function shownPath(name: string, root: string | undefined): string {
  return root === undefined || isOutside(name, root) ? name : insideOf(name, root).split(path.sep).join('/');
}

function isOutside(name: string, root: string | undefined): boolean {
  const inside = insideOf(name, root);
  return root !== undefined && (inside.startsWith('..') || path.isAbsolute(inside));
}

const TEST_DIRECTORY = /^(?!\.\.)(.*\/)?(tests?|__tests__|__snapshots__|specs?|e2e|testdata)\/.*(?<!\.md)$/i;
const CODE =
  '([cm]?[jt]sx?|py|go|rs|rb|java|kts?|cs|swift|scala|groovy|php|c|cc|cpp|h|hpp|mm?|exs?|clj|hs|lua|sh|bats|dart|vue|svelte|snap)';
const TEST_NAME = new RegExp(
  `([._-](test|tests|spec|e2e|cy)|(^|/)(test|tests|spec|conftest)([._-][^/]*)?|(Test|Tests|Spec|IT))\\.${CODE}$|\\.(snap|feature)$`,
);

/** By its name relative to the directory, as the common test runners find theirs. */
export function isTestFile(name: string): boolean {
  const file = name.replaceAll('\\', '/');
  return TEST_DIRECTORY.test(file) || TEST_NAME.test(file);
}

interface FoundCheck {
  readonly call: ToolCall;
  readonly report: LastCheck;
}

function lastCheckOf({ calls, lastWrite }: Evidence): FoundCheck | undefined {
  for (const call of [...calls].reverse()) {
    const command = hasEnded(call) ? checkIn(commandOf(call)) : undefined;
    if (command === undefined) continue;
    const editedLater = calls.some(
      (other) => EDIT_TOOLS.has(other.tool) && !other.failed && other.endedAt > call.startedAt && other !== call,
    );
    const writtenLater = lastWrite > call.endedAt + CLOCK_MS;
    const { exitCode, tail } = commandReport(call, command);
    return { call, report: { command, exitCode, afterLastEdit: !editedLater && !writtenLater, tail } };
  }
  return undefined;
}

function commandReport(call: ToolCall, command: string): RunCommand {
  return { command, exitCode: exitOf(call), tail: call.tail ?? '' };
}

/** Claude Code does not always say it, such as for a command that took too long. */
function exitOf({ exitCode, failed }: ToolCall): number {
  return exitCode ?? (failed ? 1 : 0);
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/** The result of a command in the background says only that it was started. */
function hasEnded({ tool, input }: ToolCall): boolean {
  return COMMAND_TOOLS.has(tool) && input['run_in_background'] !== true;
}

function commandOf({ input }: ToolCall): string {
  return typeof input['command'] === 'string' ? input['command'] : '';
}

function isFailed({ failed, exitCode }: ToolCall): boolean {
  return exitCode === undefined ? failed : exitCode !== 0;
}

/** Without git: what the file tools report, with all edits of a file added up. */
export function editedFiles(calls: readonly ToolCall[], root?: string): FileChange[] {
  const files = new Map<string, FileChange>();
  for (const call of calls) {
    const edited = editedPath(call);
    if (edited === undefined) continue;
    const name = shownPath(edited, root);
    const before = files.get(name);
    const { insertions, deletions } = countLines(call.edit);
    files.set(name, {
      path: name,
      status: before?.status ?? (call.edit?.created ? 'added' : 'modified'),
      insertions: (before?.insertions ?? 0) + insertions,
      deletions: (before?.deletions ?? 0) + deletions,
      isBinary: false,
    });
  }
  return [...files.values()];
}

/** The file a successful call of a file tool changed. */
export function editedPath({ tool, input, failed }: ToolCall): string | undefined {
  if (!EDIT_TOOLS.has(tool) || failed) return undefined;
  const name = input['file_path'] ?? input['notebook_path'];
  return typeof name === 'string' ? path.normalize(name) : undefined;
}

function countLines(edit: FileEdit | undefined): { insertions: number; deletions: number } {
  if (!edit) return { insertions: 0, deletions: 0 };
  if (edit.counted) return edit.counted;
  const lines = edit.hunks.flatMap((hunk) => hunk.lines);
  if (lines.length === 0 && edit.content !== undefined)
    return { insertions: edit.content === '' ? 0 : linesOf(edit.content).length, deletions: 0 };
  const count = (sign: string): number => lines.filter((line) => line.startsWith(sign)).length;
  return { insertions: count('+'), deletions: count('-') };
}

function linesOf(text: string): string[] {
  return text.replace(/\n$/, '').split('\n');
}

/** Without git: the edits as the file tools reported them, one after the other. */
export function reportedPatch(calls: readonly ToolCall[], root?: string): string {
  return calls
    .flatMap((call) => {
      const edited = editedPath(call);
      if (edited === undefined || !call.edit) return [];
      const name = shownPath(edited, root);
      const { created, hunks, content } = call.edit;
      const heading = [`--- ${created ? '/dev/null' : name}`, `+++ ${name}`];
      const all = hunks.length > 0 || content === undefined ? hunks : [wholeFile(content)];
      return [...heading, ...all.flatMap((hunk) => [hunk.header, ...hunk.lines])].map((line) => `${line}\n`);
    })
    .join('');
}

function wholeFile(content: string): FileEdit['hunks'][number] {
  const lines = linesOf(content);
  return { header: `@@ -0,0 +1,${lines.length} @@`, lines: lines.map((line) => `+${line}`) };
}
