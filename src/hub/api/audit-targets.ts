import { mentions } from '../../audit/report.ts';
import type { AuditEntry } from '../../audit/audit-entry.ts';
import type { StoredRequest } from '../../schema/store.ts';
import type { Store } from '../../store/contract.ts';
import { requestTarget } from './views.ts';

/** Requests looked up for one reading of the audit log. */
const MAX_LOOKED_UP = 2_000;

/** What requests were about. The audit log has only digests of inputs; the store has the requests it still keeps. */
export class AuditTargets {
  readonly #store: Pick<Store, 'request'>;
  readonly #found = new Map<string, Promise<StoredRequest | undefined>>();

  constructor(store: Pick<Store, 'request'>) {
    this.#store = store;
  }

  async of({ kind, details }: Pick<AuditEntry, 'kind' | 'details'>): Promise<string | undefined> {
    const row = await this.#requestOf(details?.['request']);
    return row && requestTarget(row, kind === 'decision' ? 'decided' : 'asked');
  }

  /** Whether these words occur in the entry or in what its request was about, ignoring case. */
  async mention(entry: AuditEntry, words: string): Promise<boolean> {
    return mentions(entry, words) || (await this.of(entry))?.toLowerCase().includes(words.toLowerCase()) === true;
  }

  #requestOf(id: unknown): Promise<StoredRequest | undefined> {
    if (typeof id !== 'string') return Promise.resolve(undefined);
    const known = this.#found.get(id);
    if (known || this.#found.size >= MAX_LOOKED_UP) return known ?? Promise.resolve(undefined);
    const found = this.#store.request(id);
    this.#found.set(id, found);
    return found;
  }
}
