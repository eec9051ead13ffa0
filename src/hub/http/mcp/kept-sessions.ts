import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import type { Store } from '../../../store/contract.ts';
import { SerialQueue } from '../../../store/serial-queue.ts';
import { TOOLSET_NAMES } from '../../../schema/setting-choices.ts';

const TOMBSTONES_SETTING = 'mcp-ended-sessions';
/** Few clients end their sessions; beyond this many, the oldest are forgotten. */
const MAX_KEPT = 500;

/** Sessions that their clients ended: they are not reopened, not even by the next hub. */
export class Tombstones {
  readonly #store: Pick<Store, 'setting' | 'write'>;
  readonly #adding = new SerialQueue();

  constructor(store: Pick<Store, 'setting' | 'write'>) {
    this.#store = store;
  }

  async has(nonce: string): Promise<boolean> {
    return (await this.#load()).includes(nonce);
  }

  add(nonce: string): Promise<void> {
    return this.#adding.run(async () => {
      const ended = [...(await this.#load()), nonce].slice(-MAX_KEPT);
      await this.#store.write([{ type: 'setting.put', key: TOMBSTONES_SETTING, value: JSON.stringify(ended) }]);
    });
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
  readonly #changing = new SerialQueue();

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
    return this.#changing.run(async () => {
      const kept = await this.#load();
      const before = urisOf(kept, nonce);
      const after = change(before).slice(-MAX_URIS);
      if (before.length === 0 && after.length === 0) return;
      const others = kept.filter(([other]) => other !== nonce);
      const value = [...others, ...(after.length === 0 ? [] : [[nonce, after]])].slice(-MAX_SESSIONS);
      await this.#store.write([{ type: 'setting.put', key: SUBSCRIPTIONS_SETTING, value: JSON.stringify(value) }]);
    });
  }

  async #load(): Promise<Kept> {
    const text = await this.#store.setting(SUBSCRIPTIONS_SETTING);
    return text === undefined ? [] : Kept.parse(JSON.parse(text));
  }
}

function urisOf(kept: Kept, nonce: string): readonly string[] {
  return kept.find(([other]) => other === nonce)?.[1] ?? [];
}

/**
 * What is needed to reopen an older client's session after the hub has forgotten it. It is carried in the signed
 * session id, so there is nothing to store and nothing to expire.
 */
const Contents = z.object({
  principal: z.string(),
  toolset: z.enum(TOOLSET_NAMES),
  protocolVersion: z.string(),
  capabilities: z.record(z.string(), z.unknown()),
  clientInfo: z.object({ name: z.string(), version: z.string() }),
  nonce: z.string(),
});
export type SessionContents = z.infer<typeof Contents>;

/** Headers must carry it with every request. */
const MAX_NAME_LENGTH = 100;
const MAX_CAPABILITIES_LENGTH = 1024;
const MAX_ID_LENGTH = 4096;

/** What the server looks at; anything else that a client declares would only make the id longer. */
const KEPT_CAPABILITIES = ['elicitation', 'roots', 'sampling'];

export class SessionIds {
  readonly #key: Buffer;

  /** Shared by all hubs of one store, so that any of them can reopen any session. */
  constructor(key: string) {
    this.#key = Buffer.from(key, 'base64url');
  }

  mint(contents: Omit<SessionContents, 'nonce'>): { readonly id: string; readonly nonce: string } {
    const nonce = randomBytes(12).toString('base64url');
    const payload = Buffer.from(JSON.stringify({ ...contents, nonce })).toString('base64url');
    return { id: `${payload}.${this.#sign(payload)}`, nonce };
  }

  /** Undefined if this hub did not sign it. */
  read(id: string): SessionContents | undefined {
    const [payload, signature, ...more] = id.length > MAX_ID_LENGTH ? [] : id.split('.');
    if (payload === undefined || signature === undefined || more.length > 0) return undefined;
    const [given, own] = [Buffer.from(signature), Buffer.from(this.#sign(payload))];
    if (given.length !== own.length || !timingSafeEqual(given, own)) return undefined;
    try {
      return Contents.parse(JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')));
    } catch {
      return undefined;
    }
  }

  #sign(payload: string): string {
    return createHmac('sha256', this.#key).update(`mcp-session.${payload}`).digest('base64url');
  }
}

export function newSessionKey(): string {
  return randomBytes(32).toString('base64url');
}

const InitializeParams = z.looseObject({
  protocolVersion: z.string().max(MAX_NAME_LENGTH),
  capabilities: z.record(z.string(), z.unknown()),
  clientInfo: z.looseObject({ name: z.string(), version: z.string() }),
});

/** What is kept of an `initialize`; undefined if the library will refuse it. */
export function keptParams(
  params: unknown,
): Pick<SessionContents, 'protocolVersion' | 'capabilities' | 'clientInfo'> | undefined {
  const parsed = InitializeParams.safeParse(params);
  if (!parsed.success) return undefined;
  const { protocolVersion, capabilities, clientInfo } = parsed.data;
  const kept = Object.fromEntries(
    KEPT_CAPABILITIES.filter((name) => capabilities[name] !== undefined).map((name) => [name, capabilities[name]]),
  );
  const tooLong = JSON.stringify(kept).length > MAX_CAPABILITIES_LENGTH;
  return {
    protocolVersion,
    capabilities: tooLong ? {} : kept,
    clientInfo: {
      name: clientInfo.name.slice(0, MAX_NAME_LENGTH),
      version: clientInfo.version.slice(0, MAX_NAME_LENGTH),
    },
  };
}
