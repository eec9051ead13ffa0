import { useSignal } from '@preact/signals';
import type { RewindAnswer } from '../../../src/schema/api.ts';
import { api, wordsOf } from '../api/client.ts';
import { plural } from '../text/words.ts';
import { Dialog, DialogButtons } from './dialog.tsx';
import { Visible } from './plain-text.tsx';

type State =
  | { readonly step: 'closed' | 'looking' }
  | { readonly step: 'preview' | 'done'; readonly answer: RewindAnswer }
  | { readonly step: 'failed'; readonly why: string };

/** Restores the session's files, after a preview. */
export function RewindButton({ sessionId, messageId }: { sessionId: string; messageId: string }) {
  const state = useSignal<State>({ step: 'closed' });
  const run = (dryRun: boolean) => {
    if (dryRun) state.value = { step: 'looking' };
    api.rewind(sessionId, { toUserMessage: messageId, dryRun }).then(
      (answer) => (state.value = { step: dryRun ? 'preview' : 'done', answer }),
      (error: unknown) => (state.value = { step: 'failed', why: wordsOf(error) }),
    );
  };
  const shown = state.value;
  return (
    <>
      <button type="button" class="link rewind" onClick={() => run(true)}>
        Rewind files to here
      </button>
      {shown.step !== 'closed' && (
        <Dialog title="Rewind files" onClose={() => (state.value = { step: 'closed' })}>
          {shown.step === 'looking' && <p aria-live="polite">Checking what would be restored…</p>}
          {shown.step === 'failed' && (
            <p class="problem" role="alert">
              {shown.why}
            </p>
          )}
          {(shown.step === 'preview' || shown.step === 'done') && <Answer answer={shown.answer} />}
          <DialogButtons>
            {shown.step === 'preview' && shown.answer.outcome === 'done' && shown.answer.files.length > 0 && (
              <button type="button" class="button danger" onClick={() => run(false)}>
                Restore them
              </button>
            )}
          </DialogButtons>
        </Dialog>
      )}
    </>
  );
}

function Answer({ answer }: { answer: RewindAnswer }) {
  if (answer.outcome === 'awaits_person') return <p>A person must approve it first: it is in the inbox.</p>;
  const { dryRun, files, left, lines } = answer;
  return (
    <>
      <p>
        {files.length === 0
          ? 'Nothing to restore.'
          : `${plural(files.length, 'file')} ${dryRun ? 'would be restored' : 'restored'}${lines ? `: +${lines.insertions} −${lines.deletions}` : ''}`}
      </p>
      <ul class="mono">
        {files.map((file) => (
          <li>
            <Visible text={file} />
          </li>
        ))}
      </ul>
      {left.length > 0 && (
        <>
          <p>Left unchanged:</p>
          <ul>
            {left.map(({ path, why }) => (
              <li>
                <span class="mono">
                  <Visible text={path} />
                </span>
                : {why}
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}
