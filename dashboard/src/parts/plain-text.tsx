import { signal, useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { visibleLines, type VisibleLine } from '../../../src/text/invisible.ts';
import { me } from '../api/sign-in.ts';
import type { Token } from '../text/highlight.ts';
import { markedLine, markedLines, markedText, type Mark } from '../text/marks.ts';
import { homePath, plural, projectOf } from '../text/words.ts';
import { ShowAll, useFold, type Limits } from './part.tsx';

/** Text as is, with marks for invisible characters and long runs of blanks. */
export function Visible({ text }: { text: string }) {
  return <Marked parts={useMemo(() => markedText(text), [text])} />;
}

export function VisibleLineOf({ line }: { line: string }) {
  return <Marked parts={useMemo(() => markedLine(line), [line])} isCode />;
}

/** Loaded when code is first shown; until then it has no colours. */
const tokenize = signal<((text: string) => readonly Token[]) | undefined>(undefined);
let isLoading = false;

function loadColours(): void {
  if (isLoading) return;
  isLoading = true;
  import('../text/highlight.ts').then(
    ({ tokens }) => (tokenize.value = tokens),
    () => (isLoading = false),
  );
}

const MAX_COLOURED = 20_000;

function Coloured({ text }: { text: string }) {
  const read = tokenize.value;
  if (!read) loadColours();
  if (!read || text.length > MAX_COLOURED) return <>{text}</>;
  return (
    <>
      {read(text).map(({ kind, text: part }) =>
        kind === undefined ? part : <span class={`token-${kind}`}>{part}</span>,
      )}
    </>
  );
}

interface MarkedProps {
  parts: readonly (string | Mark)[];
  isCode?: boolean;
}

export function Marked({ parts, isCode = false }: MarkedProps) {
  return (
    <>
      {parts.map((part) =>
        typeof part === 'string' ? (
          isCode ? (
            <Coloured text={part} />
          ) : (
            part
          )
        ) : (
          <span class="invisible" title={part.title}>
            {part.words}
          </span>
        ),
      )}
    </>
  );
}

/** Copies the text as it is, with all that is not visible in it. */
export function Copy({ text, what }: { text: string; what: string }) {
  const done = useSignal(false);
  // Only pages that came over TLS or from this machine have one.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (!clipboard) return null;
  const copy = () => {
    void clipboard.writeText(text).then(() => {
      done.value = true;
      setTimeout(() => (done.value = false), 2_000);
    });
  };
  return (
    <button type="button" class="link copy" aria-label={`Copy ${what}`} onClick={copy}>
      {done.value ? 'Copied' : 'Copy'}
    </button>
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
        <Visible text={homePath(path, me.value?.starts?.home)} />
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
  tone?: 'command' | 'code' | 'output' | 'problem';
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
      <Copy text={text} what={label.toLowerCase()} />
      {count > MANY_LINES && <p class="size quiet">{plural(count, 'line')}</p>}
      {/* A region that scrolls must be reachable by keyboard. */}
      <pre class={`code code-${tone}`} tabIndex={0} role="group" aria-label={label}>
        <Marked
          parts={markedLines(shown === 'all' ? lines : beginningOf(text, lines, shown))}
          isCode={tone === 'command' || tone === 'code'}
        />
      </pre>
      {shown !== 'all' && (
        <ShowAll unfold={unfold}>
          {lines.length > shown.lines ? plural(count, 'line') : plural(text.length, 'character')}
        </ShowAll>
      )}
    </div>
  );
}

function beginningOf(text: string, lines: readonly VisibleLine[], { lines: maxLines, chars }: Limits): VisibleLine[] {
  const cut = text.length > chars ? visibleLines(text.slice(0, chars)) : lines;
  return cut.slice(0, maxLines);
}
