import { browsers, pushProblem, pushShown, pushState, sendTest, turnOff, turnOn } from '../model/push.ts';
import { Dialog, DialogButtons } from './dialog.tsx';
import { Time } from './time.tsx';

/** Which browsers are notified when something waits, this one first of all. */
export function Notifications() {
  if (!pushShown.value) return null;
  const own = pushState.value;
  const others = browsers.value.filter(({ id }) => own.state !== 'on' || id !== own.id);
  return (
    <Dialog title="Notifications" onClose={() => (pushShown.value = false)}>
      {own.state === 'impossible' ? (
        <p>{own.why}</p>
      ) : own.state === 'loading' ? (
        <p class="quiet">Loading…</p>
      ) : own.state === 'off' ? (
        <>
          <p>
            This browser can notify you when a request waits for an answer, even while the page is closed. A
            notification names the tool, never its input.
          </p>
          <div class="buttons">
            <button type="button" class="button primary" onClick={() => void turnOn()}>
              Turn on
            </button>
          </div>
        </>
      ) : (
        <>
          <p>This browser is notified when a request waits for an answer.</p>
          <div class="buttons">
            <button type="button" class="button" onClick={() => void sendTest(own.id)}>
              Send a test
            </button>
            <button type="button" class="button" onClick={() => void turnOff(own.id)}>
              Turn off
            </button>
          </div>
        </>
      )}
      <p class="problem" aria-live="polite">
        {pushProblem.value}
      </p>
      {others.length > 0 && (
        <>
          <h3>Your other browsers</h3>
          <ul class="browsers">
            {others.map(({ id, name, service, createdAt }) => (
              <li key={id}>
                <span>
                  {name ?? service}{' '}
                  <span class="quiet">
                    since <Time at={createdAt} />
                  </span>
                </span>
                <button type="button" class="button small" onClick={() => void turnOff(id)}>
                  Remove
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
      <DialogButtons />
    </Dialog>
  );
}
