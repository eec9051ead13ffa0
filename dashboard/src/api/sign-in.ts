import { signal } from '@preact/signals';
import type { ApiMe, ApiPrincipal, SignInAnswer } from '../../../src/schema/api.ts';

/** What the exchange returned. Storage is kept per origin, so a page on another port of this host cannot read it. */
interface Kept {
  readonly key: string;
  readonly expiresAt: string;
  readonly principal: ApiPrincipal;
}

export type SignIn = { readonly state: 'out'; readonly why?: string } | ({ readonly state: 'in' } & Kept);

const STORED_AS = 'claude-code-hub.sign-in';

export const signIn = signal<SignIn>(stored());
/** Who this is and what they may do; known after the first call. */
export const me = signal<ApiMe | undefined>(undefined);

export function signedIn({ key, expiresAt, principal }: SignInAnswer): void {
  const kept: Kept = { key, expiresAt, principal };
  write(JSON.stringify(kept));
  signIn.value = { state: 'in', ...kept };
}

export function signedOut(why?: string): void {
  write(undefined);
  me.value = undefined;
  signIn.value = { state: 'out', ...(why !== undefined && { why }) };
}

/** The code of a sign-in link. It is removed from the address at once, so that it does not end up in the history. */
export function takeCode(): { code: string; stay?: true } | undefined {
  const [, code, stay] = /^#code=([^&]+)(&stay)?$/.exec(location.hash) ?? [];
  if (code === undefined) return undefined;
  history.replaceState(null, '', `${location.pathname}${location.search}`);
  dispatchEvent(new HashChangeEvent('hashchange'));
  return { code: decodeURIComponent(code), ...(stay !== undefined && { stay: true }) };
}

/** Another tab signed in or out. */
export function followOtherTabs(): void {
  addEventListener('storage', ({ key }) => {
    if (key !== STORED_AS) return;
    const next = stored();
    const now = signIn.value;
    if (next.state === 'in' && (now.state === 'out' || now.key !== next.key)) signIn.value = next;
    if (next.state === 'out' && now.state === 'in') signedOut('You signed out in another tab.');
  });
}

function stored(): SignIn {
  try {
    const kept = JSON.parse(localStorage.getItem(STORED_AS) ?? 'null') as Kept | null;
    if (kept === null) return { state: 'out' };
    if (Date.parse(kept.expiresAt) <= Date.now()) return { state: 'out', why: 'Your sign-in has expired.' };
    return { state: 'in', ...kept };
  } catch {
    return { state: 'out' };
  }
}

// Storage may be blocked: then the sign-in lasts as long as the page.
function write(text: string | undefined): void {
  try {
    if (text === undefined) localStorage.removeItem(STORED_AS);
    else localStorage.setItem(STORED_AS, text);
  } catch {
    return;
  }
}
