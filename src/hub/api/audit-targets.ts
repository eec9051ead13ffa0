import { mentions } from '../../audit/report.ts';
import type { AuditEntry } from '../../audit/audit-log.ts';
import { summarizeTool } from '../../engine/conversation/tool-summary.ts';
import type { EventBody } from '../../schema/events.ts';
import type { StoredRequest } from '../../schema/store.ts';
import type { Store } from '../../store/contract.ts';
import { requestTarget } from './views.ts';

/** Requests looked up for one reading of the audit log. */
const MAX_LOOKED_UP = 2_000;
/** Sessions whose events are read for it. */
const MAX_SESSIONS = 20;
const EVENTS_PAGE = 1_000;

type Source = Pick<Store, 'request' | 'events'>;

/**
 * What decisions were about. The audit log has only digests of inputs; the store has the requests it still keeps, and in
 * the events of a session the calls that Claude Code refused by a rule, without a request.
 */
export class AuditTargets {
  readonly #store: Source;
  readonly #requests = new Map<string, Promise<StoredRequest | undefined>>();
  readonly #calls = new Map<string, Promise<ReadonlyMap<string, string>>>();

  constructor(store: Source) {
    this.#store = store;
  }

  async of({ kind, session, details }: AuditEntry): Promise<string | undefined> {
    const { request, call } = details ?? {};
    if (typeof request === 'string') {
      const row = await this.#requestOf(request);
      return row && requestTarget(row, kind === 'decision' ? 'decided' : 'asked');
    }
    return typeof call === 'string' && session !== undefined ? (await this.#callsOf(session)).get(call) : undefined;
  }

  /** Whether these words occur in the entry or in what it was about, ignoring case. */
  async mention(entry: AuditEntry, words: string): Promise<boolean> {
    return mentions(entry, words) || (await this.of(entry))?.toLowerCase().includes(words.toLowerCase()) === true;
  }

  #requestOf(id: string): Promise<StoredRequest | undefined> {
    const known = this.#requests.get(id);
    if (known || this.#requests.size >= MAX_LOOKED_UP) return known ?? Promise.resolve(undefined);
    const found = this.#store.request(id);
    this.#requests.set(id, found);
    return found;
  }

  #callsOf(session: string): Promise<ReadonlyMap<string, string>> {
    const known = this.#calls.get(session);
    if (known || this.#calls.size >= MAX_SESSIONS) return known ?? Promise.resolve(new Map<string, string>());
    const read = this.#readCalls(session);
    this.#calls.set(session, read);
    return read;
  }

  /** By call id. */
  async #readCalls(session: string): Promise<ReadonlyMap<string, string>> {
    const calls = new Map<string, string>();
    for (let after = 0, more = true; more;) {
      const { events, lastId } = await this.#store.events(session, { after, limit: EVENTS_PAGE });
      for (const { data } of events)
        for (const [id, target] of callsIn((data as { body: EventBody }).body)) calls.set(id, target);
      after = events.at(-1)?.id ?? lastId;
      more = after < lastId;
    }
    return calls;
  }
}

function callsIn(body: EventBody): [id: string, target: string][] {
  if (body.kind !== 'message') return [];
  return body.blocks.flatMap((block) =>
    block.kind === 'tool_call'
      ? [[block.toolUseId, summarizeTool(block.toolName, block.input)] as [string, string]]
      : [],
  );
}
