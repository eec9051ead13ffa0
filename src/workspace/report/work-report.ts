import path from 'node:path';
import type { FileEdit } from '../../schema/events.ts';
import { checkIn } from './check-command.ts';
import { sum, type FileChange } from './compare.ts';
import { COMMAND_TOOLS, EDIT_TOOLS } from '../../schema/enums.ts';

/** A tool call that ran to completion; denied ones did not. */
export interface ToolCall {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly failed: boolean;
  readonly exitCode?: number | undefined;
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
  /** Most changed first; as many as fit. */
  readonly files?: readonly ReportedFile[];
  readonly commandsRun: number;
  readonly commandsFailed: number;
  readonly lastCheck?: LastCheck;
  readonly shared?: true;
}

export interface Evidence {
  readonly calls: readonly ToolCall[];
  /** What git saw change; undefined without git. */
  readonly changes: readonly FileChange[] | undefined;
  /** When a changed file was last written, in milliseconds; 0 when unknown. */
  readonly lastWrite: number;
  readonly shared: boolean;
}

export interface FullWork extends Omit<WorkReport, 'files'> {
  readonly files: readonly (ReportedFile & { readonly isBinary: boolean })[];
  readonly commands: readonly { readonly command: string; readonly exitCode?: number; readonly failed: boolean }[];
}

const MAX_BYTES = 600;
const MAX_COMMAND_LENGTH = 100;
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
    if (bytesOf({ ...short, files: [...files, file] }) > MAX_BYTES) break;
    files.push(file);
  }
  return files.length === 0 ? short : { ...short, files };
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function shortened(check: LastCheck): LastCheck {
  const { command } = check;
  return command.length <= MAX_COMMAND_LENGTH
    ? check
    : { ...check, command: `${command.slice(0, MAX_COMMAND_LENGTH - 1)}…` };
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

/** Without git: what the file tools report, with all edits of a file added up. */
export function editedFiles(calls: readonly ToolCall[]): FileChange[] {
  const files = new Map<string, FileChange>();
  for (const call of calls) {
    const name = editedPath(call);
    if (name === undefined) continue;
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
export function reportedPatch(calls: readonly ToolCall[]): string {
  return calls
    .flatMap((call) => {
      const name = editedPath(call);
      if (name === undefined || !call.edit) return [];
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
