import { signal } from '@preact/signals';
import type { SignInBody } from '../../../src/schema/api.ts';
import { api, CallFailure, wordsOf } from '../api/client.ts';
import { signedIn, signedOut, takeCode } from '../api/sign-in.ts';
import { draftsOf } from './drafts.ts';
import { forgetPush } from './push.ts';

/** The exchange of a code or a token for a sign-in. */
export const exchange = signal<
  { readonly state: 'idle' | 'under way' } | { readonly state: 'failed'; readonly why: string }
>({
  state: 'idle',
});

/** Takes the code out of the address, even if a link is opened in a tab that already shows the page. */
export function signInByLink(): void {
  const take = () => {
    const code = takeCode();
    if (code !== undefined) void signInWith(code);
  };
  addEventListener('hashchange', take);
  take();
}

export async function signInWith(credential: SignInBody): Promise<void> {
  exchange.value = { state: 'under way' };
  try {
    signedIn(await api.exchange(credential));
    exchange.value = { state: 'idle' };
  } catch (error) {
    exchange.value = { state: 'failed', why: refusalWords(error, 'code' in credential) };
  }
}

export async function signOut(): Promise<void> {
  draftsOf(undefined);
  await forgetPush();
  try {
    await api.signOut();
    signedOut();
  } catch (error) {
    const unheard = error instanceof CallFailure && error.mayPass;
    signedOut(
      unheard
        ? 'You are signed out here, but the hub could not be reached: the sign-in stays valid until it expires.'
        : undefined,
    );
  }
}

function refusalWords(error: unknown, byLink: boolean): string {
  if (!(error instanceof CallFailure)) return wordsOf(error);
  if (error.code === 'OFFLINE' || error.code === 'UNAVAILABLE') return error.message;
  if (error.code === 'TOO_MANY_REQUESTS') return 'Too many attempts. Wait a little and try again.';
  return byLink
    ? 'This link is no longer valid: it can be used once, within two minutes. Run `claude-code-mcp hub open` for a new one.'
    : 'The hub does not accept this token: it is unknown, expired or revoked.';
}
