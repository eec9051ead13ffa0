import type { Principal } from '../../engine/rules/principal.ts';

/** What was presented, so that its validity can be checked again. Never the secret itself. */
export type Credential =
  | { readonly kind: 'stored'; readonly id: string; readonly expiresAt: number | undefined }
  | { readonly kind: 'oauth'; readonly expiresAt: number };

export interface Authenticated {
  readonly principal: Principal;
  readonly credential: Credential;
}

/** Why access is denied. `scope`: the credential is valid, but grants no role here. */
export type Refused = { readonly refused: 'missing' | 'invalid' | 'scope' | 'unavailable' };
