import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { showInvisible } from '../text/invisible.ts';

/** Text as is, with marks for invisible characters. */
export function Visible({ text }: { text: string }) {
  const pieces = useMemo(() => showInvisible(text), [text]);
  return (
    <>
      {pieces.map(({ kind, text: words }) =>
        kind === 'text' ? (
          words
        ) : (
          <span class="invisible" title="An invisible character">
            {words}
          </span>
        ),
      )}
    </>
  );
}

interface CodeProps {
  text: string;
  label: string;
  /** Longer ones are cut, with a button for the rest. */
  longest?: number;
  tone?: 'command' | 'output' | 'problem';
}

export function Code({ text, label, longest = 20_000, tone = 'output' }: CodeProps) {
  const whole = useSignal(false);
  const cut = text.length > longest && !whole.value;
  return (
    <div class="code-block">
      {/* A region that scrolls must be reachable by keyboard. */}
      <pre class={`code code-${tone}`} tabIndex={0} role="group" aria-label={label}>
        <Visible text={cut ? text.slice(0, longest) : text} />
      </pre>
      {cut && (
        <button type="button" class="button small" onClick={() => (whole.value = true)}>
          Show all {text.length.toLocaleString()} characters
        </button>
      )}
    </div>
  );
}
