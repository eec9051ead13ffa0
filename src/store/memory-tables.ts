import type {
  FeedEntry,
  HubRef,
  StoredCommand,
  StoredEvent,
  StoredGrant,
  StoredLease,
  StoredMessage,
  StoredRemoval,
  StoredRequest,
  StoredSession,
  StoredToken,
  TranscriptPart,
} from '../schema/store.ts';
import type { EventPage, FeedPage, InboxQuery, Page, Retention, SessionQuery, StoreReads } from './contract.ts';
import { EMPTY_BOOK, type EventBook, type EventSize } from './event-bounds.ts';
import { Rows } from './memory-rows.ts';
import { MemoryTranscripts } from './memory-transcripts.ts';
import type { Loaded, Needs } from './plan.ts';
import {
  activityEnd,
  creationEnd,
  deadAt,
  finishedAt,
  fromCursor,
  holdsWork,
  isResting,
  searchText,
  toPage,
  type PageEnd,
} from './row-facts.ts';
import type { PositionedWrite, Tables, TranscriptReads } from './tables.ts';

interface MemoryEvent {
  readonly seq: number;
  readonly size: number;
  readonly row: StoredEvent;
}

/** Everything in maps; values are copied in and out. */
export class MemoryTables implements Tables, StoreReads, TranscriptReads {
  readonly #sessions = new Rows<StoredSession>();
  readonly #books = new Map<string, EventBook>();
  readonly #events = new Map<string, Map<number, MemoryEvent>>();
  readonly #messages = new Rows<StoredMessage>();
  readonly #requests = new Rows<StoredRequest>();
  readonly #commands = new Rows<StoredCommand>();
  readonly #grants = new Rows<StoredGrant>();
  readonly #tokens = new Rows<StoredToken>();
  readonly #removals = new Rows<StoredRemoval>();
  readonly #leases = new Rows<StoredLease>();
  readonly #settings = new Map<string, string>();
  readonly transcripts = new MemoryTranscripts();
  /** By rising position. */
  readonly #feed = new Map<number, FeedEntry>();
  readonly #now: () => number;
  #seq = 0;
  #fence = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  async now(): Promise<number> {
    return this.#now();
  }

  async load(needs: Needs, hub: string | undefined): Promise<Loaded> {
    const keys = [...needs.commandKeys.values()];
    const commands = this.#commands.select(
      ({ id, principal, key }) =>
        needs.commands.has(id) || keys.some((wanted) => wanted.principal === principal && wanted.key === key),
    );
    return {
      lease: hub === undefined ? undefined : this.#leases.row(hub),
      sessions: new Map(
        [...needs.sessions].flatMap((id) => {
          const session = this.#sessions.get(id);
          return session ? [[id, { isNew: false, runsOn: session.row.runsOn, book: this.#book(id) }]] : [];
        }),
      ),
      requests: this.#requests.pick(needs.requests),
      commands: new Map(commands.map((command) => [command.id, command])),
      grants: this.#grants.pick(needs.grants),
    };
  }

  async eventSizes(sessionId: string): Promise<EventSize[]> {
    return this.#eventsOf(sessionId).map(({ row: { id, keep }, size }) => ({ id, keep, size }));
  }

  async nextSeq(count: number): Promise<number> {
    return (this.#seq += count);
  }

  async save(writes: readonly PositionedWrite[]): Promise<void> {
    const steps = writes.map((write) => this.#prepare(write));
    for (const step of steps) step();
  }

  #prepare({ seq, write }: PositionedWrite): () => void {
    switch (write.table) {
      case 'sessions':
        return this.#fed('session', this.#sessions, write.row, seq);
      case 'requests':
        return this.#fed('request', this.#requests, write.row, seq);
      case 'commands':
        return this.#fed('command', this.#commands, write.row, seq);
      case 'removals':
        return this.#fed('removal', this.#removals, write.row, seq);
      case 'books':
        return () => this.#books.set(write.sessionId, write.book);
      case 'events': {
        const row = { ...write.row, data: JSON.parse(write.json) as unknown };
        const event = { seq, size: Buffer.byteLength(write.json), row };
        return () => {
          const events = this.#events.get(row.sessionId) ?? new Map<number, MemoryEvent>();
          this.#events.set(row.sessionId, events.set(row.id, event));
          this.#feed.set(seq, { kind: 'event', seq, row });
        };
      }
      case 'dropped':
        return () => write.eventIds.forEach((id) => this.#dropEvent(write.sessionId, id));
      case 'messages': {
        const key = `${write.sessionId} ${write.id}`;
        return write.row ? this.#messages.prepare(key, write.row, seq) : () => this.#messages.delete(key);
      }
      case 'grants':
        return this.#grants.prepare(write.row.id, write.row, 0);
      case 'tokens':
        return this.#tokens.prepare(write.row.id, write.row, 0);
      case 'settings':
        return () => this.#settings.set(write.key, write.value);
    }
  }

  /** A changed row moves to the end of the feed. */
  #fed<Row extends { id: string }>(
    kind: 'session' | 'request' | 'command' | 'removal',
    rows: Rows<Row>,
    row: Row,
    seq: number,
  ): () => void {
    const put = rows.prepare(row.id, row, seq);
    return () => {
      this.#feed.delete(rows.get(row.id)?.seq ?? 0);
      put();
      this.#feed.set(seq, { kind, seq, row: rows.get(row.id)?.row } as unknown as FeedEntry);
    };
  }

  #dropEvent(sessionId: string, id: number): void {
    const events = this.#events.get(sessionId);
    this.#feed.delete(events?.get(id)?.seq ?? 0);
    events?.delete(id);
  }

  async nextFence(): Promise<number> {
    return ++this.#fence;
  }

  async lease(hub: string): Promise<StoredLease | undefined> {
    return this.#leases.row(hub);
  }

  async leases(): Promise<StoredLease[]> {
    return this.#leases.select(() => true).sort((a, b) => byText(a.hub, b.hub));
  }

  async saveLease(lease: StoredLease): Promise<void> {
    this.#leases.prepare(lease.hub, lease, 0)();
  }

  async sessionsToClaim(ids: readonly string[]): Promise<StoredSession[]> {
    return this.#sessions.select(({ id }) => ids.includes(id)).sort((a, b) => byText(a.id, b.id));
  }

  async nextCommands(by: HubRef, limit: number): Promise<StoredCommand[]> {
    const underWay = this.#commands.select(({ progress: { status } }) => status === 'queued' || status === 'taken');
    return underWay
      .filter((command) => {
        const session = this.#sessions.get(command.sessionId)?.row;
        const isOurs = (session ? session.runsOn.hub : command.placedOn) === by.hub;
        const first = underWay.find(({ sessionId }) => sessionId === command.sessionId);
        const isSessionBusy = underWay.some(
          ({ sessionId, progress }) => sessionId === command.sessionId && progress.status === 'taken',
        );
        return isOurs && !isSessionBusy && first?.id === command.id;
      })
      .slice(0, limit);
  }

  async saveTaken(commands: readonly StoredCommand[]): Promise<void> {
    for (const command of commands) {
      const seq = this.#commands.get(command.id)?.seq ?? 0;
      this.#commands.prepare(command.id, command, seq)();
      const row = this.#commands.get(command.id)?.row;
      // Its place in the feed stays the same.
      if (row) this.#feed.set(seq, { kind: 'command', seq, row });
    }
  }

  async commandsTakenBy(hub: string): Promise<StoredCommand[]> {
    return this.#commands.select(({ progress }) => progress.status === 'taken' && progress.by.hub === hub);
  }

  async commandsTakenFor(sessionIds: readonly string[]): Promise<StoredCommand[]> {
    return this.#commands.select(
      ({ sessionId, progress }) => progress.status === 'taken' && sessionIds.includes(sessionId),
    );
  }

  async forget({ before, limit }: Retention): Promise<{ id: string; principal: string }[]> {
    const asking = new Set([...this.#requests.values()].flatMap(({ row }) => (row.outcome ? [] : [row.sessionId])));
    const forgotten = this.#sessions
      .select((row) => isResting(row) && row.lastActiveAt < before && !holdsWork(row) && !asking.has(row.id))
      .sort((a, b) => byEnd(activityEnd(a), activityEnd(b)))
      .slice(0, limit)
      .map(({ id, principal }) => ({ id, principal }));
    const gone = new Set(forgotten.map(({ id }) => id));
    const isOver = (at: number | undefined): boolean => at !== undefined && at < before;
    for (const id of gone) {
      for (const { row } of this.#eventsOf(id)) this.#dropEvent(id, row.id);
      this.#events.delete(id);
      this.#books.delete(id);
      this.transcripts.forget(id);
    }
    this.#remove(this.#sessions, ({ id }) => gone.has(id));
    this.#remove(this.#messages, ({ sessionId }) => gone.has(sessionId));
    this.#remove(this.#requests, ({ sessionId, outcome }) => gone.has(sessionId) || isOver(outcome?.at));
    this.#remove(this.#commands, (command) => gone.has(command.sessionId) || isOver(finishedAt(command)));
    this.#remove(this.#grants, ({ sessionId, closed }) => gone.has(sessionId) || isOver(closed?.at));
    this.#remove(this.#tokens, (token) => isOver(deadAt(token)));
    this.#remove(this.#removals, ({ at }) => isOver(at));
    return forgotten;
  }

  #remove<Row>(rows: Rows<Row>, where: (row: Row) => boolean): void {
    for (const [key, { row, seq }] of rows) {
      if (!where(row)) continue;
      rows.delete(key);
      this.#feed.delete(seq);
    }
  }

  async sessionSince(id: string, position = 0): ReturnType<StoreReads['sessionSince']> {
    const [row, now] = [await this.session(id), (await this.positions([id])).get(id)];
    if (!row || now === undefined) return undefined;
    return now === position ? 'unchanged' : { row, position: now };
  }

  async positions(ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return new Map(
      ids.flatMap((id) => {
        const entry = this.#sessions.get(id);
        return entry ? [[id, entry.seq] as const] : [];
      }),
    );
  }

  async session(id: string): Promise<StoredSession | undefined> {
    return this.#sessions.row(id);
  }

  async sessions({ principal, tags, hub, search, after, limit }: SessionQuery): Promise<Page<StoredSession>> {
    const end = after === undefined ? undefined : fromCursor(after);
    const rows = this.#sessions
      .select(
        (session) =>
          (principal === undefined || session.principal === principal) &&
          (tags === undefined || tags.includes(session.state.tag)) &&
          (hub === undefined || session.runsOn.hub === hub) &&
          (search === undefined || searchText(session).includes(search.toLowerCase())) &&
          (end === undefined || byEnd(activityEnd(session), end) < 0),
      )
      .sort((a, b) => byEnd(activityEnd(b), activityEnd(a)));
    return toPage(rows, limit, activityEnd);
  }

  async events(sessionId: string, { after = 0, limit }: { after?: number; limit: number }): Promise<EventPage> {
    const { lastId, droppedThrough } = this.#book(sessionId);
    const events = this.#eventsOf(sessionId).filter(({ row }) => row.id > after);
    return { events: events.slice(0, limit).map(({ row }) => structuredClone(row)), lastId, droppedThrough };
  }

  async feed({ after, limit }: { after: number; limit: number }): Promise<FeedPage> {
    const entries: FeedEntry[] = [];
    for (const entry of this.#feed.values()) {
      if (entry.seq <= after) continue;
      if (entries.push(structuredClone(entry)) === limit) break;
    }
    return { entries, last: entries.at(-1)?.seq ?? this.#seq };
  }

  async messages(sessionId: string): Promise<StoredMessage[]> {
    return this.#messages.select((message) => message.sessionId === sessionId);
  }

  async request(id: string): Promise<StoredRequest | undefined> {
    return this.#requests.row(id);
  }

  async inbox({ principal, sessionId, after, limit }: InboxQuery): Promise<Page<StoredRequest>> {
    const end = after === undefined ? undefined : fromCursor(after);
    const rows = this.#requests
      .select(
        (request) =>
          !request.outcome &&
          (sessionId === undefined || request.sessionId === sessionId) &&
          (principal === undefined || this.#sessions.get(request.sessionId)?.row.principal === principal) &&
          (end === undefined || byEnd(creationEnd(request), end) > 0),
      )
      .sort((a, b) => byEnd(creationEnd(a), creationEnd(b)));
    return toPage(rows, limit, creationEnd);
  }

  async hasCommands(by: HubRef): Promise<boolean> {
    return (await this.nextCommands(by, 1)).length > 0;
  }

  async command(id: string): Promise<StoredCommand | undefined> {
    return this.#commands.row(id);
  }

  async commandByKey(principal: string, key: string): Promise<StoredCommand | undefined> {
    return this.#commands.select((command) => command.principal === principal && command.key === key)[0];
  }

  async grants(sessionId: string): Promise<StoredGrant[]> {
    return this.#grants
      .select((grant) => grant.sessionId === sessionId && !grant.closed)
      .sort((a, b) => byEnd(creationEnd(a), creationEnd(b)));
  }

  async token(id: string): Promise<StoredToken | undefined> {
    return this.#tokens.row(id);
  }

  async tokenByHash(hash: string): Promise<StoredToken | undefined> {
    return this.#tokens.select((token) => token.hash === hash)[0];
  }

  async tokens(): Promise<StoredToken[]> {
    return this.#tokens.select(() => true).sort((a, b) => byText(a.id, b.id));
  }

  async setting(key: string): Promise<string | undefined> {
    return this.#settings.get(key);
  }

  transcript(part: TranscriptPart): ReturnType<TranscriptReads['transcript']> {
    return this.transcripts.transcript(part);
  }

  transcriptSubpaths(sessionId: string): Promise<string[]> {
    return this.transcripts.transcriptSubpaths(sessionId);
  }

  #book(sessionId: string): EventBook {
    return this.#books.get(sessionId) ?? EMPTY_BOOK;
  }

  #eventsOf(sessionId: string): MemoryEvent[] {
    return [...(this.#events.get(sessionId)?.values() ?? [])];
  }
}

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function byEnd(a: PageEnd, b: PageEnd): number {
  return a.at - b.at || byText(a.id, b.id);
}
