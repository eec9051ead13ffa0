import type { FileEdit } from '../schema/events.ts';
import type { AgentSignal, FileBefore } from './agent-signal.ts';

/**
 * What Edit, Write and NotebookEdit (2.1.325) report about the file alongside their text (`tool_use_result`); the
 * previous contents are `null` if they are long.
 */
export function fileSignals(report: unknown, toolUseId: string | undefined): AgentSignal[] {
  if (!isRecord(report)) return [];
  const edit = toolUseId === undefined ? undefined : editIn(report);
  return [
    ...(edit && toolUseId !== undefined ? [{ kind: 'file_edited' as const, toolUseId, edit }] : []),
    ...writtenFile(report),
  ];
}

function writtenFile({ type, filePath, originalFile, notebook_path, original_file }: Report): AgentSignal[] {
  if (typeof notebook_path === 'string') return [written(notebook_path, original_file)];
  if (typeof filePath !== 'string' || originalFile === undefined) return [];
  return [
    type === 'create'
      ? { kind: 'file_written', path: filePath, before: { kind: 'absent' } }
      : written(filePath, originalFile),
  ];
}

function written(path: string, original: unknown): AgentSignal {
  const before: FileBefore = typeof original === 'string' ? { kind: 'text', text: original } : { kind: 'unknown' };
  return { kind: 'file_written', path, before };
}

function editIn({ type, structuredPatch, gitDiff, content }: Report): FileEdit | undefined {
  const created = type === 'create';
  if (!created && structuredPatch === undefined && gitDiff === undefined) return undefined;
  const { additions, deletions } = isRecord(gitDiff) ? gitDiff : {};
  return {
    created,
    hunks: hunksIn(structuredPatch),
    ...(typeof additions === 'number' &&
      typeof deletions === 'number' && { counted: { insertions: additions, deletions } }),
    ...(created && typeof content === 'string' && { content }),
  };
}

function hunksIn(patch: unknown): FileEdit['hunks'] {
  if (!Array.isArray(patch)) return [];
  return patch.flatMap((hunk: unknown) => {
    if (!isRecord(hunk) || !Array.isArray(hunk['lines'])) return [];
    const lines = hunk['lines'].filter((line): line is string => typeof line === 'string');
    const number = (name: string): number => (typeof hunk[name] === 'number' ? hunk[name] : 0);
    const header = `@@ -${number('oldStart')},${number('oldLines')} +${number('newStart')},${number('newLines')} @@`;
    return [{ header, lines }];
  });
}

type Report = Record<string, unknown>;

function isRecord(value: unknown): value is Report {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
