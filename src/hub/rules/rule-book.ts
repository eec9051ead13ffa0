import { isDeepStrictEqual } from 'node:util';
import type { StandingRules } from '../../engine/ports.ts';
import { RuleSet } from '../../engine/rules/standing/rule-set.ts';
import { messageOf } from '../../errors/errors.ts';
import type { StandingRule } from '../../schema/standing-rules.ts';
import type { StoredToken } from '../../schema/store.ts';
import type { Store } from '../../store/contract.ts';
import { authorHasRole } from './manage-rules.ts';

/** A change made elsewhere is in force here within this time, even if its wake-up was lost. */
const LOOK_EVERY_MS = 800;
/** Other things are stored all the time. */
const LOOK_AT_MOST_EVERY_MS = 100;
const COUNT_EVERY_MS = 500;

export interface RuleBookOptions {
  readonly store: Pick<Store, 'rules' | 'rule' | 'rulesRevision' | 'token' | 'tokens' | 'subscribe' | 'write'>;
  readonly now: () => number;
  readonly warn: (line: string) => void;
}

/**
 * The rules of the store that are in force, known here before anyone asks. What denies or asks is taken from memory; what
 * allows is looked up once more, so that nothing is allowed that somebody has taken back, or while the store is away.
 */
export class RuleBook implements StandingRules {
  readonly #options: RuleBookOptions;
  readonly #listeners = new Set<() => void>();
  readonly #uses = new Map<string, { times: number; at: number }>();
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #unsubscribe: () => void;
  #inForce = new RuleSet([]);
  #rules: readonly StandingRule[] = [];
  #revision = -1;
  #looking: Promise<void> | undefined;
  #nextLook: NodeJS.Timeout | undefined;

  private constructor(options: RuleBookOptions) {
    this.#options = options;
    this.#unsubscribe = options.store.subscribe(({ others }) => {
      if (others) this.#nextLook ??= setTimeout(() => void this.look(), LOOK_AT_MOST_EVERY_MS).unref();
    });
    this.#timers.push(
      setInterval(() => void this.look(), LOOK_EVERY_MS).unref(),
      setInterval(() => void this.#count(), COUNT_EVERY_MS).unref(),
    );
  }

  /** Throws if the store cannot be read. */
  static async open(options: RuleBookOptions): Promise<RuleBook> {
    const book = new RuleBook(options);
    await book.#read();
    return book;
  }

  get inForce(): RuleSet {
    return this.#inForce;
  }

  async confirm(rule: StandingRule): Promise<boolean> {
    try {
      const stored = await this.#options.store.rule(rule.id);
      if (stored?.enabled !== true || !isDeepStrictEqual(content(stored), content(rule))) return false;
      return await authorHasRole(stored, this.#options.store, this.#options.now());
    } catch {
      return false;
    }
  }

  used(ruleId: string): void {
    const { times = 0 } = this.#uses.get(ruleId) ?? {};
    this.#uses.set(ruleId, { times: times + 1, at: Math.trunc(this.#options.now()) });
  }

  subscribe(changed: () => void): () => void {
    this.#listeners.add(changed);
    return () => this.#listeners.delete(changed);
  }

  /** Resolves when what is stored now is in force. */
  async look(): Promise<void> {
    clearTimeout(this.#nextLook);
    this.#nextLook = undefined;
    this.#looking ??= this.#read()
      // What denies stays in force; nothing is allowed meanwhile.
      .catch((error: unknown) => this.#options.warn(`the rules cannot be read: ${messageOf(error)}`))
      .finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    clearTimeout(this.#nextLook);
    for (const timer of this.#timers) clearInterval(timer);
    await this.#looking;
    await this.#count();
  }

  async #read(): Promise<void> {
    const { store, now } = this.#options;
    const revision = await store.rulesRevision();
    if (revision !== this.#revision) this.#rules = await store.rules();
    const enabled = this.#rules.filter((rule) => rule.enabled);
    const tokens = enabled.some(({ createdBy }) => createdBy.startsWith('token:')) ? await store.tokens() : [];
    const byId = new Map(tokens.map((token) => [token.id, token]));
    const lookUp = { token: async (id: string): Promise<StoredToken | undefined> => byId.get(id) };
    const held = await Promise.all(enabled.map((rule) => authorHasRole(rule, lookUp, now())));
    const rules = enabled.filter((_rule, at) => held[at]);
    const isSame = revision === this.#revision && rules.length === this.#inForce.rules.length;
    this.#revision = revision;
    if (isSame) return;
    this.#inForce = new RuleSet(rules);
    for (const listener of this.#listeners) listener();
  }

  async #count(): Promise<void> {
    if (this.#uses.size === 0) return;
    const uses = [...this.#uses];
    this.#uses.clear();
    const changes = uses.map(([ruleId, { times, at }]) => ({ type: 'rule.use', ruleId, times, at }) as const);
    await this.#options.store
      .write(changes)
      .catch((error: unknown) => this.#options.warn(`uses of rules were not counted: ${messageOf(error)}`));
  }
}

function content({ uses: _uses, lastUsedAt: _lastUsedAt, ...rule }: StandingRule): object {
  return rule;
}
