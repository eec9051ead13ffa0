import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { visibleLines } from '../../../src/text/invisible.ts';
import { plural } from '../text/words.ts';
import { ShowAll, useFold, useIsInput, type Limits } from './part.tsx';
import { Code } from './plain-text.tsx';
import { Markdown } from './rich.tsx';

const LIMITS: Limits = { lines: Infinity, chars: Infinity };

/** Markdown in an input. Formatting can hide what was written, so whoever decides can read the source too. */
export function FormattedText({ text, label }: { text: string; label: string }) {
  const asSource = useSignal(false);
  const isInput = useIsInput();
  const lines = useMemo(() => visibleLines(text).length, [text]);
  const { shown, unfold } = useFold(lines, text.length, LIMITS);
  if (!isInput) return <Markdown text={text} />;
  return (
    <div class="formatted-text">
      {asSource.value ? (
        <Code text={text} label={`${label}, source`} />
      ) : (
        <div class={shown === 'all' ? 'plan' : 'plan cut'} role="group" aria-label={label}>
          <Markdown text={shown === 'all' ? text : beginningOf(text, shown)} />
        </div>
      )}
      <div class="buttons">
        {shown !== 'all' && !asSource.value && (
          <ShowAll unfold={unfold}>
            {lines > shown.lines ? plural(text.split('\n').length, 'line') : plural(text.length, 'character')}
          </ShowAll>
        )}
        <label class="check">
          <input
            type="checkbox"
            checked={asSource.value}
            onChange={({ currentTarget }) => (asSource.value = currentTarget.checked)}
          />{' '}
          Show source
        </label>
      </div>
    </div>
  );
}

function beginningOf(text: string, { lines, chars }: Limits): string {
  return text.split('\n').slice(0, lines).join('\n').slice(0, chars);
}
