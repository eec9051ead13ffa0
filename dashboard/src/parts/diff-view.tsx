import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { lineDiff, type DiffLine } from '../text/line-diff.ts';
import { parseUnifiedDiff, type FileDiff } from '../text/unified-diff.ts';
import { plural } from '../text/words.ts';
import { ChevronIcon } from './icons.tsx';
import { Visible } from './plain-text.tsx';

const SHOWN_LINES = 400;
const SIGNS = { same: ' ', added: '+', removed: '-' } as const;

export interface EditDiffProps {
  before: string;
  after: string;
  firstLine?: number | undefined;
  linesBefore?: readonly string[] | undefined;
  linesAfter?: readonly string[] | undefined;
  label: string;
}

/** One replacement, with the lines around it. */
export function EditDiff({ before, after, firstLine, linesBefore = [], linesAfter = [], label }: EditDiffProps) {
  const lines = useMemo(() => {
    const start = firstLine ?? 1;
    const changed = lineDiff(before, after, start);
    const afterOld = start + changed.filter(({ kind }) => kind !== 'added').length;
    const afterNew = start + changed.filter(({ kind }) => kind !== 'removed').length;
    const around = (text: string, oldLine: number, newLine: number): DiffLine => ({
      kind: 'same',
      text,
      oldLine,
      newLine,
    });
    return [
      ...linesBefore.map((text, index) =>
        around(text, start - linesBefore.length + index, start - linesBefore.length + index),
      ),
      ...changed,
      ...linesAfter.map((text, index) => around(text, afterOld + index, afterNew + index)),
    ];
  }, [before, after, firstLine, linesBefore, linesAfter]);
  return <Lines lines={lines} numbered={firstLine !== undefined} label={label} />;
}

export function UnifiedDiff({ text, startOpen }: { text: string; startOpen: boolean }) {
  const files = useMemo(() => parseUnifiedDiff(text), [text]);
  return (
    <div class="files">
      {files.map((file) => (
        <FileView key={file.path} file={file} startOpen={startOpen} />
      ))}
    </div>
  );
}

function FileView({ file, startOpen }: { file: FileDiff; startOpen: boolean }) {
  const counts = useMemo(() => countLines(file), [file]);
  const open = useSignal(startOpen && counts.all <= SHOWN_LINES);
  return (
    <details class="file" open={open.value} onToggle={({ currentTarget }) => (open.value = currentTarget.open)}>
      <summary>
        <ChevronIcon />
        <span class="path">
          {file.oldPath !== undefined && file.oldPath !== file.path && (
            <>
              <Visible text={file.oldPath} /> →{' '}
            </>
          )}
          <Visible text={file.path === '' ? 'Notes' : file.path} />
        </span>
        <span class="counts">
          <span class="added">+{counts.added}</span> <span class="removed">−{counts.removed}</span>
        </span>
      </summary>
      {open.value && (
        <>
          {file.notes.map((note) => (
            <p class="quiet">
              <Visible text={noteWords(note)} />
            </p>
          ))}
          {file.hunks.map(({ header, lines }) => (
            <div class="hunk">
              <p class="hunk-header mono">
                <Visible text={header} />
              </p>
              <Lines lines={lines} numbered label={`Changes in ${file.path}`} />
            </div>
          ))}
        </>
      )}
    </details>
  );
}

function Lines({ lines, numbered, label }: { lines: readonly DiffLine[]; numbered: boolean; label: string }) {
  const whole = useSignal(false);
  const shown = whole.value ? lines : lines.slice(0, SHOWN_LINES);
  return (
    <>
      <div class={numbered ? 'diff numbered' : 'diff'} role="group" aria-label={label} tabIndex={0}>
        {shown.map((line) => (
          <div class={`line ${line.kind}`}>
            {numbered && <span class="number">{line.newLine ?? line.oldLine ?? ''}</span>}
            <span class="sign">{SIGNS[line.kind]}</span>
            <span class="words">
              <LineWords line={line} />
            </span>
          </div>
        ))}
      </div>
      {shown.length < lines.length && (
        <button type="button" class="button small" onClick={() => (whole.value = true)}>
          Show all {plural(lines.length, 'line')}
        </button>
      )}
    </>
  );
}

function LineWords({ line: { text, changed } }: { line: DiffLine }) {
  if (!changed || changed[0] === changed[1]) return <Visible text={text} />;
  const [from, to] = changed;
  return (
    <>
      <Visible text={text.slice(0, from)} />
      <mark>
        <Visible text={text.slice(from, to)} />
      </mark>
      <Visible text={text.slice(to)} />
    </>
  );
}

/** What git says about a file, if there is a plainer word for it. */
function noteWords(note: string): string {
  const [, what, mode] = /^(new|deleted) file mode (\d+)$/.exec(note) ?? [];
  if (what === undefined) return note;
  const kind = mode === '100755' ? ', executable' : mode === '120000' ? ', a link' : '';
  return `${what === 'new' ? 'New file' : 'Deleted'}${kind}`;
}

function countLines({ hunks }: FileDiff): { added: number; removed: number; all: number } {
  const lines = hunks.flatMap((hunk) => hunk.lines);
  return {
    added: lines.filter(({ kind }) => kind === 'added').length,
    removed: lines.filter(({ kind }) => kind === 'removed').length,
    all: lines.length,
  };
}
