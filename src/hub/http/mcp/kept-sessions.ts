import { z } from 'zod';
import type { Store } from '../../../store/contract.ts';

const TOMBSTONES_SETTING = 'mcp-ended-sessions';
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
      await this.#store.write([{ type: 'setting.put', key: TOMBSTONES_SETTING, value: JSON.stringify(ended) }]);
    };
    const added = this.#adding.then(append);
    this.#adding = added.catch(() => undefined);
    return added;
  }

  async #load(): Promise<string[]> {
    const text = await this.#store.setting(TOMBSTONES_SETTING);
    return text === undefined ? [] : (JSON.parse(text) as string[]);
  }
}

const SUBSCRIPTIONS_SETTING = 'mcp-subscriptions';
/** Few clients subscribe, and to little; the oldest subscriber is forgotten first. */
const MAX_SESSIONS = 200;
const MAX_URIS = 50;
const MAX_URI_LENGTH = 300;

/** By session nonce, in the order of the last change. */
const Kept = z.array(z.tuple([z.string(), z.array(z.string())]));
type Kept = z.infer<typeof Kept>;

/** What older clients subscribed to: a hub that reopens their sessions resubscribes them. */
export class KeptSubscriptions {
  readonly #store: Pick<Store, 'setting' | 'write'>;
  #changing: Promise<void> = Promise.resolve();

  constructor(store: Pick<Store, 'setting' | 'write'>) {
    this.#store = store;
  }

  async of(nonce: string): Promise<readonly string[]> {
    return urisOf(await this.#load(), nonce);
  }

  async change(nonce: string, uri: string, isWanted: boolean): Promise<void> {
    if (uri.length > MAX_URI_LENGTH) return;
    await this.#change(nonce, (uris) => [...uris.filter((other) => other !== uri), ...(isWanted ? [uri] : [])]);
  }

  async drop(nonce: string): Promise<void> {
    await this.#change(nonce, () => []);
  }

  /** One change at a time: each builds on the previous one. */
  #change(nonce: string, change: (uris: readonly string[]) => readonly string[]): Promise<void> {
    const changed = this.#changing.then(async () => {
      const kept = await this.#load();
      const before = urisOf(kept, nonce);
      const after = change(before).slice(-MAX_URIS);
      if (before.length === 0 && after.length === 0) return;
      const others = kept.filter(([other]) => other !== nonce);
      const value = [...others, ...(after.length === 0 ? [] : [[nonce, after]])].slice(-MAX_SESSIONS);
      await this.#store.write([{ type: 'setting.put', key: SUBSCRIPTIONS_SETTING, value: JSON.stringify(value) }]);
    });
    this.#changing = changed.catch(() => undefined);
    return changed;
  }

  async #load(): Promise<Kept> {
    const text = await this.#store.setting(SUBSCRIPTIONS_SETTING);
    return text === undefined ? [] : Kept.parse(JSON.parse(text));
  }
}

function urisOf(kept: Kept, nonce: string): readonly string[] {
  return kept.find(([other]) => other === nonce)?.[1] ?? [];
}
