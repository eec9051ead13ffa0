import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { encode } from 'uqr';
import { api, wordsOf } from '../api/client.ts';
import { Dialog, DialogButtons } from './dialog.tsx';

/** Signs another device in: its camera reads the link. */
export function PhoneDialog({ onClose }: { onClose: () => void }) {
  const state = useSignal<{ code?: string; why?: string }>({});
  const stay = useSignal(false);
  const renew = () => {
    state.value = {};
    api.signInCode().then(
      ({ code }) => (state.value = { code }),
      (error: unknown) => (state.value = { why: wordsOf(error) }),
    );
  };
  useEffect(renew, []);
  const { code, why } = state.value;
  const link =
    code === undefined ? '' : `${location.origin}${location.pathname}#code=${code}${stay.value ? '&stay' : ''}`;
  return (
    <Dialog title="Sign in on a phone" onClose={onClose}>
      {why !== undefined && (
        <p class="problem" role="alert">
          {why}
        </p>
      )}
      {code !== undefined && (
        <>
          <QrCode text={link} />
          <p>Scan it within two minutes; it works once, and signs in as you.</p>
          {/^(localhost|127\.|\[::1\])/.test(location.host) && (
            <p class="quiet">
              This page is open at an address of this machine. A phone needs one that it can reach: see “Listening” in
              the documentation.
            </p>
          )}
          <label class="check">
            <input
              type="checkbox"
              checked={stay.value}
              onChange={({ currentTarget }) => (stay.value = currentTarget.checked)}
            />
            <span>
              Stay signed in for 30 days <span class="quiet">Only on a device that is yours</span>
            </span>
          </label>
        </>
      )}
      <DialogButtons>
        <button type="button" class="button" onClick={renew}>
          New code
        </button>
      </DialogButtons>
    </Dialog>
  );
}

function QrCode({ text }: { text: string }) {
  const { data, size } = encode(text, { border: 2 });
  const dark = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label="Sign-in link as a QR code">
      <rect width={size} height={size} fill="#fff" />
      <path d={dark.join('')} fill="#000" shape-rendering="crispEdges" />
    </svg>
  );
}
