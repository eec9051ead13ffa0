import type { Store } from '../../store/contract.ts';
import { shownName } from '../auth/tokens.ts';

const MAX_REMEMBERED = 5_000;

/** Display name of a principal: a token's name, otherwise the id. A token's name never changes. */
export class PrincipalNames {
  readonly #store: Pick<Store, 'token'>;
  readonly #known = new Map<string, string>();

  constructor(store: Pick<Store, 'token'>) {
    this.#store = store;
  }

  async of(principalId: string): Promise<string> {
    // The name of a sign-in by `hub open`.
    if (principalId === 'person') return 'this user';
    const known = this.#known.get(principalId);
    if (known !== undefined) return known;
    // Only the holder of a token has the token's name: a subject of an issuer can have the id of one as its name.
    const [, tokenId] = /^(?:token:)?(t_\w+)$/.exec(principalId) ?? [];
    const token = tokenId === undefined ? undefined : await this.#store.token(tokenId);
    const name = token ? shownName(token.id, token.name) : principalId;
    if (this.#known.size >= MAX_REMEMBERED) this.#known.clear();
    this.#known.set(principalId, name);
    return name;
  }
}
