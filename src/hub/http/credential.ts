import type { Principal } from '../../engine/principal.ts';

/** What was shown, so that it can be asked again whether it still holds. Never the secret itself. */
export type Credential =
  | { readonly kind: 'stored'; readonly id: string; readonly expiresAt: number | undefined }
  | { readonly kind: 'oauth'; readonly expiresAt: number };

export interface Authenticated {
  readonly principal: Principal;
  readonly credential: Credential;
}

/** Why nobody comes in. `scope`: the credential is good, but gives no role here. */
export type Refused = { readonly refused: 'missing' | 'invalid' | 'scope' | 'unavailable' };
