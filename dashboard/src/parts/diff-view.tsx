import { useSignal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext, useMemo, useRef } from 'preact/hooks';
import { foldBlankLines, isBlankLine } from '../../../src/text/invisible.ts';
import { lineDiff, type DiffLine } from '../text/line-diff.ts';
import { parseUnifiedDiff, type FileDiff } from '../text/unified-diff.ts';
import { blankLines } from '../text/marks.ts';
import { plural } from '../text/words.ts';
import { focusIt } from './focus.ts';
import { ChevronIcon } from './icons.tsx';
import { ShowAll, useFold, type Limits } from './part.tsx';
import { Marked, Visible, VisibleLineOf } from './plain-text.tsx';

const LIMITS: Limits = { lines: 400, chars: Infinity };
/** From here on it is worth saying how long it is. */
const MANY_LINES = 12;
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

export interface Comment {
  readonly place: string;
  readonly code: string;
  readonly words: string;
}

/** What has been written beside lines so far. */
export interface Comments {
  readonly all: readonly Comment[];
  add(comment: Comment): void;
  remove(comment: Comment): void;
}

/** Set where lines can be commented on. */
const CommentContext = createContext<(Comments & { path: string }) | undefined>(undefined);

export interface UnifiedDiffProps {
  text: string;
  startOpen: boolean;
  comments?: Comments | undefined;
}

export function UnifiedDiff({ text, startOpen, comments }: UnifiedDiffProps) {
  const files = useMemo(() => parseUnifiedDiff(text), [text]);
  return (
    <div class="files">
      {files.map((file) => (
        <CommentContext.Provider value={comments && { ...comments, path: file.path }}>
          <FileView key={file.path} file={file} startOpen={startOpen} />
        </CommentContext.Provider>
      ))}
    </div>
  );
}

function FileView({ file, startOpen }: { file: FileDiff; startOpen: boolean }) {
  const counts = useMemo(() => countLines(file), [file]);
  const open = useSignal(startOpen && counts.all <= LIMITS.lines);
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
        {changesOf(file).map((change) => (
          <span class={`tag change-${change.toLowerCase()}`}>{change}</span>
        ))}
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

/** A line of a diff, or several blank ones of the same kind. */
type DiffRow = DiffLine & { readonly blank?: number };

function rowsOf(lines: readonly DiffLine[]): DiffRow[] {
  return foldBlankLines<DiffLine, DiffRow>(
    lines,
    ({ kind, text }) => (isBlankLine(text) ? kind : undefined),
    ([first, ...others]) => ({ ...(first ?? { kind: 'same', text: '' }), blank: others.length + 1 }),
  );
}

function Lines({ lines, numbered, label }: { lines: readonly DiffLine[]; numbered: boolean; label: string }) {
  const rows = useMemo(() => rowsOf(lines), [lines]);
  const chars = useMemo(() => rows.reduce((sum, { text }) => sum + text.length, 0), [rows]);
  const { shown, unfold } = useFold(rows.length, chars, LIMITS);
  const comments = useContext(CommentContext);
  const commented = useSignal<DiffRow | undefined>(undefined);
  const opener = useRef<HTMLElement>(null);
  const close = () => {
    commented.value = undefined;
    opener.current?.focus({ preventScroll: true });
  };
  return (
    <div class={shown === 'all' ? 'diff-block' : 'diff-block cut'}>
      {rows.length > MANY_LINES && <p class="size quiet">{plural(lines.length, 'line')}</p>}
      <div class={numbered ? 'diff numbered' : 'diff'} role="group" aria-label={label} tabIndex={0}>
        {(shown === 'all' ? rows : beginningOf(rows, shown)).map((row) => (
          <>
            <div class={`line ${row.kind}`}>
              {numbered && (
                <span class="number">
                  {comments && (row.newLine ?? row.oldLine) !== undefined ? (
                    <button
                      type="button"
                      class="comment-button"
                      aria-label={`Comment on line ${row.newLine ?? row.oldLine ?? ''}`}
                      onClick={({ currentTarget }) => {
                        opener.current = currentTarget;
                        commented.value = row;
                      }}
                    >
                      {row.newLine ?? row.oldLine}
                    </button>
                  ) : (
                    (row.newLine ?? row.oldLine ?? '')
                  )}
                </span>
              )}
              <span class="sign">{SIGNS[row.kind]}</span>
              <span class="words">
                {row.blank === undefined ? <LineWords line={row} /> : <Marked parts={[blankLines(row.blank)]} />}
              </span>
            </div>
            {comments && (
              <LineComments row={row} comments={comments} isOpen={commented.value === row} onClose={close} />
            )}
          </>
        ))}
      </div>
      {shown !== 'all' && <ShowAll unfold={unfold}>{plural(lines.length, 'line')}</ShowAll>}
    </div>
  );
}

interface LineCommentsProps {
  row: DiffRow;
  comments: Comments & { readonly path: string };
  isOpen: boolean;
  onClose: () => void;
}

/** What was written beside a line, below it, and the form for more. */
function LineComments({ row, comments, isOpen, onClose }: LineCommentsProps) {
  const place = `${comments.path}:${row.newLine ?? row.oldLine ?? ''}`;
  return (
    <>
      {comments.all.map((comment) =>
        comment.place === place && comment.code === row.text ? (
          <div class="comment">
            <span>
              <Visible text={comment.words} />
            </span>
            <button type="button" class="link" onClick={() => comments.remove(comment)}>
              Remove comment
            </button>
          </div>
        ) : null,
      )}
      {isOpen && (
        <CommentForm
          place={place}
          code={row.text}
          onAdd={(comment) => {
            if (comment) comments.add(comment);
            onClose();
          }}
        />
      )}
    </>
  );
}

interface CommentFormProps {
  place: string;
  code: string;
  /** Without a comment if there is to be none. */
  onAdd: (comment?: Comment) => void;
}

function CommentForm({ place, code, onAdd }: CommentFormProps) {
  const words = useSignal('');
  const add = () => onAdd(words.value.trim() === '' ? undefined : { place, code, words: words.value.trim() });
  return (
    <form
      class="comment"
      onSubmit={(event) => {
        event.preventDefault();
        add();
      }}
    >
      <label class="field">
        <span>
          Comment on <Visible text={place} />
        </span>
        <textarea
          ref={focusIt}
          rows={2}
          value={words.value}
          onInput={({ currentTarget }) => (words.value = currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) add();
            else if (event.key === 'Escape') {
              event.preventDefault();
              onAdd();
            }
          }}
        />
      </label>
      <div class="buttons">
        <button type="submit" class="button small primary">
          Add comment
        </button>
        <button type="button" class="button small" onClick={() => onAdd()}>
          Back
        </button>
      </div>
    </form>
  );
}

function beginningOf(rows: readonly DiffRow[], { lines, chars }: Limits): DiffRow[] {
  const beginning: DiffRow[] = [];
  let left = chars;
  for (const row of rows.slice(0, lines)) {
    if (left <= 0) break;
    const { changed: _, ...cut } = row;
    beginning.push(row.text.length > left ? { ...cut, text: row.text.slice(0, left) } : row);
    left -= row.text.length;
  }
  return beginning;
}

function LineWords({ line: { text, changed } }: { line: DiffLine }) {
  if (!changed || changed[0] === changed[1]) return <VisibleLineOf line={text} />;
  const [from, to] = changed;
  return (
    <>
      <VisibleLineOf line={text.slice(0, from)} />
      <mark>
        <VisibleLineOf line={text.slice(from, to)} />
      </mark>
      <VisibleLineOf line={text.slice(to)} />
    </>
  );
}

/** What happened to a file as a whole. */
function changesOf({ notes }: FileDiff): string[] {
  const says = (beginning: string) => notes.some((note) => note.startsWith(beginning));
  return [
    ...(says('new file') ? ['Added'] : []),
    ...(says('deleted file') ? ['Deleted'] : []),
    ...(says('rename to') ? ['Renamed'] : []),
    ...(says('Binary files') || says('GIT binary patch') ? ['Binary'] : []),
    ...(says('old mode') ? ['Mode'] : []),
  ];
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
