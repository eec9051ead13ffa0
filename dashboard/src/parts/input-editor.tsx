import { useSignal } from '@preact/signals';
import { useId } from 'preact/hooks';
import { draft } from '../model/drafts.ts';
import { focusIt } from './focus.ts';
import { fields, text, type Fields } from '../timeline/event-data.ts';

/** The parts of a call that someone would want to change; everything else stays. */
const EDITABLE: Readonly<Record<string, string>> = {
  Bash: 'command',
  Edit: 'new_string',
  Write: 'content',
  WebFetch: 'url',
};

interface Props {
  requestId: string;
  toolName: string;
  input: Fields;
  busy: boolean;
  /** Why nothing can be allowed yet. */
  unread: string | undefined;
  autoFocus: boolean;
  onSend: (updatedInput: Record<string, unknown>) => void;
  onBack: () => void;
}

export function InputEditor({ requestId, toolName, input, busy, unread, autoFocus, onSend, onBack }: Props) {
  const field = EDITABLE[toolName];
  const single = field !== undefined && text(input[field]) !== undefined ? field : undefined;
  const asked = single === undefined ? JSON.stringify(input, null, 2) : (text(input[single]) ?? '');
  const words = draft(`changed ${requestId}`, asked);
  const problem = useSignal('');
  const reason = useId();
  const send = () => {
    if (unread !== undefined) return undefined;
    if (single !== undefined) return onSend({ ...input, [single]: words.value });
    try {
      const parsed: unknown = JSON.parse(words.value);
      if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
        throw new Error('it is not an object');
      onSend({ ...fields(parsed) });
    } catch (error) {
      problem.value = `This is not valid JSON: ${error instanceof Error ? error.message : 'it cannot be read'}`;
    }
  };
  return (
    <form
      class="input-editor"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label class="field">
        <span>{single === undefined ? 'Input, as JSON' : `Changed ${single.replace('_', ' ')}`}</span>
        <textarea
          ref={autoFocus ? focusIt : null}
          class="mono"
          rows={Math.min(16, words.value.split('\n').length + 1)}
          value={words.value}
          disabled={busy}
          spellcheck={false}
          onInput={({ currentTarget }) => (words.value = currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send();
            else if (event.key === 'Escape') {
              event.preventDefault();
              onBack();
            }
          }}
        />
      </label>
      {problem.value !== '' && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      {unread !== undefined && (
        <p class="quiet why-off" id={reason}>
          {unread}
        </p>
      )}
      <div class="buttons">
        <button
          type="submit"
          class="button primary"
          disabled={busy || unread !== undefined}
          aria-describedby={unread === undefined ? undefined : reason}
        >
          Run with changes
        </button>
        <button type="button" class="button" disabled={busy} onClick={onBack}>
          Back
        </button>
      </div>
    </form>
  );
}
