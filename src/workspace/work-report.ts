import path from 'node:path';
import { checkIn } from './check-command.ts';
import type { FileChange } from './compare.ts';
import { sum } from './diff.ts';
import { COMMAND_TOOLS, EDIT_TOOLS } from './tool-kinds.ts';

/** A tool call that ran to its end; what was denied did not. */
export interface ToolCall {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly failed: boolean;
  readonly exitCode?: number | undefined;
  /** Milliseconds. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** What the tool returned beside its text (`tool_use_result`). */
  readonly result?: unknown;
}

export interface ReportedFile {
  readonly path: string;
  readonly insertions: number;
  readonly deletions: number;
  readonly status: FileChange['status'];
}

export interface LastCheck {
  readonly command: string;
  readonly exitCode: number;
  /** Nothing was written after it. */
  readonly afterLastEdit: boolean;
}

export interface WorkReport {
  readonly filesChanged: number;
  readonly insertions: number;
  readonly deletions: number;
  /** The most changed first; as many as fit. */
  readonly files?: readonly ReportedFile[];
  readonly commandsRun: number;
  readonly commandsFailed: number;
  readonly lastCheck?: LastCheck;
  readonly shared?: true;
}

export interface Evidence {
  readonly calls: readonly ToolCall[];
  /** What git saw change; undefined where there is no git. */
  readonly changes: readonly FileChange[] | undefined;
  /** When a changed file was last written, in milliseconds; 0 when unknown. */
  readonly lastWrite: number;
  readonly shared: boolean;
}

export interface FullWork extends Omit<WorkReport, 'files'> {
  readonly files: readonly (ReportedFile & { readonly isBinary: boolean })[];
  readonly commands: readonly { readonly command: string; readonly exitCode?: number; readonly failed: boolean }[];
}

const MOST_BYTES = 600;
const LONGEST_COMMAND = 100;
/** File systems and clocks are not finer than this together. */
const CLOCK_MS = 20;

export function fullWork(evidence: Evidence): FullWork {
  const { calls, changes, shared } = evidence;
  const files = changes ?? editedFiles(calls);
  const commands = calls.filter(({ tool }) => COMMAND_TOOLS.has(tool));
  const lastCheck = lastCheckOf(evidence);
  return {
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
    commandsRun: commands.length,
    commandsFailed: commands.filter(isFailed).length,
    commands: commands.map((call) => ({
      command: commandOf(call),
      ...(call.exitCode !== undefined && { exitCode: call.exitCode }),
      failed: isFailed(call),
    })),
    ...(lastCheck && { lastCheck }),
    ...(shared && { shared: true as const }),
  };
}

/** The report of a result: at most 600 bytes of JSON, files dropped to fit. */
export function workReport(evidence: Evidence): WorkReport {
  const { files: all, commands: _, lastCheck, ...counts } = fullWork(evidence);
  const short: WorkReport = { ...counts, ...(lastCheck && { lastCheck: shortened(lastCheck) }) };
  const files: ReportedFile[] = [];
  const byChange = [...all].sort((a, b) => b.insertions + b.deletions - (a.insertions + a.deletions));
  for (const { isBinary: __, ...file } of byChange) {
    if (bytesOf({ ...short, files: [...files, file] }) > MOST_BYTES) break;
    files.push(file);
  }
  return files.length === 0 ? short : { ...short, files };
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function shortened(check: LastCheck): LastCheck {
  const { command } = check;
  return command.length <= LONGEST_COMMAND ? check : { ...check, command: `${command.slice(0, LONGEST_COMMAND - 1)}…` };
}

function lastCheckOf({ calls, lastWrite }: Evidence): LastCheck | undefined {
  for (let index = calls.length - 1; index >= 0; index--) {
    const call = calls[index];
    if (!call || !COMMAND_TOOLS.has(call.tool)) continue;
    const command = checkIn(commandOf(call));
    if (command === undefined) continue;
    const editedLater = calls.some(
      (other) => EDIT_TOOLS.has(other.tool) && !other.failed && other.endedAt > call.startedAt && other !== call,
    );
    const writtenLater = lastWrite > call.endedAt + CLOCK_MS;
    return { command, exitCode: call.exitCode ?? (call.failed ? 1 : 0), afterLastEdit: !editedLater && !writtenLater };
  }
  return undefined;
}

function commandOf({ input }: ToolCall): string {
  return typeof input['command'] === 'string' ? input['command'] : '';
}

function isFailed({ failed, exitCode }: ToolCall): boolean {
  return exitCode === undefined ? failed : exitCode !== 0;
}

/** Where there is no git: what the file tools say they did, all edits of a file added up. */
export function editedFiles(calls: readonly ToolCall[]): FileChange[] {
  const files = new Map<string, FileChange>();
  for (const call of calls) {
    const name = editedPath(call);
    if (name === undefined) continue;
    const before = files.get(name);
    const { insertions, deletions } = countLines(call.result);
    files.set(name, {
      path: name,
      status: before?.status ?? (isCreation(call.result) ? 'added' : 'modified'),
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

function isCreation(result: unknown): boolean {
  return isRecord(result) && result['type'] === 'create';
}

function countLines(result: unknown): { insertions: number; deletions: number } {
  if (!isRecord(result)) return { insertions: 0, deletions: 0 };
  const { gitDiff, structuredPatch, content } = result;
  if (isRecord(gitDiff) && typeof gitDiff['additions'] === 'number' && typeof gitDiff['deletions'] === 'number')
    return { insertions: gitDiff['additions'], deletions: gitDiff['deletions'] };
  const lines = hunksOf(structuredPatch).flatMap((hunk) => hunk.lines);
  if (lines.length === 0 && isCreation(result) && typeof content === 'string')
    return { insertions: content === '' ? 0 : content.replace(/\n$/, '').split('\n').length, deletions: 0 };
  const count = (sign: string): number => lines.filter((line) => line.startsWith(sign)).length;
  return { insertions: count('+'), deletions: count('-') };
}

interface Hunk {
  readonly header: string;
  readonly lines: readonly string[];
}

function hunksOf(patch: unknown): Hunk[] {
  if (!Array.isArray(patch)) return [];
  return patch.flatMap((hunk: unknown) => {
    if (!isRecord(hunk) || !Array.isArray(hunk['lines'])) return [];
    const lines = hunk['lines'].filter((line): line is string => typeof line === 'string');
    const number = (name: string): number => (typeof hunk[name] === 'number' ? hunk[name] : 0);
    const header = `@@ -${number('oldStart')},${number('oldLines')} +${number('newStart')},${number('newLines')} @@`;
    return [{ header, lines }];
  });
}

/** Where there is no git: the edits as the file tools reported them, one after the other. */
export function reportedPatch(calls: readonly ToolCall[]): string {
  return calls
    .flatMap((call) => {
      const name = editedPath(call);
      if (name === undefined || !isRecord(call.result)) return [];
      const { content } = call.result;
      const isNew = isCreation(call.result);
      const hunks = hunksOf(call.result['structuredPatch']);
      const created = isNew && typeof content === 'string' ? content.replace(/\n$/, '').split('\n') : [];
      const all =
        hunks.length > 0 || created.length === 0
          ? hunks
          : [{ header: `@@ -0,0 +1,${created.length} @@`, lines: created.map((line) => `+${line}`) }];
      const heading = [`--- ${isNew ? '/dev/null' : name}`, `+++ ${name}`];
      return [...heading, ...all.flatMap((hunk) => [hunk.header, ...hunk.lines])].map((line) => `${line}\n`);
    })
    .join('');
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
