import { useMemo } from 'preact/hooks';
import { visibleLines, type VisibleLine } from '../../../src/text/invisible.ts';
import { markedLine, markedLines, markedText, type Mark } from '../text/marks.ts';
import { homePath, plural, projectOf } from '../text/words.ts';
import { useFold, type Limits } from './part.tsx';

/** Text as is, with marks for invisible characters and long runs of blanks. */
export function Visible({ text }: { text: string }) {
  return <Marked parts={useMemo(() => markedText(text), [text])} />;
}

export function VisibleLineOf({ line }: { line: string }) {
  return <Marked parts={useMemo(() => markedLine(line), [line])} />;
}

export function Marked({ parts }: { parts: readonly (string | Mark)[] }) {
  return (
    <>
      {parts.map((part) =>
        typeof part === 'string' ? (
          part
        ) : (
          <span class="invisible" title={part.title}>
            {part.words}
          </span>
        ),
      )}
    </>
  );
}

interface PathProps {
  path: string;
}

/** Cut at the front where there is no room: its end says most. */
export function Path({ path }: PathProps) {
  return (
    <bdo dir="rtl" class="path-cut mono" title={path}>
      <bdi dir="ltr">
        <Visible text={homePath(path)} />
      </bdi>
    </bdo>
  );
}

/** Where a session works, by name; its whole path is one touch away. */
export function Project({ of }: { of: Parameters<typeof projectOf>[0] }) {
  return (
    <span class="project" title={of.workspace?.origin ?? of.cwd}>
      <Visible text={projectOf(of)} />
    </span>
  );
}

interface CodeProps {
  text: string;
  label: string;
  tone?: 'command' | 'output' | 'problem';
}

const LIMITS: Limits = { lines: 60, chars: 20_000 };
/** From here on it is worth saying how long it is. */
const MANY_LINES = 12;

export function Code({ text, label, tone = 'output' }: CodeProps) {
  const lines = useMemo(() => visibleLines(text), [text]);
  const { shown, unfold } = useFold(lines.length, text.length, LIMITS);
  const count = useMemo(() => text.split('\n').length, [text]);
  return (
    <div class={shown === 'all' ? 'code-block' : 'code-block cut'}>
      {count > MANY_LINES && <p class="size quiet">{plural(count, 'line')}</p>}
      {/* A region that scrolls must be reachable by keyboard. */}
      <pre class={`code code-${tone}`} tabIndex={0} role="group" aria-label={label}>
        <Marked parts={markedLines(shown === 'all' ? lines : beginningOf(text, lines, shown))} />
      </pre>
      {shown !== 'all' && (
        <button type="button" class="button small" onClick={unfold}>
          Show all {lines.length > shown.lines ? plural(count, 'line') : plural(text.length, 'character')}
        </button>
      )}
    </div>
  );
}

function beginningOf(text: string, lines: readonly VisibleLine[], { lines: maxLines, chars }: Limits): VisibleLine[] {
  const cut = text.length > chars ? visibleLines(text.slice(0, chars)) : lines;
  return cut.slice(0, maxLines);
}
