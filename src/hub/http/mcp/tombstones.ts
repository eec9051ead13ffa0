import type { Store } from '../../../store/contract.ts';

const SETTING = 'mcp-ended-sessions';
/** Few clients end their sessions; beyond this many, the oldest are forgotten. */
const MAX_KEPT = 500;

/** Sessions that their clients ended: they are not reopened, not even by the next hub. */
export class Tombstones {
  readonly #store: Pick<Store, 'setting' | 'write'>;
  #adding: Promise<void> = Promise.resolve();

  constructor(store: Pick<Store, 'setting' | 'write'>) {
    this.#store = store;
  }

  async has(nonce: string): Promise<boolean> {
    return (await this.#load()).includes(nonce);
  }

  add(nonce: string): Promise<void> {
    const append = async (): Promise<void> => {
      const ended = [...(await this.#load()), nonce].slice(-MAX_KEPT);
      await this.#store.write([{ type: 'setting.put', key: SETTING, value: JSON.stringify(ended) }]);
    };
    const added = this.#adding.then(append);
    this.#adding = added.catch(() => undefined);
    return added;
  }

  async #load(): Promise<string[]> {
    const text = await this.#store.setting(SETTING);
    return text === undefined ? [] : (JSON.parse(text) as string[]);
  }
}
