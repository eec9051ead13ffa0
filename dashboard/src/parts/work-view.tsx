import { useSignal, type Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { ApplyMode } from '../../../src/schema/enums.ts';
import type { ApiSessionDetail, ApplyBody } from '../../../src/schema/api.ts';
import type { DiffAnswer } from '../../../src/schema/api-events.ts';
import { api, CallFailure, newKey, wordsOf } from '../api/client.ts';
import { draft } from '../model/drafts.ts';
import { go, links } from '../model/router.ts';
import type { SessionView } from '../model/session-view.ts';
import { plural } from '../text/words.ts';
import type { Comment } from './diff-view.tsx';
import { Dialog, DialogButtons } from './dialog.tsx';
import { Failed, Loading } from './empty.tsx';
import { focusMain } from './focus.ts';
import { Path, Visible } from './plain-text.tsx';
import { UnifiedDiff } from './rich.tsx';
import { Time } from './time.tsx';
import { WorkFacts } from './work-facts.tsx';

const PAGE_BYTES = 400_000;

type Loaded =
  | { readonly state: 'loading' }
  /** `of`: work that can be applied, or what was applied if there is nothing since. */
  | { readonly state: 'loaded'; readonly diff: DiffAnswer; readonly of: 'open' | 'applied' }
  | { readonly state: 'failed'; readonly why: string }
  /** The worktree was discarded, so that there is nothing left to compare. */
  | { readonly state: 'gone'; readonly why: string };

/** What the session changed, file by file, and what to do with it. */
export function WorkView({ shown, detail }: { shown: SessionView; detail: ApiSessionDetail }) {
  const loaded = useSignal<Loaded>({ state: 'loading' });
  /** Counts the comparisons that were asked for: only the answer to the newest one is shown. */
  const generation = useRef(0);
  const read = async () => {
    const diff = await api.diff(detail.sessionId, { maxBytes: PAGE_BYTES });
    if (!diff.applied || diff.filesChanged > 0) return { state: 'loaded', diff, of: 'open' } as const;
    const applied = await api.diff(detail.sessionId, { maxBytes: PAGE_BYTES, of: 'applied' });
    return { state: 'loaded', diff: applied, of: 'applied' } as const;
  };
  const load = () => {
    const mine = ++generation.current;
    read().then(
      (read) => {
        if (mine === generation.current) loaded.value = read;
      },
      (error: unknown) => {
        if (mine !== generation.current) return;
        const why = wordsOf(error);
        // The code alone says nothing of the kind: a worktree whose index cannot be read is refused with it too.
        const isGone = shown.isDiscarded.value && error instanceof CallFailure && error.code === 'INVALID_ARGUMENT';
        loaded.value = isGone ? { state: 'gone', why } : { state: 'failed', why };
      },
    );
  };
  const loadMore = () => {
    const before = loaded.value;
    if (before.state !== 'loaded' || before.diff.nextOffset === undefined) return;
    api.diff(detail.sessionId, { maxBytes: PAGE_BYTES, offset: before.diff.nextOffset, of: before.of }).then(
      ({ diff, nextOffset }) => {
        // It continues what was shown when it was asked for, not a comparison that has replaced that since.
        if (loaded.value !== before) return;
        const { nextOffset: _, ...whole } = before.diff;
        loaded.value = {
          state: 'loaded',
          of: before.of,
          diff: { ...whole, diff: before.diff.diff + diff, ...(nextOffset !== undefined && { nextOffset }) },
        };
      },
      (error: unknown) => {
        if (loaded.value === before) loaded.value = { state: 'failed', why: wordsOf(error) };
      },
    );
  };
  const comments = draft<readonly Comment[]>(`comments ${detail.sessionId}`, []);
  // A session that comes to rest has made its changes; another tab or person may apply or discard them.
  useEffect(load, [detail.sessionId, detail.state, shown.workActions.value, shown.isDiscarded.value]);
  const state = loaded.value;
  return (
    <div class="work">
      <Settle shown={shown} detail={detail} onDone={load} />
      {detail.result?.work && <WorkFacts work={detail.result.work} />}
      {state.state === 'loaded' && state.diff.applied && (
        <Applied applied={state.diff.applied} isAll={state.of === 'applied'} />
      )}
      {state.state === 'loading' ? (
        <Loading what="Comparing files…" />
      ) : state.state === 'gone' ? (
        <p class="quiet">{state.why}</p>
      ) : state.state === 'failed' ? (
        <Failed what="The changes could not be loaded" why={state.why} onRetry={load} />
      ) : state.diff.filesChanged === 0 && state.diff.diff === '' ? (
        <p class="quiet">No files have changed since the session started.</p>
      ) : (
        <>
          <p>
            {plural(state.diff.filesChanged, 'file')} changed, <span class="added">+{state.diff.insertions}</span>{' '}
            <span class="removed">−{state.diff.deletions}</span>{' '}
            <button type="button" class="button small" onClick={load}>
              Compare again
            </button>
          </p>
          <UnifiedDiff
            text={state.diff.diff}
            startOpen={state.diff.filesChanged <= 10}
            comments={
              detail.may.includes('message') && state.of === 'open'
                ? {
                    all: comments.value,
                    add: (comment) => (comments.value = [...comments.value, comment]),
                    remove: (comment) => (comments.value = comments.value.filter((one) => one !== comment)),
                  }
                : undefined
            }
          />
          {comments.value.length > 0 && <Comments sessionId={detail.sessionId} comments={comments} />}
          {state.diff.nextOffset !== undefined && (
            <button type="button" class="button" onClick={loadMore}>
              Show more files
            </button>
          )}
        </>
      )}
    </div>
  );
}

/** What was written beside lines, on its way to Claude as one message. */
function Comments({ sessionId, comments }: { sessionId: string; comments: Signal<readonly Comment[]> }) {
  const problem = useSignal('');
  const key = useRef(newKey());
  const send = () => {
    const lines = comments.value.map(({ place, code, words }) => `- ${place} (${code.trim()})\n  ${words}`);
    api
      .message(sessionId, { prompt: `Comments on your changes:\n${lines.join('\n')}`, whenBusy: 'queue' }, key.current)
      .then(
        () => {
          comments.value = [];
          go(links.session(sessionId));
        },
        (error: unknown) => (problem.value = wordsOf(error)),
      );
  };
  return (
    <div class="comments-bar">
      <span>{plural(comments.value.length, 'comment')}</span>
      <button type="button" class="button primary" onClick={send}>
        Send to Claude
      </button>
      <button type="button" class="link" onClick={() => ((comments.value = []), focusMain())}>
        Remove all
      </button>
      <span class="problem" aria-live="polite">
        {problem.value}
      </span>
    </div>
  );
}

function Applied({ applied, isAll }: { applied: NonNullable<DiffAnswer['applied']>; isAll: boolean }) {
  const { branch, commit, checkout, by, at } = applied;
  return (
    <p class="applied">
      <strong>Applied</strong>{' '}
      {branch === undefined ? (
        <>
          to the files in <Path path={checkout ?? ''} />
        </>
      ) : (
        <>
          to <span class="mono">{branch}</span>
          {commit !== undefined && (
            <>
              {' '}
              as <span class="mono">{commit.slice(0, 7)}</span>
            </>
          )}
        </>
      )}
      {by !== undefined && (
        <>
          {' '}
          by <Visible text={by} />
        </>
      )}{' '}
      <Time at={at} />
      {isAll ? '. Nothing has changed since:' : '. Changed since:'}
    </p>
  );
}

type Settling =
  | { readonly step: 'none' | 'busy' | 'confirm apply' }
  | { readonly step: 'told'; readonly words: string }
  | { readonly step: 'failed'; readonly why: string }
  | { readonly step: 'confirm'; readonly force: boolean; readonly why: string };

interface SettleProps {
  shown: SessionView;
  detail: ApiSessionDetail;
  onDone: () => void;
}

function Settle({ shown, detail, onDone }: SettleProps) {
  const mode = useSignal<NonNullable<ApplyBody['mode']>>('merge');
  const state = useSignal<Settling>({ step: 'none' });
  const key = useRef(newKey());
  const { may, sessionId, workspace } = detail;
  const isGone = shown.isDiscarded.value;
  // What was told of the work is not so any more once there is more of it, or a person has decided.
  useEffect(() => {
    if (detail.state === 'waiting') return;
    if (state.peek().step === 'told' || state.peek().step === 'failed') state.value = { step: 'none' };
  }, [detail.state]);
  if (workspace?.type !== 'worktree') return null;
  const end = (next: Settling) => {
    key.current = newKey();
    state.value = next;
    void shown.refresh();
    onDone();
  };
  const apply = () => {
    state.value = { step: 'busy' };
    api.apply(sessionId, { mode: mode.value }, key.current).then(
      (answer) =>
        end({
          step: 'told',
          words:
            answer.outcome === 'applied'
              ? `Applied${answer.branch === undefined ? '' : ` to ${answer.branch}`}${answer.commit === undefined ? '' : ` as ${answer.commit.slice(0, 10)}`}.`
              : answer.outcome === 'nothing_to_apply'
                ? 'There is nothing to apply.'
                : 'A person must approve it first: it is in the inbox.',
        }),
      (error: unknown) => end({ step: 'failed', why: wordsOf(error) }),
    );
  };
  const discard = (force: boolean) => {
    state.value = { step: 'busy' };
    api.discard(sessionId, { force }, key.current).then(
      (answer) => {
        if (answer.outcome === 'discarded') shown.isDiscarded.value = true;
        end({
          step: 'told',
          words:
            answer.outcome === 'discarded'
              ? `Discarded.${answer.keptBranches.length > 0 ? ` Kept: ${answer.keptBranches.join(', ')}.` : ''}`
              : 'A person must approve it first: it is in the inbox.',
        });
      },
      (error: unknown) => {
        const unmerged = !force && error instanceof CallFailure && error.status !== 403 && error.code !== 'OFFLINE';
        end(unmerged ? { step: 'confirm', force: true, why: wordsOf(error) } : { step: 'failed', why: wordsOf(error) });
      },
    );
  };
  const told = state.value;
  const busy = told.step === 'busy';
  return (
    <section class="settle card" aria-label="Worktree">
      <p>
        Branch{' '}
        <span class="mono">
          <Visible text={workspace.branch ?? ''} />
        </span>{' '}
        from{' '}
        <span class="mono">
          <Visible text={workspace.base ?? ''} />
        </span>
        {workspace.state !== undefined && ` · ${workspace.state}`}
      </p>
      <div class="buttons">
        {may.includes('apply') && !isGone && (
          <>
            <select
              aria-label="How to apply"
              value={mode.value}
              disabled={busy}
              onChange={({ currentTarget }) => (mode.value = currentTarget.value as ApplyMode)}
            >
              <option value="merge">Merge commit</option>
              <option value="squash">One commit</option>
              <option value="patch">Changes only, no commit</option>
            </select>
            <button
              type="button"
              class="button primary"
              disabled={busy}
              onClick={() => (state.value = { step: 'confirm apply' })}
            >
              Apply
            </button>
          </>
        )}
        {may.includes('discard') && !isGone && (
          <button
            type="button"
            class="button danger"
            disabled={busy}
            onClick={() => (state.value = { step: 'confirm', force: false, why: '' })}
          >
            Discard
          </button>
        )}
        <span class={told.step === 'failed' ? 'answer-state problem' : 'answer-state'} aria-live="polite">
          {told.step === 'told' ? told.words : told.step === 'failed' ? told.why : busy ? 'Working on it…' : ''}
        </span>
      </div>
      {/* Where it was applied is said below. */}
      {detail.lastAction && detail.lastAction.outcome !== 'applied' && (
        <p class="quiet">
          <Visible text={detail.lastAction.message} />
        </p>
      )}
      {told.step === 'confirm apply' && (
        <Dialog
          title="Apply this work?"
          onClose={() => state.value.step === 'confirm apply' && (state.value = { step: 'none' })}
        >
          <p>
            {mode.value === 'patch'
              ? 'Its changes are made to the files of the checkout that the session was started from, uncommitted.'
              : `Its changes are committed to ${workspace.base ?? 'the base'}, ${mode.value === 'squash' ? 'as one commit' : 'with a merge commit where one is needed'}. A checkout of that branch is updated too.`}
          </p>
          <DialogButtons leave="Not now" isQuestion>
            <button type="button" class="button primary" onClick={apply}>
              Yes, apply it
            </button>
          </DialogButtons>
        </Dialog>
      )}
      {told.step === 'confirm' && (
        <Dialog
          title="Discard this worktree?"
          onClose={() => state.value.step === 'confirm' && (state.value = { step: 'none' })}
        >
          <p>
            {told.force ? told.why : 'The directory of the session is removed. Unmerged work prevents this at first.'}
          </p>
          {told.force && <p>If you continue, its branch is kept, so nothing is lost.</p>}
          <DialogButtons leave="Keep it" isQuestion>
            <button type="button" class="button danger" onClick={() => discard(told.force)}>
              {told.force ? 'Discard anyway' : 'Yes, discard it'}
            </button>
          </DialogButtons>
        </Dialog>
      )}
    </section>
  );
}
