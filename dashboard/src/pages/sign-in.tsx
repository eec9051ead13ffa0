import { useSignal } from '@preact/signals';
import { signIn } from '../api/sign-in.ts';
import { exchange, signInWith } from '../model/sign-in-flow.ts';

export function SignInPage() {
  const token = useSignal('');
  const stay = useSignal(false);
  const state = exchange.value;
  const why = state.state === 'failed' ? state.why : signIn.value.state === 'out' ? signIn.value.why : undefined;
  const busy = state.state === 'under way';
  return (
    <main class="sign-in">
      <h1>Claude Code hub</h1>
      {why !== undefined && (
        <p class="problem" role="alert">
          {why}
        </p>
      )}
      {!busy && signIn.value.state === 'in' && (
        <button type="button" class="button" onClick={() => (exchange.value = { state: 'idle' })}>
          Continue as {signIn.value.principal.name}
        </button>
      )}
      {busy ? (
        <p aria-live="polite">Signing in…</p>
      ) : (
        <>
          <p>
            Run <code>claude-code-mcp hub open</code> on the hub’s machine and open the link it prints, or sign in with
            a token.
          </p>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              if (token.value.trim() !== '') void signInWith({ token: token.value.trim(), stay: stay.value });
            }}
          >
            <label class="field">
              <span>Token</span>
              <input
                type="password"
                autocomplete="current-password"
                class="mono"
                required
                value={token.value}
                onInput={({ currentTarget }) => (token.value = currentTarget.value)}
              />
            </label>
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
            <button type="submit" class="button primary">
              Sign in
            </button>
          </form>
        </>
      )}
    </main>
  );
}
