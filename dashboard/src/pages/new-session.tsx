import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { DirectoriesAnswer, StartBody } from '../../../src/schema/api.ts';
import { api, newKey, wordsOf } from '../api/client.ts';
import { me } from '../api/sign-in.ts';
import { draft as kept, forgetDraft } from '../model/drafts.ts';
import { go, links } from '../model/router.ts';
import { directories, findSessions, loadModels } from '../model/sessions.ts';
import { Models } from '../parts/composer.tsx';
import { Dialog, DialogButtons } from '../parts/dialog.tsx';
import { Path, Visible } from '../parts/plain-text.tsx';
import { projectOf } from '../text/words.ts';
import { modeWords, PERMISSION_MODES, type PermissionMode } from '../text/permission-modes.ts';

interface Draft {
  readonly prompt: string;
  readonly cwd: string;
  readonly worktree: boolean;
  readonly base: string;
  readonly mode: PermissionMode;
  readonly model: string;
  readonly title: string;
  readonly allowed: string;
  readonly disallowed: string;
  readonly maxTurns: string;
  readonly budget: string;
  readonly checkpoints: boolean;
}

const BLANK: Draft = {
  prompt: '',
  cwd: '',
  worktree: false,
  base: '',
  mode: 'default',
  model: '',
  title: '',
  allowed: '',
  disallowed: '',
  maxTurns: '',
  budget: '',
  checkpoints: true,
};

export function NewSessionPage() {
  const draft = kept('new session', BLANK);
  const state = useSignal<{ busy: boolean; problem: string }>({ busy: false, problem: '' });
  const browsing = useSignal(false);
  const key = useRef(newKey());
  useEffect(() => {
    void findSessions('');
    loadModels();
  }, []);
  const set = (part: Partial<Draft>) => {
    draft.value = { ...draft.value, ...part };
    key.current = newKey();
  };
  const submit = async () => {
    if (state.value.busy) return;
    state.value = { busy: true, problem: '' };
    try {
      const { session } = await api.start(toBody(draft.value), key.current);
      forgetDraft('new session');
      go(links.session(session.sessionId));
    } catch (error) {
      state.value = { busy: false, problem: wordsOf(error) };
    }
  };
  const { prompt, cwd, worktree, base, mode, model, title, allowed, disallowed, maxTurns, budget, checkpoints } =
    draft.value;
  return (
    <main class="page" id="content" tabIndex={-1}>
      <div class="page-header">
        <h1>New session</h1>
      </div>
      <form
        class="new-session-form"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <label class="field">
          <span>Prompt</span>
          <textarea
            rows={6}
            required
            placeholder="What should Claude do?"
            value={prompt}
            onInput={({ currentTarget }) => set({ prompt: currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit();
            }}
          />
        </label>
        <label class="field">
          <span>Directory</span>
          <input
            type="text"
            class="mono"
            required
            list="directories"
            placeholder="~/project"
            spellcheck={false}
            value={cwd}
            onInput={({ currentTarget }) => set({ cwd: currentTarget.value })}
          />
          <datalist id="directories">
            {directories.value.map((directory) => (
              <option value={directory} />
            ))}
          </datalist>
        </label>
        <div class="recent">
          {directories.value.slice(0, RECENT).map((directory) => (
            <button type="button" class="chip" title={directory} onClick={() => set({ cwd: directory })}>
              <Visible text={projectOf({ cwd: directory })} />
            </button>
          ))}
          <button type="button" class="button small" onClick={() => (browsing.value = true)}>
            Browse…
          </button>
        </div>
        {browsing.value && (
          <Browser
            from={cwd.trim() === '' ? (me.value?.starts?.directories?.[0] ?? '~') : cwd.trim()}
            onChoose={(directory) => {
              browsing.value = false;
              set({ cwd: directory });
            }}
            onClose={() => (browsing.value = false)}
          />
        )}
        <label class="check">
          <input
            type="checkbox"
            checked={worktree}
            onChange={({ currentTarget }) => set({ worktree: currentTarget.checked })}
          />
          <span>
            In its own git worktree <span class="quiet">Your files stay as they are until you apply the work</span>
          </span>
        </label>
        {worktree && (
          <label class="field">
            <span>Branch or commit to start from</span>
            <input
              type="text"
              class="mono"
              placeholder="what is checked out"
              spellcheck={false}
              value={base}
              onInput={({ currentTarget }) => set({ base: currentTarget.value })}
            />
          </label>
        )}
        <label class="field">
          <span>Permission mode</span>
          <select value={mode} onChange={({ currentTarget }) => set({ mode: currentTarget.value as PermissionMode })}>
            {(me.value?.starts?.modes ?? PERMISSION_MODES).map((name) => (
              <option value={name}>{name}</option>
            ))}
          </select>
          <span>{modeWords(mode)}</span>
        </label>
        <details class="more">
          <summary>More options</summary>
          <label class="field">
            <span>Title</span>
            <input type="text" value={title} onInput={({ currentTarget }) => set({ title: currentTarget.value })} />
          </label>
          <label class="field">
            <span>Model</span>
            <input
              type="text"
              class="mono"
              placeholder="default"
              list="models"
              value={model}
              onInput={({ currentTarget }) => set({ model: currentTarget.value })}
            />
            <Models />
          </label>
          <label class="field">
            <span>Allowed without asking, one rule per line</span>
            <textarea
              class="mono"
              rows={2}
              placeholder={'Bash(npm test:*)'}
              value={allowed}
              onInput={({ currentTarget }) => set({ allowed: currentTarget.value })}
            />
          </label>
          <label class="field">
            <span>Never allowed, one rule per line</span>
            <textarea
              class="mono"
              rows={2}
              value={disallowed}
              onInput={({ currentTarget }) => set({ disallowed: currentTarget.value })}
            />
          </label>
          <label class="field">
            <span>Maximum turns</span>
            <input
              type="number"
              min={1}
              step={1}
              value={maxTurns}
              onInput={({ currentTarget }) => set({ maxTurns: currentTarget.value })}
            />
          </label>
          <label class="field">
            <span>Maximum cost in dollars</span>
            <input
              type="number"
              min={0.01}
              step={0.01}
              value={budget}
              onInput={({ currentTarget }) => set({ budget: currentTarget.value })}
            />
          </label>
          <label class="check">
            <input
              type="checkbox"
              checked={checkpoints}
              onChange={({ currentTarget }) => set({ checkpoints: currentTarget.checked })}
            />
            <span>Keep checkpoints, so that files can be rewound</span>
          </label>
        </details>
        <div class="buttons">
          <button type="submit" class="button primary" disabled={state.value.busy}>
            Start session
          </button>
          <span class={state.value.busy ? 'answer-state' : 'answer-state problem'} aria-live="polite">
            {state.value.busy ? 'Starting Claude Code…' : state.value.problem}
          </span>
        </div>
      </form>
    </main>
  );
}

const RECENT = 6;

interface BrowserProps {
  from: string;
  onChoose: (directory: string) => void;
  onClose: () => void;
}

/** Directories of the hub's machine, as far as sessions may work there. */
function Browser({ from, onChoose, onClose }: BrowserProps) {
  const at = useSignal(from);
  const listed = useSignal<DirectoriesAnswer | undefined>(undefined);
  const problem = useSignal('');
  const open = (path: string) => {
    at.value = path;
    problem.value = '';
    api.directories(path).then(
      (answer) => (listed.value = answer),
      (error: unknown) => (problem.value = wordsOf(error)),
    );
  };
  useEffect(() => open(from), []);
  const path = listed.value?.path ?? at.value;
  const parent = path.replace(/[\\/][^\\/]+[\\/]*$/, '');
  return (
    <Dialog title="Choose a directory" onClose={onClose}>
      <p>
        <Path path={path} />
      </p>
      {problem.value !== '' && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      <ul class="directories" aria-label="Directories">
        {parent !== path && (
          <li>
            <button type="button" class="link" onClick={() => open(parent === '' ? '/' : parent)}>
              ↑ Up
            </button>
          </li>
        )}
        {listed.value?.directories.map((directory) => (
          <li key={directory}>
            <button type="button" class="link" onClick={() => open(directory)}>
              <Visible text={projectOf({ cwd: directory })} />
            </button>
          </li>
        ))}
      </ul>
      <DialogButtons>
        <button type="button" class="button primary" onClick={() => onChoose(path)}>
          Use this directory
        </button>
      </DialogButtons>
    </Dialog>
  );
}

function toBody(draft: Draft): StartBody {
  const lines = (rules: string) =>
    rules
      .split('\n')
      .map((rule) => rule.trim())
      .filter((rule) => rule !== '');
  const text = (name: 'model' | 'title') => (draft[name].trim() === '' ? {} : { [name]: draft[name].trim() });
  return {
    prompt: draft.prompt,
    cwd: draft.cwd.trim(),
    ...(draft.mode !== 'default' && { permissionMode: draft.mode }),
    ...(draft.checkpoints && { enableFileCheckpointing: true }),
    ...(draft.worktree && {
      workspace: { type: 'worktree', ...(draft.base.trim() !== '' && { base: draft.base.trim() }) },
    }),
    ...text('model'),
    ...text('title'),
    ...(lines(draft.allowed).length > 0 && { allowedTools: lines(draft.allowed) }),
    ...(lines(draft.disallowed).length > 0 && { disallowedTools: lines(draft.disallowed) }),
    ...(draft.maxTurns !== '' && { maxTurns: Number(draft.maxTurns) }),
    ...(draft.budget !== '' && { maxBudgetUsd: Number(draft.budget) }),
  };
}
