import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import type { ApiSessionDetail, MessageBody, StopAnswer } from '../../../src/schema/api.ts';
import { STATES_AT_WORK } from '../../../src/schema/enums.ts';
import { api, newKey, wordsOf } from '../api/client.ts';
import { me } from '../api/sign-in.ts';
import { draft } from '../model/drafts.ts';
import { go, links } from '../model/router.ts';
import type { SessionView } from '../model/session-view.ts';
import { loadModels, models } from '../model/sessions.ts';
import { PERMISSION_MODES, type PermissionMode } from '../text/permission-modes.ts';
import { oneLine } from '../text/words.ts';
import { focusIt, focusMain } from './focus.ts';
import { Visible } from './plain-text.tsx';
import { Time } from './time.tsx';

const MAX_ROWS = 10;

/** A message to the session or to a fork of it. */
export function Composer({ shown, detail }: { shown: SessionView; detail: ApiSessionDetail }) {
  const words = draft(`message ${detail.sessionId}`, '');
  const model = useSignal('');
  const mode = useSignal<PermissionMode | ''>('');
  const state = useSignal<{ busy: boolean; problem: string; hint: string }>({ busy: false, problem: '', hint: '' });
  const field = useRef<HTMLTextAreaElement>(null);
  /** The same message keeps its key: sent again after a lost connection, it arrives once. */
  const key = useRef(newKey());
  const { may, sessionId, state: sessionState } = detail;
  if (!may.includes('message') && !may.includes('fork')) return null;
  if (sessionState === 'cancelled' && !may.includes('fork')) return null;
  const works = (STATES_AT_WORK as readonly string[]).includes(sessionState);

  const submit = async (how: 'message' | 'fork') => {
    if (state.value.busy) return;
    if (words.value.trim() === '') {
      const hint = how === 'fork' ? 'Write what the fork should do first, then press Fork.' : '';
      state.value = { busy: false, problem: '', hint };
      field.current?.focus();
      return;
    }
    state.value = { busy: true, problem: '', hint: '' };
    const turn: Pick<MessageBody, 'model' | 'permissionMode'> = {
      ...(model.value.trim() !== '' && { model: model.value.trim() }),
      ...(mode.value !== '' && { permissionMode: mode.value }),
    };
    try {
      const { session, warnings = [] } =
        how === 'fork'
          ? await api.fork(sessionId, { prompt: words.value, ...turn }, key.current)
          : await api.message(sessionId, { prompt: words.value, whenBusy: 'queue', ...turn }, key.current);
      words.value = '';
      model.value = '';
      mode.value = '';
      key.current = newKey();
      state.value = { busy: false, problem: '', hint: warnings.join(' ') };
      if (how === 'fork') go(links.session(session.sessionId));
      else void shown.refresh();
    } catch (error) {
      state.value = { busy: false, problem: wordsOf(error), hint: '' };
    }
  };

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void submit('message');
      }}
    >
      <Queue shown={shown} detail={detail} />
      <label class="field">
        <span class="visually-hidden">Message</span>
        <textarea
          ref={field}
          rows={Math.min(MAX_ROWS, words.value.split('\n').length)}
          placeholder={works ? 'Message, queued while it works' : 'Message to Claude'}
          value={words.value}
          data-slash
          onInput={({ currentTarget }) => {
            words.value = currentTarget.value;
            key.current = newKey();
          }}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void submit('message');
          }}
        />
      </label>
      {may.includes('message') && (
        <details class="turn-options" onToggle={loadModels}>
          <summary>
            {[
              mode.value === '' ? (detail.permissionMode ?? 'default mode') : mode.value,
              model.value.trim() || detail.model,
            ]
              .filter((part) => part !== undefined && part !== '')
              .join(' · ')}
          </summary>
          <div class="buttons">
            <select
              aria-label="Permission mode"
              value={mode.value}
              onChange={({ currentTarget }) => {
                mode.value = currentTarget.value as PermissionMode | '';
                key.current = newKey();
              }}
            >
              <option value="">Current mode</option>
              {(me.value?.starts?.modes ?? PERMISSION_MODES).map((name) => (
                <option value={name}>{name}</option>
              ))}
            </select>
            <input
              type="text"
              class="model"
              aria-label="Model"
              list="models"
              placeholder="Current model"
              value={model.value}
              onInput={({ currentTarget }) => {
                model.value = currentTarget.value;
                key.current = newKey();
              }}
            />
            <Models />
          </div>
        </details>
      )}
      <div class="buttons">
        <span class={state.value.problem === '' ? 'answer-state' : 'answer-state problem'} aria-live="polite">
          {state.value.problem === '' ? state.value.hint : state.value.problem}
        </span>
        {may.includes('fork') && (
          <button
            type="button"
            class="button"
            disabled={state.value.busy}
            title="Sends the message to a copy of this conversation; this one is unchanged"
            onClick={() => void submit('fork')}
          >
            Fork
          </button>
        )}
        {may.includes('message') && (
          <button type="submit" class="button primary" disabled={state.value.busy || sessionState === 'cancelled'}>
            Send
          </button>
        )}
      </div>
    </form>
  );
}

/** For a field with `list="models"`. */
export function Models() {
  return (
    <datalist id="models">
      {models.value.map(({ value, name, description }) => (
        <option value={value} label={[name, description].filter((words) => words !== '').join(': ')} />
      ))}
    </datalist>
  );
}

type QueuedMessage = ApiSessionDetail['queued'][number];

/** What Claude has not taken up yet: it can still be changed or taken back. */
function Queue({ shown, detail: { sessionId, queued, may } }: { shown: SessionView; detail: ApiSessionDetail }) {
  const editing = useSignal<{ readonly id: string; readonly words: string } | undefined>(undefined);
  const state = useSignal<{ readonly busy: boolean; readonly problem: string }>({ busy: false, problem: '' });
  const leave = () => {
    editing.value = undefined;
    focusMain();
  };
  const run = async (act: () => Promise<StopAnswer>) => {
    if (state.value.busy) return;
    state.value = { busy: true, problem: '' };
    try {
      const { done } = await act();
      state.value = { busy: false, problem: done ? '' : 'Too late: Claude has already started on this message.' };
      if (done) leave();
    } catch (error) {
      state.value = { busy: false, problem: wordsOf(error) };
    }
    await shown.refresh();
  };
  const save = ({ id, words }: { id: string; words: string }) => {
    if (words.trim() !== '') void run(() => api.changeMessage(sessionId, id, words));
  };
  const { problem, busy } = state.value;
  const edited = editing.value;
  // Claude may take a message up while it is being edited: the words stay. Those being saved come back under a new id.
  const rows = edited && !busy && !queued.some(({ id }) => id === edited.id) ? [...queued, toRow(edited)] : queued;
  if (rows.length === 0 && problem === '') return null;
  return (
    <div class="queue">
      {problem !== '' && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {rows.length > 0 && (
        <ul class="queued" aria-label="Queued messages">
          {rows.map(({ id, at, text }) => (
            <li key={id}>
              {edited?.id === id ? (
                <>
                  <label class="field">
                    <span class="visually-hidden">Queued message</span>
                    <textarea
                      ref={focusIt}
                      rows={Math.min(MAX_ROWS, edited.words.split('\n').length)}
                      value={edited.words}
                      onInput={({ currentTarget }) => (editing.value = { id, words: currentTarget.value })}
                      onKeyDown={(event) => {
                        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) save(edited);
                        else if (event.key === 'Escape') leave();
                      }}
                    />
                  </label>
                  <div class="buttons">
                    <button type="button" class="button small primary" disabled={busy} onClick={() => save(edited)}>
                      Save
                    </button>
                    <button type="button" class="button small" onClick={leave}>
                      Leave unchanged
                    </button>
                  </div>
                </>
              ) : (
                <>
                  <span class="queued-text">
                    <span class="tag">Queued</span> <Visible text={oneLine(text)} />{' '}
                    <span class="quiet">
                      <Time at={at} />
                    </span>
                  </span>
                  {may.includes('message') && (
                    <span class="buttons">
                      <button
                        type="button"
                        class="link"
                        disabled={busy}
                        onClick={() => (editing.value = { id, words: text })}
                      >
                        Edit
                      </button>
                      <button
                        type="button"
                        class="link"
                        disabled={busy}
                        onClick={() => void run(() => api.withdrawMessage(sessionId, id))}
                      >
                        Remove
                      </button>
                    </span>
                  )}
                </>
              )}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function toRow({ id, words }: { readonly id: string; readonly words: string }): QueuedMessage {
  return { id, at: '', text: words };
}
