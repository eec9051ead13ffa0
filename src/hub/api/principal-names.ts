import type { Store } from '../../store/contract.ts';

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
    // Principals are named by where they come from: `token:<id>`, `person:<id>`.
    const name = (await this.#store.token(principalId.replace(/^[a-z]+:/, '')))?.name ?? principalId;
    if (this.#known.size >= MAX_REMEMBERED) this.#known.clear();
    this.#known.set(principalId, name);
    return name;
  }
}
