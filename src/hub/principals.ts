import type { Principal } from '../engine/principal.ts';
import type { StoredToken } from '../schema/store.ts';

export type Role = StoredToken['role'];

/** A principal that came in over HTTP. */
export interface HubPrincipal {
  readonly id: string;
  readonly name: string;
  /** `person`: somebody who signed in with the link of `hub open`. */
  readonly kind: 'token' | 'oauth' | 'person' | 'anyone';
  readonly role: Role;
  /** A person sits in front of it, so that the answer to a form is a person's. */
  readonly attended: boolean;
}

export function asPrincipal(principal: HubPrincipal): Principal {
  return principal as unknown as Principal;
}
